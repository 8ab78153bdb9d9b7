package republish

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A loss is the entries of a feed the mirror has and cannot read. Documents
// without them are not complete, and say so.
type loss struct {
	version int64    // of the feed
	ids     []string // in order
}

func (l loss) has(id string) bool {
	_, found := slices.BinarySearch(l.ids, id)
	return found
}

// add returns the loss with one more entry.
func (l loss) add(id string) loss {
	if at, found := slices.BinarySearch(l.ids, id); !found {
		l.ids = slices.Insert(slices.Clone(l.ids), at, id)
	}
	return l
}

// gaps returns the gap for the loss; none if nothing is lost.
func (l loss) gaps(feed *mirror.Feed) []*feedhistory.Gap {
	if len(l.ids) == 0 {
		return nil
	}
	address := cmp.Or(addressOf(feed), hostOf(feed))
	return []*feedhistory.Gap{{
		URL: address, From: address, Reason: feedhistory.ReasonMalformed, Found: feed.Changed,
		Err: fmt.Errorf("the mirror cannot read its copy of %s, such as %q", plural(len(l.ids), "entry", "entries"), l.ids[0]),
	}}
}

// coverageOf returns how much of a feed the mirror has, apart from a loss.
func coverageOf(feed *mirror.Feed, lost loss) *feedhistory.Coverage {
	c := feed.Coverage()
	c.Of, c.Gaps = addressOf(feed), gapsOf(feed)
	if len(lost.ids) > 0 {
		c.Verdict, c.Gaps = feedhistory.Worse(c.Verdict, feedhistory.Partial), slices.Concat(c.Gaps, lost.gaps(feed))
	}
	return c
}

// lost returns the known loss of a feed in its present state.
func (d *documents) lost(feed *mirror.Feed) loss {
	if known, ok := d.losses.Get(feed.URL); ok && known.version == feed.Commits {
		return known
	}
	return loss{version: feed.Commits}
}

// recordLoss finds the unreadable entries of a feed.
func (d *documents) recordLoss(ctx context.Context, feed *mirror.Feed) error {
	m, err := d.source(&part{feed: feed, format: feedhistory.Atom})
	if err != nil {
		return err
	}
	lost := loss{version: feed.Commits}
	for record, err := range d.store.Entries(ctx, mirror.Query{Feed: feed.URL}) {
		if err != nil {
			return err
		}
		if _, err := m.entry(record); err != nil {
			lost = lost.add(record.ID)
		}
	}
	d.losses.Put(feed.URL, lost)
	return nil
}
