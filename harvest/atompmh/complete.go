package atompmh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
)

// replace publishes the pool as one complete document (atom-pmh#19,
// atom-pmh#20).
func (p *Producer) replace(ctx context.Context) (err error) {
	unlock, err := p.Output.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	published, err := p.published()
	if err != nil {
		return err
	}
	if published != nil {
		if err := p.canReplace(published); err != nil {
			return err
		}
	}
	items, err := p.items(ctx, time.Time{})
	if err != nil {
		return err
	}
	items = slices.DeleteFunc(items, func(it Item) bool { return it.Deleted })
	now := p.now()
	items, future := split(items, now)
	entries, err := entriesOf(items)
	if err != nil {
		return err
	}
	entries = append(entries, former(future, published)...)
	if p.Historical && published != nil {
		entries = withHistory(entries, published)
	}
	slices.SortFunc(entries, func(a, b *feedhistory.Entry) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(b.ID, a.ID))
	})
	if err := p.put(ctx, entries, published, now); err != nil {
		return err
	}
	return early(future, now)
}

// former returns the published entries of records whose present entries wait
// for their time; otherwise the records would count as deleted.
func former(future []Item, published *feedhistory.Document) (entries []*feedhistory.Entry) {
	latest := map[string]*feedhistory.Entry{}
	if published != nil {
		for _, e := range published.Entries {
			if old := latest[e.ID]; old == nil || e.Updated.After(old.Updated) {
				latest[e.ID] = e
			}
		}
	}
	for _, it := range future {
		if old := latest[it.ID]; old != nil {
			entries = append(entries, old)
		}
	}
	return entries
}

// canReplace refuses to replace a feed with deletion entries, which readers may not
// have seen yet; a feed with archives, which would have to be read for the history of
// deleted records; and a file no Producer has written.
func (p *Producer) canReplace(published *feedhistory.Document) error {
	var why string
	switch {
	case published.Kind() == feedhistory.Archived:
		why = "it has archives"
	case slices.ContainsFunc(published.Entries, isDeletion):
		why = "it has deletion entries"
	case !published.Complete || p.head(published).ID != published.ID:
		return publish.ErrForeign
	default:
		return nil
	}
	return &DeletionsError{Published: ByEntry, Clause: "atom-pmh#17, atom-pmh#18", Err: errors.New(why)}
}

// withHistory adds the published entries of the records' earlier states.
func withHistory(entries []*feedhistory.Entry, published *feedhistory.Document) []*feedhistory.Entry {
	active := make(map[string]time.Time, len(entries))
	for _, e := range entries {
		active[e.ID] = e.Updated
	}
	for _, e := range published.Entries {
		if e.Updated.Before(active[e.ID]) {
			entries = append(entries, e)
		}
	}
	return entries
}

// put writes the complete document if it has anything new. Its update time is now, or
// its latest entry's (atom-pmh#5).
func (p *Producer) put(ctx context.Context, entries []*feedhistory.Entry, published *feedhistory.Document, now time.Time) error {
	doc := feedhistory.NewComplete(p.head(published), entries, p.URL())
	var old bytes.Buffer
	doc.Updated = time.Time{}
	if published != nil {
		doc.Updated = published.Updated
		if err := feedhistory.WriteAtom(&old, doc); err != nil {
			return err
		}
		if published.Text() == old.String() {
			return nil
		}
	}
	if now := now.UTC().Truncate(time.Second); now.After(doc.Updated) {
		doc.Updated = now
	}
	doc.Updated = updatedOf(doc)
	var text bytes.Buffer
	if err := feedhistory.WriteAtom(&text, doc); err != nil {
		return err
	}
	return p.Output.Put(ctx, p.name(), text.Bytes())
}
