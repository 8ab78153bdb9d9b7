package feedhistory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

// What a feed that is published again says of how much its publisher has of the
// original, in an element of the head section:
//
//	<m:mirror xmlns:m="https://github.com/feedhistory/feedhistory/ns/mirror/1.0"
//	    of="https://example.org/feed.atom" kind="archived" verdict="partial">
//	  <m:gap reason="status" href="https://example.org/2003.atom"/>
//	</m:mirror>

// CoverageNamespace is that of the elements mirror and gap, which say a Coverage.
const CoverageNamespace = "https://github.com/feedhistory/feedhistory/ns/mirror/1.0"

// A Coverage is what a document says of how much it has, together with the
// documents that it links to, of a feed that it republishes.
type Coverage struct {
	Of      string  // that feed's URL; "" if it does not say
	Kind    Kind    // of that feed
	Verdict Verdict // how much there is of it; a History that begins with the document is no better
	Gaps    []*Gap  // what is missing, as far as it says; the first hundred
}

// mostDeclared is how many gaps of a Coverage are kept.
const mostDeclared = 100

// A declared error is the reason that a publisher gives for a gap, in its own word.
type declared string

func (e declared) Error() string {
	if e == "" {
		return "the feed itself says that this is missing"
	}
	return "the feed itself says that this is missing: " + string(e)
}

// Declared returns what the document itself says is missing of its feed: those of its
// Coverage, and at least one if that is Partial. Walk requests none of them.
func (d *Document) Declared() (gaps []*Gap) {
	if d.Coverage == nil {
		return nil
	}
	for _, g := range d.Coverage.Gaps {
		gap := *g
		gap.URL, gap.From = cmp.Or(gap.URL, d.URL), d.URL
		gaps = append(gaps, &gap)
	}
	if len(gaps) == 0 && d.Coverage.Verdict == Partial {
		gaps = append(gaps, &Gap{URL: d.URL, From: d.URL, Reason: ReasonDeclared, Err: declared("")})
	}
	for _, gap := range gaps {
		if gap.Found = d.documentTime(); gap.Found.IsZero() {
			gap.Found = d.Response.Received
		}
	}
	return gaps
}

// join adds what else is said: the worse verdict counts, and all gaps, each once.
func (c *Coverage) join(other *Coverage) *Coverage {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	joined := *c
	joined.Verdict, joined.Gaps = max(c.Verdict, other.Verdict), slices.Clone(c.Gaps)
	for _, g := range other.Gaps {
		same := func(old *Gap) bool { return old.URL == g.URL && old.Err.Error() == g.Err.Error() }
		if len(joined.Gaps) < mostDeclared && !slices.ContainsFunc(joined.Gaps, same) {
			joined.Gaps = append(joined.Gaps, g)
		}
	}
	return &joined
}

// coverage reads the current element. Words that mean nothing here are noted, and
// bound nothing.
func (r *reader) coverage() {
	offset, depth := r.s.Offset(), r.s.Depth()
	c, tooMany := &Coverage{}, false
	attr := func(name string) string { value, _ := r.s.Attr("", name); return trim(value) }
	if of := attr("of"); isHTTP(of) && len(of) <= r.limits.URL {
		c.Of = fetch.Redact(of)
	}
	_ = c.Kind.UnmarshalText([]byte(attr("kind")))
	verdict := attr("verdict")
	err := c.Verdict.UnmarshalText([]byte(verdict))
	if err != nil {
		r.note("coverage-unread", "the feed says of how much of another one it has: "+clip(verdict)+", which is no verdict", offset)
	}
	for r.child(depth) {
		switch {
		case r.s.Space() != CoverageNamespace || r.s.Local() != "gap":
		case len(c.Gaps) == mostDeclared:
			tooMany = true
		default:
			c.Gaps = append(c.Gaps, r.declaredGap())
		}
	}
	if tooMany {
		r.note("coverage-unread", fmt.Sprintf("the feed says of more than %d documents that they are missing", mostDeclared), offset)
	}
	if err == nil || len(c.Gaps) > 0 {
		r.doc.Coverage = r.doc.Coverage.join(c)
	}
}

// declaredGap reads a gap of a Coverage.
func (r *reader) declaredGap() *Gap {
	reason, _ := r.s.Attr("", "reason")
	href, _ := r.s.Attr("", "href")
	reason = clip(trim(reason))
	g := &Gap{Reason: ReasonDeclared, Err: declared(reason)}
	if g.Reason.UnmarshalText([]byte(reason)) != nil {
		g.Reason = ReasonDeclared
	}
	if href = trim(href); isHTTP(href) && len(href) <= r.limits.URL {
		g.URL = fetch.Redact(href)
	}
	return g
}

// coverage writes a Coverage.
func (w *writer) coverage(c *Coverage) {
	if c == nil {
		return
	}
	w.b.WriteString("<m:mirror")
	writeAttr(&w.b, "xmlns:m", CoverageNamespace)
	if c.Of != "" {
		writeAttr(&w.b, "of", c.Of)
	}
	writeAttr(&w.b, "kind", c.Kind.String())
	writeAttr(&w.b, "verdict", c.Verdict.String())
	w.b.WriteByte('>')
	for _, g := range c.Gaps {
		reason := g.Reason.String()
		if word, ok := errors.AsType[declared](g.Err); ok && word != "" {
			reason = string(word)
		}
		w.b.WriteString("<m:gap")
		writeAttr(&w.b, "reason", reason)
		if g.URL != "" {
			writeAttr(&w.b, "href", fetch.Redact(g.URL))
		}
		w.b.WriteString("/>")
	}
	w.b.WriteString("</m:mirror>\n")
}

// Coverage returns what to say of the history where it is published again: of one
// that is Partial, or whose newest document has a Coverage of its own. It is nil
// for others.
func (h *History) Coverage() *Coverage {
	v := h.Verdict()
	if h.Head == nil || h.Head.Coverage == nil && v != Partial {
		return nil
	}
	c := &Coverage{Of: h.Head.URL, Kind: h.Kind, Verdict: v}
	c.Gaps = slices.Clone(h.Gaps[:min(len(h.Gaps), mostDeclared)])
	return c
}
