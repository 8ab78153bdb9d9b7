package datareplication

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
	"github.com/feedhistory/feedhistory/mirror"
)

// Resources maps entities to resources. With the zero value, resources are unknown and
// the mirror is a log: each entity becomes an entry, with the Content-ID as its ID and
// the operation as a category.
type Resources struct {
	// Key returns the resource of an entity: the ID of its entry. A PUT replaces the
	// entry, a DELETE deletes it.
	Key func(*Entity) (string, error)

	// Patch returns the patched resource, for instance by requesting the resource; only
	// Type and Body of the result count. Patch has no effect without Key. If it is nil, a
	// PATCH is an error.
	Patch func(key string, e *Entity) (*Entity, error)

	Size int // Size is the number of entities to commit together; zero means 500, a negative one is an error.
}

// Keep harvests the feed of the Harvester into a mirror's store, beginning at the mark
// stored with the feed there. It stores the new mark in the same commit as the entities
// before it, and at the end of each page, so an interrupted Keep goes on there, and reads
// only the page under way again; only a snapshot begins again.
//
// An entry's content is the body: as text if its media type begins with text/,
// else in Base64, as Atom requires (RFC 4287 §4.1.3.3). Its update time is the
// entity's stamp; the nanoseconds count up within a second.
//
// If something has come before an error, the error is among the Gaps of the result, and
// the next Keep continues from there. Otherwise Keep returns the error, which comes
// from the harvest, the store or the context. Without a Snapshot, entities may have
// been removed from the feed before, so the verdict is not Whole. Resources deleted
// unseen, before harvest.ErrReach, stay in the mirror when a second snapshot is read.
func (h *Harvester) Keep(ctx context.Context, m *mirror.Mirror, of Resources) (*mirror.Report, error) {
	const name = "datareplication"
	if err := settings.Check(name, settings.Number{Name: "Resources.Size", Value: int64(of.Size)}); err != nil {
		return nil, err
	}
	d := documents{Resources: of, h: h}
	if err := m.ReadMark(ctx, h.URL, name, &d.mark); err != nil {
		return nil, err
	}
	d.store = m.Store
	mark := func() json.RawMessage {
		mark, _ := json.Marshal(d.mark) // cannot fail: the stamp was text before
		return mark
	}
	return m.Merge(ctx, h.URL, mirror.Source{
		Name: name, Documents: d.all(ctx), Mark: mark,
		End: func() (json.RawMessage, bool) { return mark(), h.Snapshot != "" && of.Key != nil },
	})
}

// A mark is a Mark, with the number of entities so far with its stamp.
type mark struct {
	Mark
	Order int `json:"order,omitempty"`
}

// documents is a harvest as documents to merge.
type documents struct {
	Resources
	h     *Harvester
	store mirror.Store
	mark  mark // the mark after the last entity yielded
}

// mostBodies is the approximate maximum size of the bodies in a document.
const mostBodies = 8 << 20

// all harvests. A document ends with its page, unless the page is the newest, so the mark after
// it needs no page again. An error ends the harvest; if something has come before, even only
// the place where the next harvest begins to look, the error is a *feedhistory.Gap.
func (d *documents) all(ctx context.Context) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		b := d.newBatch()
		b.yield = yield
		from := *d.h
		from.PageDone = func(at Mark) error {
			b.done = at
			return b.flush(ctx)
		}
		all := from.Harvest(ctx, d.mark.Mark)
		for e, err := range all.Entities() {
			if err == nil && b.full() {
				err = b.flush(ctx)
			}
			if err == nil {
				err = b.add(e, all.Mark())
			} else if limit, ok := errors.AsType[*harvest.Error](err); ok && limit.Limit == "requests" {
				b.done = all.Mark() // perhaps nothing has come yet, but the place is nearer
			}
			if err != nil {
				b.fail(ctx, err)
				return
			}
		}
		b.done = all.Mark()
		if err := b.flush(ctx); err != nil {
			b.fail(ctx, err)
		}
	}
}

// A batch is a document in the making.
type batch struct {
	*documents
	doc   *feedhistory.Document
	n     int // number of entities
	bytes int
	begun bool
	yield func(*feedhistory.Document, error) bool

	place          // after the last entity added
	places []place // before the first entity, and after each
}

// A place is a place in the feed, after an entity.
type place struct {
	done   Mark
	last   time.Time // the stamp of that entity
	order  int       // the number of entities so far with this stamp
	number int       // the number of that entity on its page
}

func (d *documents) newBatch() *batch {
	b := &batch{documents: d, place: place{done: d.mark.Mark, last: d.mark.Time, order: d.mark.Order}}
	b.begin()
	return b
}

func (b *batch) begin() {
	b.doc = &feedhistory.Document{Format: feedhistory.Atom, Title: b.h.URL, URL: b.h.URL}
	b.n, b.bytes, b.places = 0, 0, append(b.places[:0], b.place)
}

// isNew reports whether there is something to store.
func (b *batch) isNew() bool { return b.n > 0 || b.done != b.mark.Mark }

func (b *batch) full() bool { return b.n >= cmp.Or(b.Size, 500) || b.bytes > mostBodies }

// finish returns the document, and begins the next one.
func (b *batch) finish() *feedhistory.Document {
	doc := b.doc
	doc.Updated = b.last.Add(time.Duration(b.order))
	b.mark = mark{Mark: b.done}
	if b.done.ContentID != "" {
		b.mark.Order = b.order
	}
	b.begin()
	b.begun = true
	return doc
}

// flush yields the batch, if there is something to store.
func (b *batch) flush(ctx context.Context) error {
	if err := b.cutRepeated(ctx); err != nil {
		return err
	}
	if b.isNew() && !b.yield(b.finish(), nil) {
		return errStopped
	}
	return nil
}

// fail yields the batch so far, and then the error.
func (b *batch) fail(ctx context.Context, err error) {
	if err == errStopped {
		return
	}
	err = cmp.Or(b.cutRepeated(ctx), err)
	if b.isNew() && !b.yield(b.finish(), nil) {
		return
	}
	if b.begun && ctx.Err() == nil {
		err = harvest.NewGap(b.h.URL, err)
	}
	b.yield(nil, err)
}

// add adds the effect of an entity; after is the harvest's mark after it. A resource
// of a snapshot, where there is no mark yet, gets the stamp itself, so a change in
// the feed within the same second is newer.
func (b *batch) add(e *Entity, after Mark) error {
	at := e.Modified
	if !after.IsZero() {
		if !at.Equal(b.last) {
			b.last, b.order = at, 0
		}
		b.order++
		at = at.Add(time.Duration(b.order))
	}
	key, err := b.key(e)
	if err == nil {
		err = b.apply(key, at, e)
	}
	if err != nil {
		return fmt.Errorf("%s: entity %q: %w", e.Page, clip(e.ContentID), err)
	}
	b.done, b.number = after, e.number
	b.places = append(b.places, b.place)
	b.n++
	b.bytes += len(e.Body)
	return nil
}

// cutRepeated removes the entities from the first on whose Content-ID another entity in the
// log has, and returns the error. A Harvest remembers only the latest Content-IDs.
func (b *batch) cutRepeated(ctx context.Context) error {
	if b.Key != nil || b.h.Lenient || b.n == 0 {
		return nil
	}
	ids := make([]string, b.n)
	for i, e := range b.doc.Entries {
		ids[i] = e.ID
	}
	known, err := b.store.Records(ctx, b.h.URL, ids)
	if err != nil {
		return err
	}
	for i, e := range b.doc.Entries {
		old := known[e.ID]
		if old == nil || old.State == mirror.Erased || old.Copy.At.Equal(e.Updated) {
			continue
		}
		at := b.places[i+1]
		b.doc.Entries, b.n, b.place = b.doc.Entries[:i], i, b.places[i]
		return malformed(at.done.Page, at.number, fmt.Errorf("%w: %q", ErrRepeatedID, clip(e.ID)), clauseParts)
	}
	return nil
}

var errNoID = errors.New("it has no Content-ID, so a Key is required")

func (b *batch) key(e *Entity) (string, error) {
	switch {
	case b.Key != nil:
		return b.Key(e)
	case e.ContentID == "":
		return "", errNoID
	}
	return e.ContentID, nil
}

// apply adds an entry or its deletion.
func (b *batch) apply(key string, at time.Time, e *Entity) error {
	draft := compose.Draft{ID: key, Updated: at, Title: feedhistory.Text{Body: key}}
	switch {
	case b.Key == nil:
		draft.Categories = []compose.Category{{Term: string(e.Operation)}}
	case e.Operation == Delete:
		b.doc.Deleted = append(b.doc.Deleted, feedhistory.Tombstone{Ref: key, When: at})
		return nil
	case e.Operation == Patch:
		patched, err := b.patched(key, e)
		if err != nil {
			return err
		}
		e = patched
	case e.Operation != Put:
		return fmt.Errorf("unknown operation %q", clip(string(e.Operation)))
	}
	draft.Content = contentOf(e)
	entry, err := draft.Entry()
	if err != nil {
		return err
	}
	entry.Source = b.doc
	b.doc.Entries = append(b.doc.Entries, entry)
	return nil
}

func (b *batch) patched(key string, e *Entity) (*Entity, error) {
	if b.Patch == nil {
		return nil, fmt.Errorf("a patch of %q cannot be applied without Resources.Patch", clip(key))
	}
	return b.Patch(key, e)
}

// contentOf returns a body as the content of an Atom entry.
func contentOf(e *Entity) feedhistory.Text {
	kind := cmp.Or(e.Type, "application/octet-stream")
	media, _, _ := strings.Cut(strings.ToLower(kind), ";")
	media = strings.TrimSpace(media)
	switch {
	case strings.HasSuffix(media, "/xml") || strings.HasSuffix(media, "+xml"):
		kind = "application/octet-stream" // as XML it would need to be a document without a declaration
	case strings.HasPrefix(media, "text/") && utf8.Valid(e.Body) && !bytes.ContainsFunc(e.Body, func(r rune) bool { return !xmlscan.IsPlain(r) }):
		return feedhistory.Text{Type: kind, Body: string(e.Body)}
	case strings.HasPrefix(media, "text/"):
		kind = "application/octet-stream"
	}
	return feedhistory.Text{Type: kind, Body: string(e.Body)}
}
