package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/feedhistory/feedhistory"
)

// This file replaces texts of Go's standard library, which are for programmers.

// InWords returns an error whose text has no words of Go's packages for networks, JSON
// and XML. It wraps err.
func InWords(err error) error {
	text := err.Error()
	if e, ok := errors.AsType[*url.Error](err); ok && !errors.Is(err, context.Canceled) {
		what := Detail(e.Err)
		if todo := networkRemedy(e.Err); todo != "" {
			what += "; " + todo
		}
		text = strings.Replace(text, e.Error(), feedhistory.Redact(e.URL)+": "+what, 1)
	}
	op, isOp := errors.AsType[*net.OpError](err)
	if _, isURL := errors.AsType[*url.Error](err); isOp && !isURL {
		what := cmp.Or(connection(op), Detail(op.Err))
		if todo := networkRemedy(op); todo != "" {
			what += "; " + todo
		}
		text = strings.Replace(text, op.Error(), what, 1)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		text = strings.Replace(text, e.Error(), notJSON(e), 1)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text = strings.Replace(text, e.Error(), wrongJSON(e), 1)
	}
	if e, ok := errors.AsType[*xml.SyntaxError](err); ok {
		text = strings.Replace(text, e.Error(), notXML(e), 1)
	}
	if text == err.Error() {
		return err
	}
	return &plainError{text, err}
}

// A plainError is an error in other words.
type plainError struct {
	text string
	err  error
}

// Error returns the words.
func (e *plainError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *plainError) Unwrap() error { return e.err }

func notJSON(e *json.SyntaxError) string {
	if strings.HasPrefix(e.Error(), "unexpected end") {
		return "the JSON breaks off"
	}
	return fmt.Sprintf("this is not JSON from column %d on", max(e.Offset, 1))
}

func wrongJSON(e *json.UnmarshalTypeError) string {
	kind, _, _ := strings.Cut(e.Value, " ")
	if article := "aeiou"; strings.ContainsAny(kind[:min(1, len(kind))], article) {
		kind = "an " + kind
	} else {
		kind = "a " + kind
	}
	if e.Field == "" {
		return "it cannot be " + kind
	}
	return fmt.Sprintf("its member %s cannot be %s", e.Field, kind)
}

func notXML(e *xml.SyntaxError) string {
	if strings.HasPrefix(e.Msg, "unexpected EOF") {
		return fmt.Sprintf("line %d: the document breaks off", e.Line)
	}
	return fmt.Sprintf("line %d: the document is not well-formed XML: %s", e.Line, e.Msg)
}

// connection describes a failed connection; "" for other errors.
func connection(err error) string {
	var timeout interface{ Timeout() bool }
	_, isDNS := errors.AsType[*net.DNSError](err)
	errno, isErrno := errors.AsType[syscall.Errno](err)
	op, isOp := errors.AsType[*net.OpError](err)
	ours := errors.As(err, new(*feedhistory.RefusedError)) || errors.As(err, new(*feedhistory.TimeoutError)) || errors.As(err, new(*feedhistory.TruncatedError)) || errors.As(err, new(*feedhistory.ParseError))
	var detailed interface{ Detail() string } // it has its own words
	switch {
	case isDNS || ours || errors.As(err, &detailed):
		return ""
	case isErrno && isOp:
		return errno.Error()
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "there was no answer in time"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection before the end of its answer"
	case isOp:
		return op.Err.Error()
	}
	return ""
}
