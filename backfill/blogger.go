package backfill

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// Blogger recovers the feeds of Blogger, in Atom or RSS, by ranges of update times: it
// moves updated-max back until nothing is left. No change to the blog can move an entry
// out of such a walk. At the end it requests the changes made meanwhile, by
// updated-min, and then all summaries with the count: if each counted entry has come,
// the feed is whole. If an entry has appeared with an old time meanwhile, Blogger reads
// everything once more.
//
// If a server ignores the ranges, or does not say when its entries were updated,
// Blogger requests pages by start-index. The server may send fewer entries than
// max-results without saying so; Blogger counts those received.
//
// Such feeds also link from page to page, but those pages are smaller and shift
// when something is published, so Blogger does not follow the links.
type Blogger struct{}

// modeIndex is the mode of a Blogger Probe if the server ignores ranges.
const modeIndex = "start-index"

// bloggerMost is the maximum number of entries in an answer.
const bloggerMost = "150"

// Name returns "blogger".
func (Blogger) Name() string { return "blogger" }

// Recognise looks at the generator.
func (Blogger) Recognise(doc *feedhistory.Document) Sign {
	if doc == nil {
		return No
	}
	if generator := readHead(doc).generator; generator == "Blogger" || strings.HasPrefix(generator, "Blogger http") {
		return Yes
	}
	return No
}

// Probe makes no request: the walk itself notices whether the server supports ranges.
func (Blogger) Probe(context.Context, *feedhistory.Client, *feedhistory.Document, *Probe) (bool, error) {
	return true, nil
}

// Documents yields the answers of the server.
func (Blogger) Documents(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) iter.Seq2[*feedhistory.Document, error] {
	return walked(ctx, c, doc, p, func(s *source, yield func(*feedhistory.Document, error) bool) {
		b := &blogger{progress: progress{source: s, seen: ids(doc.Entries)}, yield: yield}
		if p.Mode != modeIndex && !b.task.place.begun() && !b.task.refill {
			heeded, proven := b.walk()
			if p.Proven = proven; heeded {
				return
			}
			p.Mode, b.task.place = modeIndex, place{}
		}
		if p.Mode == modeIndex {
			bloggerSeries(b.source).walk(yield)
			return
		}
		if b.task.place.Latest > 0 { // only a comparison is needed
			if _, _, p.Proven = b.prove(); p.Proven {
				b.task.place = place{}
				return
			}
		}
		rest := bloggerSeries(b.source)
		rest.apart = true
		rest.walk(func(doc *feedhistory.Document, err error) bool {
			if doc != nil {
				b.seen.add(doc.Entries)
			}
			return yield(doc, err)
		})
		if ctx.Err() == nil && !b.task.place.begun() {
			_, _, p.Proven = b.prove()
		}
	})
}

// count asks the server for the number of entries.
func (Blogger) count(ctx context.Context, c *feedhistory.Client, url string) (int, error) {
	doc, err := c.Get(ctx, url)
	if err != nil {
		return 0, err
	}
	return readHead(doc).total, nil
}

// A blogger is a walk by ranges of update times.
type blogger struct {
	progress
	yield func(*feedhistory.Document, error) bool
}

// walk reads everything, and again if entries turn out to be missing. It reports
// whether the server supports ranges, and whether all entries are proved to have come.
// If the server does not support them, more documents follow.
func (b *blogger) walk() (heeded, proven bool) {
	var last *census // with a gap: a post may go while the server lists them
	for {
		heeded, whole := b.ranges()
		if !heeded || !whole {
			if b.task.state = unended; heeded {
				b.task.state = restart
			}
			return heeded, false
		}
		c, gap, proven := b.prove()
		if gap != nil && last == nil {
			last = c
			continue
		}
		if gap != nil && c.equal(last) {
			b.yield(nil, gap)
		}
		b.task.place = place{}
		return true, proven
	}
}

// ranges reads all entries, and then those changed meanwhile. It reports whether the
// server supports ranges, and whether it came to the end.
func (b *blogger) ranges() (heeded, whole bool) {
	client := modifiedrange.Harvester{
		HTTP: b.c, URL: with(b.doc.URL, "start-index", "", "max-results", bloggerMost), Dialect: modifiedrange.GData,
	}
	b.task.place = place{}
	sync := client.Harvest(b.ctx, modifiedrange.Mark{})
	for doc, err := range documents(sync.Readings()) {
		if unsuited(err) {
			return false, false
		}
		if doc != nil {
			if b.c.OneOrigin && !iri.AreSameOrigin(doc.URL, b.doc.URL) {
				return false, false // the caller switches to the other way
			}
			b.seen.add(doc.Entries)
			b.task.place.Entries += len(doc.Entries)
		}
		if !b.yield(doc, err) {
			return true, false
		}
	}
	b.task.counter = with(b.doc.URL, "start-index", "", "max-results", "1")
	since, whole := sync.Mark()
	if !whole {
		return true, false
	}
	for doc, err := range documents(client.Harvest(b.ctx, since).Readings()) {
		if err == nil && len(doc.Entries) == 0 {
			continue
		}
		if doc != nil {
			b.seen.add(doc.Entries)
		}
		if !b.yield(doc, err) || err != nil {
			return true, false
		}
	}
	return true, true
}

// documents yields the documents of Readings, and gaps as errors, as a Method does.
func documents(readings iter.Seq2[*feedhistory.Reading, error]) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		for r, err := range readings {
			switch {
			case err != nil:
				yield(nil, err)
				return
			case r.Document != nil && !yield(r.Document, nil):
				return
			}
			for _, gap := range r.Gaps {
				if !yield(nil, gap) {
					return
				}
			}
		}
	}
}

// prove requests the list of all entries without their contents, and the count. It
// returns the gap for those that have not come, and reports whether all are proved to have
// come.
func (b *blogger) prove() (list *census, gap *feedhistory.Gap, proven bool) {
	url := strings.Replace(b.doc.URL, "/posts/default", "/posts/summary", 1)
	if url == b.doc.URL {
		return nil, nil, false
	}
	client := modifiedrange.Harvester{
		HTTP: b.c, URL: with(url, "start-index", "", "max-results", bloggerMost), Dialect: modifiedrange.GData,
	}
	list = &census{at: time.Now()}
	seen := set{}
	for doc, err := range documents(client.Harvest(b.ctx, modifiedrange.Mark{}).Readings()) {
		if err != nil {
			if gap, ok := errors.AsType[*feedhistory.Gap](err); ok {
				err = gap.Err
			}
			b.task.soon = !unsuited(err) && answer{err: err}.failure() != nil
			return nil, nil, false
		}
		list.total = cmp.Or(list.total, readHead(doc).total) // of the first answer, which has no range
		for _, e := range doc.Entries {
			if !seen[e.ID] {
				seen[e.ID] = true
				list.posts = append(list.posts, listedPost{names: []string{e.ID}})
			}
		}
	}
	missing, proven := list.compare(b.has)
	if b.task.listed = len(missing) == 0 && list.total <= len(list.posts); proven {
		b.task.total, b.task.proven = list.total, list.at
	}
	return list, list.gap(b.task.counter, missing, len(b.seen)), proven
}

// unsuited reports whether a walk by ranges is impossible: the server ignores
// them, or its entries have no update times.
func unsuited(err error) bool {
	return errors.Is(err, harvest.ErrIgnored) || errors.Is(err, harvest.ErrStamp)
}

// bloggerSeries counts entries instead of pages, in the usual order; if apart
// is set, in the order of updates, in which the feed's own document is not one
// of the pages.
func bloggerSeries(s *source) *series {
	return &series{progress: progress{source: s}, ending: atEmpty, cursor: true, url: func(s *series) string {
		order := ""
		if s.apart {
			order = "updated"
		}
		return with(s.doc.URL, "start-index", strconv.Itoa(s.count+1), "max-results", bloggerMost, "orderby", order)
	}}
}
