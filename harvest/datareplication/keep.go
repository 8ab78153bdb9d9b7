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
	"github.com/feedhistory/feedhistory/mirror"
)

// Resources say what entities are about. The zero value says nothing of that:
// then each entity becomes an entry of its own in a mirror, which has the
// Content-ID as its ID, and the operation as a category, so what comes is a log.
type Resources struct {
	// Key says which resource an entity is about: the ID of its entry. A PUT
	// replaces that, a DELETE deletes it.
	Key func(*Entity) (string, error)

	// Patch returns what a resource is after an entity that patches it, for
	// instance by requesting it; only Type and Body count. It goes with Key. Nil:
	// a PATCH is an error.
	Patch func(key string, e *Entity) (*Entity, error)

	Size int // entities that are committed together; zero: 500
}

// Keep harvests into a mirror's store, from the place that its feed has there,
// and notes the next one in the same commit as the last entities; those before
// are committed on the way, and may come again after a crash, which does no
// harm. The feed's URL is the Client's.
//
// An entry's content is the body: as text if its media type begins with text/,
// else in Base64, as Atom has it (RFC 4287 §4.1.3.3). Its update time is the
// entity's stamp, and within one second of that the nanoseconds count.
//
// Where something has come before an error, that is among the Gaps of what is
// returned, and the next Keep goes on from there. The error is otherwise that of
// the harvest, the store's or the context's. Without a Snapshot nobody knows what
// was removed from the feed before, so the verdict is not Whole. What was removed
// from it unread, after a ReachError, stays in the mirror when a second snapshot is
// read.
func (c *Client) Keep(ctx context.Context, m *mirror.Mirror, of Resources) (*mirror.Changes, error) {
	const name = "datareplication"
	d := documents{Resources: of, c: c}
	if err := m.ReadMark(ctx, c.URL, name, &d.mark); err != nil {
		return nil, err
	}
	return m.Merge(ctx, c.URL, mirror.Source{
		Name: name, Documents: d.all(ctx),
		End: func() (json.RawMessage, bool) {
			mark, _ := json.Marshal(d.mark) // a stamp, which has come as text
			return mark, c.Snapshot != "" && of.Key != nil
		},
	})
}

// A mark is a cursor, and how many entities have come with the stamp that it
// has.
type mark struct {
	Cursor
	Order int `json:"order,omitempty"`
}

// documents are what a harvest brings, as documents to merge.
type documents struct {
	Resources
	c    *Client
	mark mark // after what was yielded
}

// mostBodies is how many bytes of bodies a document has, about.
const mostBodies = 8 << 20

// all harvests. An error ends it; if something has come before, it is a
// *feedhistory.Gap.
func (d *documents) all(ctx context.Context) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		h := d.c.Harvest(ctx, d.mark.Cursor)
		b := d.newBatch()
		for e, err := range h.Entities() {
			if err == nil {
				err = b.add(e, h.Cursor())
			}
			if err == nil && !b.full() {
				continue
			}
			if err != nil {
				b.fail(yield, err, h)
				return
			}
			if !yield(b.take(), nil) {
				return
			}
		}
		if b.done = h.Cursor(); b.n > 0 || b.done != d.mark.Cursor {
			yield(b.take(), nil)
		}
	}
}

// A batch is a document in the making.
type batch struct {
	*documents
	doc   *feedhistory.Document
	n     int // entities
	bytes int
	begun bool

	done  Cursor    // after the last entity that was added
	last  time.Time // its stamp
	order int       // how many had that
}

func (d *documents) newBatch() *batch {
	b := &batch{documents: d, done: d.mark.Cursor, last: d.mark.Time, order: d.mark.Order}
	b.begin()
	return b
}

func (b *batch) begin() {
	b.doc = &feedhistory.Document{Format: feedhistory.Atom, Title: b.c.URL, URL: b.c.URL}
	b.n, b.bytes = 0, 0
}

func (b *batch) full() bool { return b.n >= cmp.Or(b.Size, 500) || b.bytes > mostBodies }

// take returns the document, and begins another.
func (b *batch) take() *feedhistory.Document {
	doc := b.doc
	doc.Updated = b.last.Add(time.Duration(b.order))
	b.mark = mark{Cursor: b.done}
	if b.done.ContentID != "" {
		b.mark.Order = b.order
	}
	b.begin()
	b.begun = true
	return doc
}

// fail yields what has come, and the error.
func (b *batch) fail(yield func(*feedhistory.Document, error) bool, err error, h *Harvest) {
	if b.n > 0 && !yield(b.take(), nil) {
		return
	}
	if b.begun && h.ctx.Err() == nil {
		err = feedhistory.NewGap(b.c.URL, err)
	}
	yield(nil, err)
}

// add adds what an entity comes to, after which the harvest is at some place.
// A resource of a snapshot, where there is no such place yet, has its bare stamp,
// so that whatever changes it in the feed in the same second is newer.
func (b *batch) add(e *Entity, after Cursor) error {
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
		err = b.put(key, at, e)
	}
	if err != nil {
		return fmt.Errorf("%s: entity %q: %w", e.Page, clip(e.ContentID), err)
	}
	b.done = after
	b.n++
	b.bytes += len(e.Body)
	return nil
}

var errNoID = errors.New("it has no Content-ID to be known by; a Key is needed")

func (b *batch) key(e *Entity) (string, error) {
	switch {
	case b.Key != nil:
		return b.Key(e)
	case e.ContentID == "":
		return "", errNoID
	}
	return e.ContentID, nil
}

// put adds an entry, or its deletion.
func (b *batch) put(key string, at time.Time, e *Entity) error {
	draft := feedhistory.Draft{ID: key, Updated: at, Title: feedhistory.Text{Body: key}}
	switch {
	case b.Key == nil:
		draft.Categories = []feedhistory.Category{{Term: string(e.Operation)}}
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
		return fmt.Errorf("the operation %q means nothing", clip(string(e.Operation)))
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
		return nil, fmt.Errorf("a patch of %q cannot be applied without the function for it", clip(key))
	}
	return b.Patch(key, e)
}

// contentOf is a body as Atom's content.
func contentOf(e *Entity) feedhistory.Text {
	kind := cmp.Or(e.Type, "application/octet-stream")
	media, _, _ := strings.Cut(strings.ToLower(kind), ";")
	media = strings.TrimSpace(media)
	switch {
	case strings.HasSuffix(media, "/xml") || strings.HasSuffix(media, "+xml"):
		kind = "application/octet-stream" // as XML it would have to stand by itself, without a declaration
	case strings.HasPrefix(media, "text/") && utf8.Valid(e.Body) && !bytes.ContainsFunc(e.Body, notXML):
		return feedhistory.Text{Type: kind, Body: string(e.Body)}
	case strings.HasPrefix(media, "text/"):
		kind = "application/octet-stream"
	}
	return feedhistory.Text{Type: kind, Body: string(e.Body)}
}

// notXML reports whether a character cannot stand in XML, or not as it is.
func notXML(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff
}
