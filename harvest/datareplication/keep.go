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
// been removed from the feed before, so the verdict is not whole. Resources deleted
// unseen, before harvest.ErrReach, stay in the mirror when a second snapshot is read.
func (h *Harvester) Keep(ctx context.Context, m *mirror.Mirror, of Resources) (*mirror.Report, error) {
	const name = "datareplication"
	if err := settings.Check(name, settings.Number{Name: "Resources.Size", Value: int64(of.Size)}); err != nil {
		return nil, err
	}
	k := &keeper{Resources: of, h: h}
	if err := m.ReadMark(ctx, h.URL, name, &k.mark); err != nil {
		return nil, err
	}
	k.store = m.Store
	mark := func() json.RawMessage {
		mark, _ := json.Marshal(k.mark) // cannot fail: the stamp was text before
		return mark
	}
	return m.Keep(ctx, h.URL, mirror.Source{
		Name: name, Readings: k.readings(ctx), Mark: mark,
		End: func() (json.RawMessage, bool, time.Time) {
			return mark(), h.Snapshot != "" && of.Key != nil, time.Time{}
		},
	})
}

// A mark is a Mark, with the number of entities so far with its stamp.
type mark struct {
	Mark
	Order int `json:"order,omitempty"`
}

// A keeper makes documents of a harvest's entities.
type keeper struct {
	Resources
	h     *Harvester
	store mirror.Store
	yield func(*feedhistory.Reading, error) bool

	mark    mark // after the last document yielded
	begun   bool // a document was yielded
	stopped bool // no more documents are wanted

	doc    *feedhistory.Document // in the making
	bytes  int
	place          // after the last entity added
	places []place // before the first entity of the document, and after each
}

// A place is a place in the feed, after an entity.
type place struct {
	done   Mark
	last   time.Time // the stamp of that entity
	order  int       // the number of entities so far with this stamp
	number int       // the number of that entity on its page
}

// mostBodies is the approximate maximum size of the bodies in a document.
const mostBodies = 8 << 20

// readings harvests. A document ends with its page, unless the page is the newest, so the mark
// after it needs no page again. An error ends the harvest; if something has come before, even
// only the place where the next harvest begins to look, the error is a Gap.
func (k *keeper) readings(ctx context.Context) iter.Seq2[*feedhistory.Reading, error] {
	return func(yield func(*feedhistory.Reading, error) bool) {
		k.yield, k.place = yield, place{done: k.mark.Mark, last: k.mark.Time, order: k.mark.Order}
		k.begin()
		from := *k.h
		from.PageDone = func(at Mark) error {
			k.done = at
			return k.flush(ctx)
		}
		all := from.Harvest(ctx, k.mark.Mark)
		var err error
		for e, failed := range all.Entities() {
			if err = failed; err == nil && (k.n() >= cmp.Or(k.Size, 500) || k.bytes > mostBodies) {
				err = k.flush(ctx)
			}
			if err == nil {
				at, _ := all.Mark()
				err = k.add(e, at)
			}
			if err != nil {
				break
			}
		}
		if k.stopped {
			return
		}
		limit, failed := errors.AsType[*harvest.Error](err)
		if err == nil || failed && (limit.Limit == "requests" || errors.As(err, new(*feedhistory.Gap))) {
			k.done, _ = all.Mark() // perhaps nothing has come yet, but the place is nearer
		}
		if err = cmp.Or(k.flush(ctx), err); k.stopped || err == nil {
			return
		}
		if k.begun && ctx.Err() == nil {
			yield(&feedhistory.Reading{Gaps: []*feedhistory.Gap{gapOf(k.h.URL, err)}}, nil)
			return
		}
		yield(nil, err)
	}
}

func (k *keeper) begin() {
	k.doc = &feedhistory.Document{Format: feedhistory.FormatAtom, Title: k.h.URL, URL: k.h.URL}
	k.bytes, k.places = 0, append(k.places[:0], k.place)
}

// n returns the number of entities in the document.
func (k *keeper) n() int { return len(k.places) - 1 }

// flush yields the document, if there is something to store, and begins the next one. After an
// error, it is without the entity at fault, and those after that.
func (k *keeper) flush(ctx context.Context) error {
	err := k.cutRepeated(ctx)
	if k.n() == 0 && k.done == k.mark.Mark {
		return err
	}
	doc := k.doc
	doc.Updated = k.last.Add(time.Duration(k.order))
	k.mark = mark{Mark: k.done}
	if k.done.ContentID != "" {
		k.mark.Order = k.order
	}
	k.begin()
	k.begun = true
	if k.stopped = !k.yield(&feedhistory.Reading{Document: doc}, nil); k.stopped {
		return errStopped
	}
	return err
}

// add adds the effect of an entity; after is the harvest's mark after it. A resource
// of a snapshot, where there is no mark yet, gets the stamp itself, so a change in
// the feed within the same second is newer.
func (k *keeper) add(e *Entity, after Mark) error {
	at := e.Modified
	if !after.IsZero() {
		if !at.Equal(k.last) {
			k.last, k.order = at, 0
		}
		k.order++
		at = at.Add(time.Duration(k.order))
	}
	key, err := e.ContentID, error(nil)
	if k.Key != nil {
		key, err = k.Key(e)
	} else if key == "" {
		err = errors.New("it has no Content-ID, so a Key is required")
	}
	if err == nil {
		err = k.apply(key, at, e)
	}
	if err != nil {
		return fmt.Errorf("%s: entity %q: %w", e.Page, clip(e.ContentID), err)
	}
	k.done, k.number = after, e.number
	k.places = append(k.places, k.place)
	k.bytes += len(e.Body)
	return nil
}

// cutRepeated removes the entities from the first on whose Content-ID another entity in the
// log has, and returns the error. A Harvest remembers only the latest Content-IDs.
func (k *keeper) cutRepeated(ctx context.Context) error {
	if k.Key != nil || k.h.Lenient || k.n() == 0 {
		return nil
	}
	ids := make([]string, k.n())
	for i, e := range k.doc.Entries {
		ids[i] = e.ID
	}
	known, err := k.store.Records(ctx, k.h.URL, ids)
	if err != nil {
		return err
	}
	for i, e := range k.doc.Entries {
		old := known[e.ID]
		if old == nil || old.State == mirror.Erased || old.Copy.At.Equal(e.Updated) {
			continue
		}
		at := k.places[i+1]
		k.doc.Entries, k.places, k.place = k.doc.Entries[:i], k.places[:i+1], k.places[i]
		return malformed(at.done.Page, at.number, fmt.Errorf("%w: %q", ErrRepeatedID, clip(e.ID)), clauseParts)
	}
	return nil
}

// apply adds an entry or its deletion.
func (k *keeper) apply(key string, at time.Time, e *Entity) (err error) {
	draft := compose.Draft{ID: key, Updated: at, Title: feedhistory.Text{Body: key}}
	switch {
	case k.Key == nil:
		draft.Categories = []feedhistory.Category{{Term: string(e.Operation)}}
	case e.Operation == Delete:
		k.doc.Deleted = append(k.doc.Deleted, feedhistory.Tombstone{Ref: key, When: at})
		return nil
	case e.Operation == Patch && k.Patch == nil:
		return fmt.Errorf("a patch of %q cannot be applied without Resources.Patch", clip(key))
	case e.Operation == Patch:
		if e, err = k.Patch(key, e); err != nil {
			return err
		}
	case e.Operation != Put:
		return fmt.Errorf("unknown operation %q", clip(string(e.Operation)))
	}
	draft.Content = contentOf(e)
	entry, err := draft.Entry()
	if err != nil {
		return err
	}
	entry.Head = k.doc
	k.doc.Entries = append(k.doc.Entries, entry)
	return nil
}

// contentOf returns a body as the content of an Atom entry.
func contentOf(e *Entity) feedhistory.Text {
	kind := cmp.Or(e.Type, "application/octet-stream")
	media, _, _ := strings.Cut(strings.ToLower(kind), ";")
	media = strings.TrimSpace(media)
	isXML := strings.HasSuffix(media, "/xml") || strings.HasSuffix(media, "+xml") // which would need to be a document without a declaration
	if isXML || strings.HasPrefix(media, "text/") &&
		(!utf8.Valid(e.Body) || bytes.ContainsFunc(e.Body, func(r rune) bool { return !xmlscan.IsPlain(r) })) {
		kind = "application/octet-stream"
	}
	return feedhistory.Text{Type: kind, Body: string(e.Body)}
}
