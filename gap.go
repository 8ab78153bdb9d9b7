package feedhistory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Reason says why a document could not be retrieved or read.
type Reason uint8

// The reasons of a Gap or a ParseError.
const (
	ReasonUnknown       Reason = iota // the reason was not recorded
	ReasonNetwork                     // there was no answer: the connection failed, or timed out
	ReasonStatus                      // the server answered with an error: 404, 403, 500 …
	ReasonRefused                     // a rule of safety forbids the request
	ReasonLimit                       // the document exceeds Limits
	ReasonTruncated                   // the document breaks off before its end
	ReasonMalformed                   // the document is not well-formed
	ReasonNotFeed                     // the document is not a feed
	ReasonBudget                      // the Budget was spent before the document
	ReasonLoop                        // the link leads back to a document read before
	ReasonBarren                      // too many documents in a row brought nothing new
	ReasonDetached                    // the feed does not begin at the given document, which does not say where it does
	ReasonInterrupted                 // the context ended, or the reader left the walk, first
	ReasonMissedWindow                // between two polls, entries may have come and gone
	ReasonDeclared                    // the feed itself declares something missing, for a reason this package does not define
	ReasonContradiction               // the marks of a document contradict each other, so its chain may lack something
	ReasonForeign                     // the link leads to a document of another feed
)

// String returns the reason as a word, such as "loop" or "missed-window".
func (r Reason) String() string {
	return name(r, unknown, "network", "status", "refused", "limit", "truncated", "malformed", "not-feed",
		"budget", "loop", "barren", "detached", "interrupted", "missed-window", "declared", "contradiction", "foreign")
}

// Advice is the advice for a gap with this reason.
func (r Reason) Advice() string {
	return name(r,
		"try again; the reason is unknown",
		"try again later",
		"try again later; if the error persists, ask the publisher for the document",
		"tell the publisher; if it is a private address that you trust, allow private addresses",
		"raise the limit, if it can be set and you trust the publisher",
		"try again; if the error persists, tell the publisher that the document breaks off",
		"tell the publisher that the document is broken",
		"tell the publisher that the link does not lead to a feed",
		"raise the budget to read on",
		"tell the publisher that the chain of documents loops; older entries cannot be reached",
		"tell the publisher that the server repeats itself; raise the budget to read on",
		"give the address of the feed itself rather than of an archive or a later page",
		"try again, with more time",
		"poll more often, before the feed drops its older entries",
		"ask the publisher, whose own document says so; the original feed may still have it",
		"tell the publisher; all that the document's links lead to has been read, but there may be more",
		"tell the publisher that the link leads to another feed",
	)
}

// A Gap is a missing part of the history, with the reason. Walk yields it as an error;
// Merge collects it.
type Gap struct {
	URL    string // the document not retrieved, or not completely read
	From   string // the document linking to it; "" if none does; the same as URL if something within the document is missing
	Reason Reason
	Err    error     // the error in detail; never nil
	Found  time.Time // when the gap was found

	// Document is the readable part of a damaged document; nil if there is none. Its
	// entries belong to the history.
	Document *Document
}

// Error returns the reason, the URL without userinfo, and the details. An error of this
// URL is described without repeating it; see Describe.
func (g *Gap) Error() string {
	s := g.Reason.String() + ": " + iri.Redact(g.URL)
	if g.From != "" && g.From != g.URL {
		s += " (linked from " + iri.Redact(g.From) + ")"
	}
	if detail := g.detail(); detail != "" {
		s += ": " + detail
	}
	return s
}

// detail returns the text of Err without the gap's URL. It keeps any other URL, such as
// the target of a redirect.
func (g *Gap) detail() string {
	if g.Err == nil {
		return ""
	}
	s := g.Err.Error()
	for _, url := range []string{g.URL, iri.Redact(g.URL)} {
		if rest, ok := strings.CutPrefix(s, url+": "); ok && url != "" {
			return rest
		} else if url != "" && strings.Contains(s, strconv.Quote(url)) {
			return Describe(g.Err)
		}
	}
	return s
}

// Unwrap returns the error in detail, such as a *StatusError.
func (g *Gap) Unwrap() error { return g.Err }

// PseudoEntry returns an entry to tell readers of the feed about the gap (5005#23).
// Each call returns the same entry.
func (g *Gap) PseudoEntry() *Entry {
	sum := sha256.Sum256([]byte(g.URL + "\n" + g.Reason.String()))
	e := &Entry{
		ID:      "urn:sha256:" + hex.EncodeToString(sum[:]),
		Updated: g.Found,
		Source:  &Document{Format: Atom},
		scope:   &xmlscan.Scope{},
	}
	summary := fmt.Sprintf("A document of this feed could not be retrieved, or not completely read, so some of its entries may be missing. %v. What to do: %s.",
		g, g.Reason.Advice())
	var b strings.Builder
	b.WriteString("<entry")
	xmlscan.WriteAttr(&b, "xmlns", vocab.Atom)
	b.WriteByte('>')
	for _, element := range [][2]string{
		{"id", e.ID},
		{"title", "Entries may be missing"},
		{"updated", e.Updated.Format(time.RFC3339Nano)},
		{"summary", summary},
	} {
		b.WriteString("<" + element[0] + ">")
		xmlscan.WriteText(&b, element[1])
		b.WriteString("</" + element[0] + ">")
	}
	b.WriteString("</entry>")
	e.raw = b.String()
	e.read = e.fields()
	return e
}

// NewGap returns the gap for an error, with the reason Walk would give it:
// ReasonUnknown if err is nil.
func NewGap(url string, err error) *Gap {
	if err == nil {
		return &Gap{URL: url, Err: errors.New("the reason was not recorded"), Found: time.Now()}
	}
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

// A feed republishing another one declares in an element of its head section how much
// of the original it has:
//
//	<m:mirror xmlns:m="https://github.com/feedhistory/feedhistory/ns/mirror/1.0"
//	    of="https://example.org/feed.atom" kind="archived" verdict="partial">
//	  <m:gap reason="status" href="https://example.org/2003.atom"/>
//	</m:mirror>

// A Coverage is a republishing document's statement of how much of the feed it has,
// together with the documents it links to.
type Coverage struct {
	Of      string  // the republished feed's URL; "" if the document does not say
	Kind    Kind    // the republished feed's kind
	Verdict Verdict // how much of it there is; the verdict on a History beginning with this document is no better
	Gaps    []*Gap  // the first hundred gaps declared by the document

	// AsOf is when the Verdict was proved, for a feed whose documents cannot prove it
	// at each poll; zero for any other.
	AsOf time.Time
}

// mostDeclared is the maximum number of gaps of a Coverage.
const mostDeclared = 100

// A declaredGap is a publisher's own word for the reason of a gap.
type declaredGap string

func (e declaredGap) Error() string {
	if e == "" {
		return "the feed itself says that this is missing"
	}
	return "the feed itself says that this is missing: " + string(e)
}

// word returns the reason as a Coverage has it: the publisher's own word, if there
// is one.
func (g *Gap) word() string {
	if word, ok := errors.AsType[declaredGap](g.Err); ok && word != "" {
		return string(word)
	}
	return g.Reason.String()
}

// isSame reports whether two gaps are of the same document, for the same reason.
func (g *Gap) isSame(other *Gap) bool { return g.URL == other.URL && g.word() == other.word() }

// Declared returns the gaps declared by the document itself: those of its Coverage, and
// at least one if that is Partial or Unknown. Walk requests none of these documents.
func (d *Document) Declared() (gaps []*Gap) {
	if d.Coverage == nil {
		return nil
	}
	for _, g := range d.Coverage.Gaps {
		gap := *g
		gap.URL, gap.From = cmp.Or(gap.URL, d.URL), d.URL
		gaps = append(gaps, &gap)
	}
	if v := d.Coverage.Verdict; len(gaps) == 0 && (v == Partial || v == Unknown) {
		gaps = append(gaps, &Gap{URL: d.URL, From: d.URL, Reason: ReasonDeclared, Err: declaredGap("")})
	}
	for _, gap := range gaps {
		if gap.Found = d.documentTime(); gap.Found.IsZero() {
			gap.Found = d.Response.Received
		}
	}
	return gaps
}

// join returns the worse of two verdicts, with the gaps of both, each once.
func (c *Coverage) join(other *Coverage) *Coverage {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	joined := *c
	joined.Verdict, joined.Gaps = Worse(c.Verdict, other.Verdict), slices.Clone(c.Gaps)
	if joined.AsOf = c.AsOf; c.AsOf.IsZero() || !other.AsOf.IsZero() && other.AsOf.Before(c.AsOf) {
		joined.AsOf = other.AsOf
	}
	for _, g := range other.Gaps {
		if len(joined.Gaps) < mostDeclared && !slices.ContainsFunc(joined.Gaps, g.isSame) {
			joined.Gaps = append(joined.Gaps, g)
		}
	}
	return &joined
}
