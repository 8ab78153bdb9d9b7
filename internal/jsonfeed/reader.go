// Package jsonfeed reads the values of JSON Feed 1.0 and 1.1 by the tokens of a document,
// in one pass. The names of members are exact: encoding/json takes "ID" for "id".
package jsonfeed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// A Reader reads a text value by value. Make one with New. After an error, all values are
// zero.
type Reader struct {
	d     *jsontext.Decoder
	buf   bytes.Buffer // a copy of text
	text  string
	name  string // the current member
	begin int    // where the object or array entered last begins
	note  func(message string, offset int)
	err   error
}

// New returns a Reader of a text in UTF-8. It passes values of the wrong type to note.
func New(text string, note func(message string, offset int)) *Reader {
	r := &Reader{d: new(jsontext.Decoder)}
	r.reset(text, note)
	return r
}

func (r *Reader) reset(text string, note func(message string, offset int)) {
	*r = Reader{d: r.d, buf: r.buf, text: text, note: note}
	r.buf.Reset()
	r.buf.WriteString(text)
	// The last member of a name counts, and half a surrogate pair is U+FFFD, as in
	// encoding/json.
	r.d.Reset(&r.buf, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// readers are readers for ReadItem. Their memory is larger than an item.
var readers = sync.Pool{New: func() any { return New("", nil) }}

// A SyntaxError is the place where the text stops being JSON. It unwraps to
// io.ErrUnexpectedEOF if that is its end.
type SyntaxError struct {
	Offset int
	Err    error
}

// Error returns the error without its place.
func (e *SyntaxError) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Err returns the first error, a *SyntaxError.
func (r *Reader) Err() error { return r.err }

func (r *Reader) fail(err error) {
	if err == nil || r.err != nil {
		return
	}
	e := &SyntaxError{len(r.text), io.ErrUnexpectedEOF}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok && !errors.Is(err, io.ErrUnexpectedEOF) {
		e.Offset, e.Err = int(syntax.ByteOffset), syntax.Err
	}
	r.err = e
}

// Offset returns the end of the value, or name, read last.
func (r *Reader) Offset() int { return int(r.d.InputOffset()) }

// End reports as an error whatever follows the outermost value.
func (r *Reader) End() {
	if at := r.Offset(); r.err == nil && strings.Trim(r.text[at:], " \t\r\n") != "" {
		r.err = &SyntaxError{at, errors.New("there is something after the end of the JSON")}
	}
}

// raw returns the next value as written.
func (r *Reader) raw() string {
	if r.err != nil {
		return ""
	}
	value, err := r.d.ReadValue()
	if r.fail(err); r.err != nil {
		return ""
	}
	end := r.Offset()
	return r.text[end-len(value) : end]
}

// is reports whether the next value is of a kind. If not, it skips the value, with a note
// unless that is null.
func (r *Reader) is(kind jsontext.Kind) bool {
	got := r.d.PeekKind()
	if r.err != nil || got == kind {
		return r.err == nil
	}
	offset := r.Offset()
	if r.raw(); r.err == nil && got != 'n' {
		r.note(fmt.Sprintf("%q is %s instead of %s", r.name, kindName(got), kindName(kind)), offset)
	}
	return false
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "true or false"
}

// open moves into an array or object, and reports whether there is one.
func (r *Reader) open(kind jsontext.Kind) bool {
	if !r.is(kind) {
		return false
	}
	_, err := r.d.ReadToken()
	r.fail(err)
	r.begin = r.Offset() - 1
	return r.err == nil
}

// more reports whether the innermost array or object goes on; if not, it moves out.
func (r *Reader) more() bool {
	if r.err != nil {
		return false
	}
	if kind := r.d.PeekKind(); kind != ']' && kind != '}' {
		return true
	}
	_, err := r.d.ReadToken()
	r.fail(err)
	return false
}

// Members yields the names of the next value, an object, each before its value, which may
// then be read.
func (r *Reader) Members() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !r.open('{') {
			return
		}
		outer := r.name
		for r.more() {
			r.name = unquote(r.raw())
			before := r.Offset()
			if r.err != nil || !yield(r.name) {
				return
			}
			if r.Offset() == before {
				r.raw()
			}
		}
		r.name = outer
	}
}

// Elements yields the places of the next value's elements, an array. Each may then be read.
func (r *Reader) Elements() iter.Seq[int] {
	return func(yield func(int) bool) {
		if !r.open('[') {
			return
		}
		for r.more() {
			before := r.Offset()
			if !yield(before) {
				return
			}
			if r.Offset() == before {
				r.raw()
			}
		}
	}
}

// Text reads a string.
func (r *Reader) Text() string {
	if !r.is('"') {
		return ""
	}
	return unquote(r.raw())
}

// URL reads a string, and reports whether it is one, or null.
func (r *Reader) URL() (ref string, ok bool) {
	kind := r.d.PeekKind()
	return r.Text(), kind == '"' || kind == 'n'
}

// ID reads a string, or a number as written: version 1.0 has both.
func (r *Reader) ID() string {
	if r.d.PeekKind() == '0' {
		return r.raw()
	}
	return strings.Trim(r.Text(), " \t\r\n")
}
