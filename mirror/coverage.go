package mirror

import (
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// declaredGap is the GapRecord.From of gaps declared by the feed itself.
const declaredGap = "feed:coverage"

// declared returns the head of the subscription document if it declares how much it has
// of a feed it republishes; else nil.
func (f *Feed) declared() *feedhistory.Document {
	if !strings.Contains(f.Head, vocab.Coverage) {
		return nil
	}
	head, err := f.Document()
	if err != nil || head.Coverage == nil {
		return nil
	}
	return head
}

// declare turns the gaps declared by the feed into gaps of the mirror. No poll requests
// them: the feed has no more.
func (f *Feed) declare() {
	f.Gaps = slices.DeleteFunc(f.Gaps, func(g GapRecord) bool { return g.From == declaredGap })
	head := f.declared()
	if head == nil {
		return
	}
	for _, gap := range head.Declared() {
		g := newGap(gap)
		g.From = declaredGap
		f.Gaps = append(f.Gaps, g)
	}
}

// Coverage returns how much of the feed the mirror has, for documents republishing it.
// The URLs have no userinfo.
func (f *Feed) Coverage() *feedhistory.Coverage {
	return &feedhistory.Coverage{
		Of: iri.Redact(f.URL), Kind: f.Kind, Verdict: f.Verdict, Gaps: f.Missing(), AsOf: f.WholeAsOf(),
	}
}

// bound returns the best verdict the feed's own declaration allows.
func (f *Feed) bound() feedhistory.Verdict {
	if head := f.declared(); head != nil {
		return head.Coverage.Verdict
	}
	return feedhistory.Whole
}
