package feedhistory

import (
	"slices"
	"time"
)

// A damage is a possible loss in a document read to its end.
type damage struct {
	err     *ParseError
	entries bool // entries may be missing, not only a link
}

// Damage reports possible losses in a document read to its end, although it is not
// well-formed, as part of a feed of the given kind:
//
//   - entries, if there are some after the end of the root element;
//   - the link to an older document, if there is none, and something outside the
//     entries had to be mended: an element without an end tag, an end tag without an
//     element, a tag or value without an end, or one with something foreign in it. A
//     Complete feed needs no such link. Attributes merely without quotes or a value,
//     end tags in another case, and a "<" without markup lose nothing.
//
// It is nil if nothing is missing.
func (d *Document) Damage(feed Kind) *ParseError {
	if d.damage == nil {
		return nil
	}
	_, onward := d.Links.Rel(feed.Older())
	onward = onward || d.loses(feed.Older()) // which is another gap
	if !d.damage.entries && (onward || feed == Complete) {
		return nil
	}
	return d.damage.err
}

// Missing returns the gaps within a document read to its end, as part of a feed of the
// given kind: its Gaps, and one for its Damage. Walk yields them after the document.
func (d *Document) Missing(feed Kind) []*Gap {
	gaps := slices.Clip(d.Gaps)
	if err := d.Damage(feed); err != nil {
		gaps = append(gaps, &Gap{URL: d.URL, From: d.URL, Reason: ReasonMalformed, Err: err, Found: time.Now()})
	}
	return gaps
}
