package check

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/feedhistory/feedhistory"
)

// unread reports why the document could not be read to its end.
func (r *report) unread(err error) {
	f := failure(err, r.doc.URL)
	at := nowhere
	if parse, ok := errors.AsType[*feedhistory.ParseError](err); ok && parse.Line > 0 {
		at = parse.Offset
	}
	r.add(f.Code, at, "%s", f.Message)
}

// failure returns the finding for a document not retrieved or not readable.
func failure(err error, url string) Finding {
	if parse, ok := errors.AsType[*feedhistory.ParseError](err); ok {
		f := newFinding(parseCode(parse.Reason), parse.URL, parse.Err.Error())
		f.Line, f.Column = parse.Line, parse.Column
		return f
	}
	if e, ok := errors.AsType[*feedhistory.TruncatedError](err); ok {
		return newFinding("truncated", url, e.Error())
	}
	if e, ok := errors.AsType[*feedhistory.LimitError](err); ok {
		return newFinding("limit-exceeded", url, fmt.Sprintf("the limit on %s, %d, is exceeded", e.Limit, e.Max))
	}
	if err == nil {
		err = errors.New("there is no document")
	}
	return newFinding(codeUnavailable, url, reasonText(err))
}

// codeUnavailable is the code for failures that are not the document's fault.
const codeUnavailable = "document-unavailable"

func parseCode(reason feedhistory.Reason) string {
	switch reason {
	case feedhistory.ReasonTruncated:
		return "truncated"
	case feedhistory.ReasonLimit:
		return "limit-exceeded"
	case feedhistory.ReasonNotFeed:
		return "not-a-feed"
	}
	return "not-well-formed"
}

// reasonText says briefly why a document could not be retrieved.
func reasonText(err error) string {
	if e, ok := errors.AsType[*feedhistory.StatusError](err); ok {
		return fmt.Sprintf("the server answers %d %s", e.Status, http.StatusText(e.Status))
	}
	return err.Error()
}
