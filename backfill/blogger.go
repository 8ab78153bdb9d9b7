package backfill

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/internal/fetch"
)

// Blogger recovers the feeds of Blogger, in Atom or RSS, by ranges of update
// times: updated-max goes back until there is nothing left. No change to the
// blog can move an entry out of such a walk. What changed meanwhile is asked for
// in the end, by updated-min.
//
// A server that ignores the ranges, or does not say when its entries were
// updated, is asked for pages by start-index. It may
// send fewer entries than max-results asks for, and does not say so: what counts
// is what came.
//
// Such feeds link from page to page as well, but in more and smaller pages,
// which shift when something is published, so the links are not followed.
type Blogger struct{}

// The mode of a Blogger Probe where ranges are ignored.
const modeIndex = "start-index"

// bloggerMost is how many entries Blogger sends at most.
const bloggerMost = "150"

// Name returns "blogger".
func (Blogger) Name() string { return "blogger" }

// Recognise looks at the generator.
func (Blogger) Recognise(doc *feedhistory.Document) Sign {
	generator := readHead(doc).generator
	if generator == "Blogger" || strings.HasPrefix(generator, "Blogger http") {
		return Yes
	}
	return No
}

// Probe asks for nothing: the walk itself notices what the server heeds.
func (Blogger) Probe(context.Context, *feedhistory.Client, *feedhistory.Document, *Probe) (bool, error) {
	return true, nil
}

// Walk yields the answers.
func (Blogger) Walk(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		if p.Mode != modeIndex {
			heeded, proven := bloggerRanges(ctx, c, doc, yield)
			if p.Proven = proven; heeded {
				return
			}
			p.Mode = modeIndex
		}
		bloggerSeries(newSource(ctx, c, doc, p)).walk(yield)
	}
}

// bloggerRanges reports whether the server heeds ranges, and whether it is
// proved that all came. If it does not heed them there is more to be yielded.
func bloggerRanges(ctx context.Context, c *feedhistory.Client, first *feedhistory.Document, yield func(*feedhistory.Document, error) bool) (heeded, proven bool) {
	client := modifiedrange.Client{
		HTTP: c, URL: with(first.URL, "start-index", "", "max-results", bloggerMost), Dialect: modifiedrange.GData,
	}
	all := set{}
	sync := client.Sync(ctx, modifiedrange.State{})
	for doc, err := range sync.Documents() {
		if unsuited(err) {
			return false, false
		}
		if doc != nil {
			if c.Policy.SameOrigin && !fetch.AreSameOrigin(doc.URL, first.URL) {
				return false, false // and the other way says so
			}
			all.add(doc.Entries)
		}
		if !yield(doc, err) {
			return true, false
		}
	}
	since, whole := sync.State()
	if !whole {
		return true, false
	}
	proven = len(all) == readHead(first).total
	for doc, err := range client.Sync(ctx, since).Documents() {
		if err != nil || len(doc.Entries) > 0 {
			proven = false
		}
		if err == nil && len(doc.Entries) == 0 {
			continue
		}
		if !yield(doc, err) {
			return true, false
		}
	}
	return true, proven
}

// unsuited reports whether there is no walking by ranges: the server ignores
// them, or its entries do not say when they were updated.
func unsuited(err error) bool {
	_, ignored := errors.AsType[*modifiedrange.IgnoredError](err)
	_, unstamped := errors.AsType[*modifiedrange.StampError](err)
	return ignored || unstamped
}

// bloggerSeries counts entries rather than pages.
func bloggerSeries(s *source) *series {
	return &series{source: s, end: AtEmpty, cursor: true, url: func(s *series) string {
		return with(s.doc.URL, "start-index", strconv.Itoa(s.count+1), "max-results", bloggerMost)
	}}
}
