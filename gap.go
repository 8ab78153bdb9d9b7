package feedhistory

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

// A Reason says why a document could not be retrieved or read.
type Reason uint8

// The reasons of a Gap or a ParseError.
const (
	ReasonNetwork      Reason = iota // no answer: a failed connection, a timeout
	ReasonStatus                     // an answer that is not a document: 404, 403, 500 …
	ReasonRefused                    // a request that safety forbids
	ReasonLimit                      // larger than Limits allow
	ReasonTruncated                  // it breaks off before its end
	ReasonMalformed                  // not well-formed
	ReasonNotFeed                    // something else than a feed
	ReasonBudget                     // the Budget was spent before it
	ReasonLoop                       // its link leads back to a document already read
	ReasonBarren                     // too many documents in a row brought nothing new
	ReasonDetached                   // the document given is not where the feed begins, nor says what is
	ReasonInterrupted                // the context ended first
	ReasonMissedWindow               // a poll no longer overlaps what is known
	ReasonDeclared                   // the feed itself says that something is missing, for a reason that has no other name
)

// String returns the reason as a word, such as "loop" or "missed-window".
func (r Reason) String() string {
	return name(r, "network", "status", "refused", "limit", "truncated", "malformed", "not-feed",
		"budget", "loop", "barren", "detached", "interrupted", "missed-window", "declared")
}

// Advice says what can be done about a gap with this reason.
func (r Reason) Advice() string {
	return name(r,
		"try again later",
		"try again later; if it stays, ask the publisher for the document",
		"tell the publisher; if it is a private address that you trust, allow those",
		"raise the limit, if it can be set and you trust the publisher",
		"try again; if it stays, tell the publisher that the document breaks off",
		"tell the publisher that the document is broken",
		"tell the publisher that the link leads to something else than a feed",
		"raise the budget to read on",
		"tell the publisher that the chain of documents loops; what is older cannot be reached",
		"tell the publisher that the server repeats itself; raise the budget to read on",
		"give the address of the feed itself rather than of an archive or a later page",
		"begin again, with more time",
		"poll more often than the feed's window moves on",
		"ask the publisher, whose own document says so; the original feed may have it",
	)
}

// A Gap is a part of the history that is missing, and why. Walk yields it as
// an error; Merge collects it.
type Gap struct {
	URL    string // of the document that could not be retrieved, or read whole
	From   string // the document whose link led there, "" for none; URL itself for what is missing within, such as a link that cannot be used
	Reason Reason
	Err    error     // in detail; never nil
	Found  time.Time // when

	// Document is what could be read of a damaged document, nil if nothing.
	// Its entries are part of the history all the same.
	Document *Document
}

// Error returns the reason, the URL without userinfo, and the details.
func (g *Gap) Error() string {
	s := g.Reason.String() + ": " + fetch.Redact(g.URL)
	if g.From != "" && g.From != g.URL {
		s += " (linked from " + fetch.Redact(g.From) + ")"
	}
	if g.Err != nil {
		s += ": " + g.Err.Error()
	}
	return s
}

// Unwrap returns the error in detail, such as a *StatusError.
func (g *Gap) Unwrap() error { return g.Err }

// PseudoEntry returns an entry that tells a person who reads the feed that
// others may be missing (5005#23). It is the same at every call.
func (g *Gap) PseudoEntry() *Entry {
	sum := sha256.Sum256([]byte(g.URL + "\n" + g.Reason.String()))
	e := &Entry{
		ID:      "urn:sha256:" + hex.EncodeToString(sum[:]),
		Updated: g.Found,
		Source:  &Document{Format: Atom},
		scope:   &scope{},
	}
	summary := fmt.Sprintf("A document of this feed could not be retrieved, or not be read whole, so some of its entries may be missing. %v. What to do: %s.",
		g, g.Reason.Advice())
	var b strings.Builder
	b.WriteString("<entry")
	writeAttr(&b, "xmlns", nsAtom)
	b.WriteByte('>')
	for _, element := range [][2]string{
		{"id", e.ID},
		{"title", "Entries may be missing"},
		{"updated", e.Updated.Format(time.RFC3339Nano)},
		{"summary", summary},
	} {
		b.WriteString("<" + element[0] + ">")
		escapeText(&b, element[1])
		b.WriteString("</" + element[0] + ">")
	}
	b.WriteString("</entry>")
	e.raw = b.String()
	return e
}

// NewGap returns the gap that an error leaves, with the reason that Walk would
// give it.
func NewGap(url string, err error) *Gap {
	return &Gap{URL: url, Reason: reasonOf(err), Err: err, Found: time.Now()}
}

// reasonOf classifies an error of reading a document.
func reasonOf(err error) Reason {
	if gap, ok := errors.AsType[*Gap](err); ok {
		return gap.Reason
	}
	if parse, ok := errors.AsType[*ParseError](err); ok {
		return parse.Reason
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		if refused.Rule == RuleLoop || refused.Rule == RuleRedirects {
			return ReasonLoop
		}
		return ReasonRefused
	}
	switch {
	case is[*StatusError](err):
		return ReasonStatus
	case is[*LimitError](err):
		return ReasonLimit
	case is[*TruncatedError](err):
		return ReasonTruncated
	case is[*EncodingError](err):
		return ReasonMalformed
	}
	return ReasonNetwork
}

// is reports whether an error of type E is in err's chain.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
