package datareplication

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/feedhistory/feedhistory/internal/replication"
	"github.com/feedhistory/feedhistory/publish"
)

// An EntityError says which entity was refused. Nothing of the call has been
// published then.
type EntityError struct {
	Index     int // the index of the entity in the call, from 0
	ContentID string
	Err       error // matches ErrOperation, ErrRepeatedID or ErrField
}

// Error names the entity.
func (e *EntityError) Error() string {
	return fmt.Sprintf("entity %d, %q: %v", e.Index, clip(e.ContentID), e.Err)
}

// Unwrap returns Err.
func (e *EntityError) Unwrap() error { return e.Err }

// A writer writes the pages of a feed or of a snapshot, one after another.
type writer struct {
	ctx  context.Context
	out  publish.Output
	stem func(number int) string
	most int64 // maximum bytes of a page

	turned bool // whether nothing more may be added to the page

	page   *sheet  // the page being written; nil if there is none yet
	fresh  []byte  // its entities not stored yet
	merged []piece // files whose content is now in another file
}

// add adds an entity prepared by ready to a page.
func (w *writer) add(e *Entity) error {
	if w.page == nil || w.turned || w.full(e) || bytes.Contains(e.Body, []byte(w.page.Boundary)) {
		if err := w.turn(); err != nil {
			return err
		}
	}
	w.fresh = appendEntity(w.fresh, w.page.Boundary, e)
	w.page.Modified = e.Modified
	return nil
}

// full reports whether a page has no room for an entity.
func (w *writer) full(e *Entity) bool {
	used := w.page.bytes() + int64(len(w.fresh))
	return used > 0 && used+int64(len(e.Body)) > w.most
}

// turn closes the page and begins the next one.
func (w *writer) turn() error {
	number := 1
	if w.page != nil {
		if err := w.close(); err != nil {
			return err
		}
		number = w.page.Number + 1
	}
	w.turned = false
	w.page = &sheet{Number: number, Boundary: rand.Text() + rand.Text()}
	return nil
}

// close stores the page in its final form, with all entities in one file.
func (w *writer) close() error {
	stem := w.stem(w.page.Number)
	all, err := w.merge(w.page.Parts)
	if err != nil {
		return err
	}
	w.page.Parts = []piece{{entitiesName(stem), int64(len(all))}}
	w.fresh = nil
	if err := w.out.Put(w.ctx, entitiesName(stem), all); err != nil {
		return err
	}
	return store(w.ctx, w.out, sheetName(stem), w.page)
}

// keep stores the new entities of an open page. Rewriting one file each time would take
// time proportional to the square of the number of entities, and a file for each entity
// would be slow to read. So a new file absorbs the preceding files no larger than
// itself: a byte is written again each time its file has doubled, and the number of
// files is at most the logarithm (base 2) of the page's size.
func (w *writer) keep() error {
	if len(w.fresh) == 0 {
		return nil
	}
	first, size := len(w.page.Parts), int64(len(w.fresh))
	for first > 0 && w.page.Parts[first-1].Size <= size {
		first--
		size += w.page.Parts[first].Size
	}
	data, err := w.merge(w.page.Parts[first:])
	if err != nil {
		return err
	}
	w.page.Parts = w.page.Parts[:first:first]
	from := w.page.bytes()
	name := pieceName(w.stem(w.page.Number), from, from+size)
	w.page.Parts = append(w.page.Parts, piece{name, size})
	w.fresh = nil
	return w.out.Put(w.ctx, name, data)
}

// merge returns the content of files, followed by the new entities. The files
// are to be removed once nothing refers to them.
func (w *writer) merge(pieces []piece) ([]byte, error) {
	var all []byte
	for _, p := range pieces {
		data, err := fs.ReadFile(w.out, p.Name)
		if err != nil {
			return nil, err
		}
		if int64(len(data)) != p.Size {
			return nil, fmt.Errorf("%s: %d bytes, but there should be %d", p.Name, len(data), p.Size)
		}
		all = append(all, data...)
		w.merged = append(w.merged, p)
	}
	return append(all, w.fresh...), nil
}

// appendEntity appends an entity as it is sent (datareplication#feed-4),
// preceded by its delimiter.
func appendEntity(b []byte, boundary string, e *Entity) []byte {
	field := func(name, value string) {
		b = append(b, name...)
		b = append(b, ": "...)
		b = append(b, value...)
		b = append(b, "\r\n"...)
	}
	b = append(b, "--"...)
	b = append(b, boundary...)
	b = append(b, "\r\n"...)
	field(replication.FieldType, cmp.Or(e.Type, "application/octet-stream"))
	field(replication.FieldModified, e.Modified.Format(http.TimeFormat))
	field("Content-Length", strconv.Itoa(len(e.Body)))
	if e.ContentID != "" {
		field("Content-ID", e.ContentID)
	}
	if e.Operation != "" {
		field(replication.FieldOperation, "http-equiv="+string(e.Operation))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Header)) {
		if ours(name) {
			continue
		}
		for _, value := range e.Header[name] {
			field(name, value)
		}
	}
	b = append(b, "\r\n"...)
	b = append(b, e.Body...)
	return append(b, "\r\n"...)
}

// ending returns the text after the last entity of a page.
func (s *sheet) ending() string { return "--" + s.Boundary + "--\r\n" }

// ours reports whether appendEntity itself writes a field.
func ours(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case replication.FieldType, replication.FieldModified, replication.FieldID, replication.FieldOperation, "Content-Length":
		return true
	}
	return false
}

// check refuses an entity it cannot write as header fields.
func (e *Entity) check() error {
	values := []string{e.Type, e.ContentID}
	for name, more := range e.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("%q: %w", clip(name), ErrField)
		}
		values = append(values, more...)
	}
	for _, v := range values {
		if !httpguts.ValidHeaderFieldValue(v) || strings.TrimSpace(v) != v {
			return fmt.Errorf("%q: %w", clip(v), ErrField)
		}
	}
	return nil
}

// ready prepares entities to be published in a feed, all with the same stamp.
func ready(entities []Entity, stamp time.Time) ([]Entity, error) {
	all := slices.Clone(entities)
	seen := make(map[string]bool, len(all))
	for i := range all {
		e := &all[i]
		refused := func(err error) ([]Entity, error) { return nil, &EntityError{i, e.ContentID, err} }
		e.Modified, e.Operation = stamp, cmp.Or(e.Operation, Put)
		switch e.Operation {
		case Put, Delete, Patch:
		default:
			return refused(ErrOperation)
		}
		if e.ContentID == "" {
			e.ContentID = rand.Text()
		}
		if err := e.check(); err != nil {
			return refused(err)
		}
		if seen[e.ContentID] {
			return refused(ErrRepeatedID)
		}
		seen[e.ContentID] = true
	}
	return all, nil
}
