package feedhistory

import (
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// coverage reads the current element. A verdict unknown here makes a note and has no
// effect.
func (r *documentReader) coverage() {
	offset, depth := r.Offset(), r.Depth()
	c, tooMany := &Coverage{}, false
	attr := func(name string) string { value, _ := r.Attr("", name); return trim(value) }
	if of := attr("of"); iri.IsHTTP(of) && len(of) <= r.limits.URL {
		c.Of = iri.Redact(of)
	}
	_ = c.Kind.UnmarshalText([]byte(attr("kind")))
	if at, err := time.Parse(time.RFC3339, attr("as-of")); err == nil {
		c.AsOf = at.UTC()
	}
	verdict := attr("verdict")
	err := c.Verdict.UnmarshalText([]byte(verdict))
	if err != nil {
		r.note("coverage-unread", "the feed declares how much it has of another one as "+clip(verdict)+", which is not a verdict", offset)
	}
	for r.Child(depth) {
		switch {
		case r.Cursor.Space() != vocab.Coverage || r.Local() != "gap":
		case len(c.Gaps) == mostDeclared:
			tooMany = true
		default:
			c.Gaps = append(c.Gaps, r.declaredGap())
		}
	}
	if c.Verdict == Unknown { // so it may be anything
		c.Verdict = Partial
	}
	if tooMany {
		r.note("coverage-unread", fmt.Sprintf("the feed declares more than %d gaps", mostDeclared), offset)
	}
	if err == nil || len(c.Gaps) > 0 {
		r.doc.Coverage = r.doc.Coverage.join(c)
	}
}

// declaredGap reads a gap of a Coverage.
func (r *documentReader) declaredGap() *Gap {
	reason, _ := r.Attr("", "reason")
	href, _ := r.Attr("", "href")
	reason = clip(trim(reason))
	g := &Gap{Reason: ReasonDeclared, Err: declaredGap(reason)}
	if g.Reason.UnmarshalText([]byte(reason)) != nil || g.Reason == ReasonUnknown {
		g.Reason = ReasonDeclared
	}
	if href = trim(href); iri.IsHTTP(href) && len(href) <= r.limits.URL {
		g.URL = iri.Redact(href)
	}
	return g
}
