package datareplication

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/harvest"
	wire "github.com/feedhistory/feedhistory/internal/harvest"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/publish"
	"golang.org/x/net/http/httpguts"
)

// A Producer publishes a growing log of entities as a feed. Only Output must be set. A
// Handler serves its files.
//
// Its methods may be called at the same time; they take turns, but entities can be
// appended while Snapshot runs. Each method holds the Output's lock while it works; if
// another process has the lock, the error matches publish.ErrLocked. When a method
// returns nil, its effect is durable. After an error nothing of the call is published,
// unless the error is the Output's: then all of it may be, and Last tells.
type Producer struct {
	Output publish.Output

	// PageSize is the approximate maximum size of a page in bytes, unless a
	// single entity is larger. Zero means 1,000,000.
	PageSize int64

	Now func() time.Time // the clock for stamps; nil means time.Now

	mu    sync.Mutex
	swept bool
}

// Append publishes entities in the given order, either all of them or none. They are
// stamped with the present time, or with the stamp of the entity before if the clock is
// behind it (datareplication#producer-2). A harvest.ErrEntity names the refused entity, and its number in the call, from 0; nothing of
// the call has been published then.
//
// Entities without a ContentID get one. A ContentID must differ from those of earlier
// entities: Append checks only those of the call, and consumers stop at a repeated one.
// If the last entity has the ContentID of the feed's newest entity, the call repeats a
// successful one, and does nothing. So if you set the ContentIDs, it is always safe to
// repeat a failed call.
//
// Append makes two writes: of the entities, and of the feed's state, some 500
// bytes. If entities come one at a time, each is written again about ten times
// over the life of its page; if they come in large lots, it is not.
func (p *Producer) Append(ctx context.Context, entities ...Entity) error {
	return p.locked(ctx, func(s *state) error {
		if len(entities) == 0 {
			return nil
		}
		if last := entities[len(entities)-1].ContentID; last != "" && last == s.Last {
			return nil
		}
		all, err := ready(entities, p.stamp(s))
		if err != nil {
			return err
		}
		w := p.writer(ctx, s)
		for i := range all {
			if err := w.add(&all[i]); err != nil {
				return err
			}
		}
		if err := w.keep(); err != nil {
			return err
		}
		last := all[len(all)-1]
		s.Newest, s.Time, s.Last, s.Turn = w.page, last.Modified, last.ContentID, false
		if err := store(ctx, p.Output, stateName, s); err != nil {
			return err
		}
		p.discard(ctx, w.merged)
		return nil
	})
}

// stamp returns the stamp for the next entities. The first entities of a feed get at
// least the time of the snapshots before them, because a feed beginning later looks to
// consumers as if it had lost its beginning.
func (p *Producer) stamp(s *state) time.Time {
	now := seconds(settings.Now(p.Now))
	if s.Newest == nil && !s.Time.IsZero() || now.Before(s.Time) {
		return s.Time
	}
	return now
}

// writer returns a writer for continuing the newest page.
func (p *Producer) writer(ctx context.Context, s *state) *writer {
	w := &writer{ctx: ctx, out: p.Output, stem: pageStem, most: p.pageSize(), closed: s.Turn}
	if s.Newest != nil {
		page := *s.Newest
		w.page = &page
	}
	return w
}

func (p *Producer) pageSize() int64 { return cmp.Or(max(p.PageSize, 0), 1_000_000) }

// Last returns the end of the feed: the newest entity, or the zero Mark if
// there is none.
func (p *Producer) Last() (Mark, error) {
	s, err := p.state()
	if err != nil || s.Newest == nil {
		return Mark{}, err
	}
	return Mark{Time: s.Newest.Modified, ContentID: s.Last}, nil
}

// state returns the present state of the feed.
func (p *Producer) state() (*state, error) {
	if p.Output == nil {
		return nil, errNoOutput
	}
	return loadState(p.Output)
}

var errNoOutput = errors.New("datareplication: Producer.Output must be set")

// CleanUp removes the old pages, those no consumer needs whose mark is at or after
// the given time. So of the pages ending before that time, it keeps the newest. It
// never removes the newest page of the feed.
func (p *Producer) CleanUp(ctx context.Context, before time.Time) error {
	return p.locked(ctx, func(s *state) error {
		var old []piece
		for s.Newest != nil && s.Oldest < s.Newest.Number {
			page, err := s.page(p.Output, s.Oldest)
			if err != nil {
				return err
			}
			next, err := s.page(p.Output, s.Oldest+1)
			if err != nil {
				return err
			}
			if !next.Modified.Before(seconds(before)) {
				break
			}
			old = append(append(old, page.Parts...), piece{Name: sheetName(pageStem(s.Oldest))})
			s.Oldest++
		}
		if len(old) == 0 {
			return nil
		}
		if err := store(ctx, p.Output, stateName, s); err != nil {
			return err
		}
		p.discard(ctx, old)
		return nil
	})
}

// locked calls do as the only writer.
func (p *Producer) locked(ctx context.Context, do func(*state) error) (err error) {
	if p.Output == nil {
		return errNoOutput
	}
	if err := settings.Check("datareplication", settings.Number{Name: "Producer.PageSize", Value: p.PageSize}); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	unlock, err := p.Output.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	s, err := loadState(p.Output)
	if err != nil {
		return fmt.Errorf("datareplication: %w", err)
	}
	if !p.swept {
		p.sweep(ctx, pagesDir, s.isUsed)
		p.swept = true
	}
	if err = do(s); err != nil {
		p.swept = false
	}
	return err
}

// discard removes files nothing refers to any more. If one cannot be removed, it does
// no harm, and a later sweep removes it.
func (p *Producer) discard(ctx context.Context, pieces []piece) {
	for _, piece := range pieces {
		if p.Output.Remove(ctx, piece.Name) != nil {
			p.swept = false
		}
	}
}

// sweep removes the files of a directory nothing refers to.
func (p *Producer) sweep(ctx context.Context, dir string, isUsed func(name string) bool) {
	files, _ := fs.ReadDir(p.Output, dir) // there may be none yet
	var unused []piece
	for _, f := range files {
		if !isUsed(f.Name()) {
			unused = append(unused, piece{Name: path.Join(dir, f.Name())})
		}
	}
	p.discard(ctx, unused)
}

// isUsed reports whether a file of a page is not the remains of one after a crash.
func (s *state) isUsed(name string) bool {
	newest := 0
	if s.Newest != nil {
		newest = s.Newest.Number
		if slices.ContainsFunc(s.Newest.Parts, func(p piece) bool { return p.Name == path.Join(pagesDir, name) }) {
			return true
		}
	}
	number, rest, _ := strings.Cut(name, ".")
	n, err := strconv.Atoi(number)
	return err != nil || n >= s.Oldest && n < newest && !strings.Contains(rest, "-")
}

// refused says which entity of a call was refused.
func refused(index int, id string, err error) error {
	return &harvest.Error{Code: harvest.ErrEntity, Item: id, Text: fmt.Sprintf("entity %d, %q: %v", index, clip(id), err), Err: err}
}

// A writer writes the pages of a feed or of a snapshot, one after another.
type writer struct {
	ctx  context.Context
	out  publish.Output
	stem func(number int) string
	most int64 // maximum bytes of a page

	closed bool // whether nothing more may be added to the page

	page   *sheet  // the page being written; nil if there is none yet
	fresh  []byte  // its entities not stored yet
	merged []piece // files whose content is now in another file
}

// add adds an entity prepared by ready to a page.
func (w *writer) add(e *Entity) error {
	if w.page == nil || w.closed || w.full(e) || bytes.Contains(e.Body, []byte(w.page.Boundary)) {
		if err := w.nextPage(); err != nil {
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

// nextPage closes the page and begins the next one.
func (w *writer) nextPage() error {
	number := 1
	if w.page != nil {
		if err := w.close(); err != nil {
			return err
		}
		number = w.page.Number + 1
	}
	w.closed = false
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
	field(wire.FieldType, cmp.Or(e.Type, "application/octet-stream"))
	field(wire.FieldModified, e.Modified.Format(http.TimeFormat))
	field("Content-Length", strconv.Itoa(len(e.Body)))
	if e.ContentID != "" {
		field("Content-ID", e.ContentID)
	}
	if e.Operation != "" {
		field(wire.FieldOperation, "http-equiv="+string(e.Operation))
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
	case wire.FieldType, wire.FieldModified, wire.FieldID, wire.FieldOperation, "Content-Length":
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
		e.Modified, e.Operation = stamp, cmp.Or(e.Operation, Put)
		switch e.Operation {
		case Put, Delete, Patch:
		default:
			return nil, refused(i, e.ContentID, ErrOperation)
		}
		if e.ContentID == "" {
			e.ContentID = rand.Text()
		}
		if err := e.check(); err != nil {
			return nil, refused(i, e.ContentID, err)
		}
		if seen[e.ContentID] {
			return nil, refused(i, e.ContentID, ErrRepeatedID)
		}
		seen[e.ContentID] = true
	}
	return all, nil
}

// ErrSuperseded means another snapshot was begun while this one was being made; this
// one is abandoned.
var ErrSuperseded = errors.New("another snapshot was begun meanwhile")

// keptSnapshots is the number of snapshots to keep: the newest, and one somebody may
// still be reading.
const keptSnapshots = 2

// Snapshot publishes all present resources, as a place for new consumers to
// begin. It ranges over resources after it has begun. Entities may be appended
// meanwhile: changes during that time come with the feed as well
// (datareplication#snapshot-2). So each resource must be in its state of when
// the snapshot began, or in a later one.
//
// Of a resource, only Type, Body, Header and Modified are published. If the
// sequence yields an error, there is no snapshot, and Snapshot returns the
// error.
func (p *Producer) Snapshot(ctx context.Context, resources iter.Seq2[Entity, error]) error {
	snap := &snapshot{ID: rand.Text()}
	err := p.locked(ctx, func(s *state) error {
		p.beginSnapshot(s)
		snap.Created, s.Making = s.Time, snap.ID
		return store(ctx, p.Output, stateName, s)
	})
	if err != nil {
		return err
	}
	if err := p.resources(ctx, snap, resources); err != nil {
		return err
	}
	return p.locked(ctx, func(s *state) error {
		if s.Making != snap.ID {
			return ErrSuperseded
		}
		s.Making = ""
		s.Snapshots = append(s.Snapshots, snap)
		s.Snapshots = s.Snapshots[max(0, len(s.Snapshots)-keptSnapshots):]
		if err := store(ctx, p.Output, stateName, s); err != nil {
			return err
		}
		p.sweep(ctx, snapshotsDir, func(name string) bool {
			id, _, _ := strings.Cut(name, ".")
			return id == "" || slices.ContainsFunc(s.Snapshots, func(snap *snapshot) bool { return snap.ID == id })
		})
		return nil
	})
}

// beginSnapshot begins a snapshot in the feed: everything so far is stamped before it, and is on
// separate pages. So there is a page strictly older than the snapshot, which some
// consumers look for. In a feed without entities there can be none.
func (p *Producer) beginSnapshot(s *state) {
	s.Time = p.stamp(s)
	if s.Newest == nil {
		return
	}
	if s.Turn = true; !s.Time.After(s.Newest.Modified) {
		s.Time = s.Newest.Modified.Add(time.Second)
	}
}

// resources writes the pages of a snapshot.
func (p *Producer) resources(ctx context.Context, snap *snapshot, resources iter.Seq2[Entity, error]) error {
	w := &writer{
		ctx: ctx, out: p.Output, most: p.pageSize(),
		stem: func(number int) string { return snapshotStem(snap.ID, number) },
	}
	n := 0
	for e, err := range resources {
		if err != nil {
			return err
		}
		if err := e.check(); err != nil {
			return refused(n, e.ContentID, err)
		}
		n++
		if e.Modified.IsZero() {
			e.Modified = snap.Created
		}
		e.Modified = seconds(e.Modified)
		e.ContentID, e.Operation = "", ""
		if err := w.add(&e); err != nil {
			return err
		}
	}
	if w.page == nil {
		return nil
	}
	snap.Pages = w.page.Number
	return w.close()
}

// LastSnapshot returns when the last snapshot began; the zero time if there is
// none.
func (p *Producer) LastSnapshot() (time.Time, error) {
	s, err := p.state()
	if err != nil || len(s.Snapshots) == 0 {
		return time.Time{}, err
	}
	return s.Snapshots[len(s.Snapshots)-1].Created, nil
}

// The files of an Output. The state, which is one file and so is replaced in one step,
// decides everything: a file it does not name does not count. So the order of writes
// does not matter, and a crash at any point leaves the feed as it was before the call
// or as it is after it (datareplication#producer-1).
//
//	feed.json                      the state, with the newest page
//	pages/7.json                   an inner page
//	pages/7.entities               its entities, as they are sent
//	pages/8.0-512                  entities of the newest page: bytes from, to
//	snapshots/3F2A….1.json         a page of a snapshot
//	snapshots/3F2A….1.entities
const (
	stateName    = "feed.json"
	pagesDir     = "pages"
	snapshotsDir = "snapshots"
)

// A state is the content of a feed.
type state struct {
	Time      time.Time   `json:"time"`           // no later stamp is before this time
	Last      string      `json:"last,omitempty"` // the ContentID of the newest entity
	Oldest    int         `json:"oldest"`         // the number of the oldest page
	Newest    *sheet      `json:"newest,omitempty"`
	Turn      bool        `json:"turn,omitempty"`      // whether the next entity begins another page
	Snapshots []*snapshot `json:"snapshots,omitempty"` // newest last
	Making    string      `json:"making,omitempty"`    // the ID of the snapshot under way
}

// A sheet is a stored page.
type sheet struct {
	Number   int       `json:"number"`
	Boundary string    `json:"boundary"`
	Modified time.Time `json:"modified"` // the stamp of the last entity
	Parts    []piece   `json:"parts"`    // the files with the entities, in order
}

// A piece is a file with some of a page's entities.
type piece struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// A snapshot is a complete snapshot.
type snapshot struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Pages   int       `json:"pages"`
}

// bytes returns the length of the entities as they are sent.
func (s *sheet) bytes() (n int64) {
	for _, p := range s.Parts {
		n += p.Size
	}
	return n
}

// pageStem returns the beginning of the names of a page's files.
func pageStem(number int) string { return fmt.Sprintf("%s/%d", pagesDir, number) }
func snapshotStem(id string, number int) string {
	return fmt.Sprintf("%s/%s.%d", snapshotsDir, id, number)
}
func sheetName(stem string) string                 { return stem + ".json" }
func entitiesName(stem string) string              { return stem + ".entities" }
func pieceName(stem string, from, to int64) string { return fmt.Sprintf("%s.%d-%d", stem, from, to) }

// loadState reads the state; if there is none, the feed is empty.
func loadState(out fs.FS) (*state, error) {
	s := &state{Oldest: 1}
	err := load(out, stateName, s)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	return s, err
}

// loadSheet reads a stored page other than the newest.
func loadSheet(out fs.FS, stem string) (*sheet, error) {
	s := new(sheet)
	return s, load(out, sheetName(stem), s)
}

// page returns a page of the feed. If there is no such page, the error matches
// fs.ErrNotExist.
func (s *state) page(out fs.FS, number int) (*sheet, error) {
	switch {
	case s.Newest == nil || number < s.Oldest || number > s.Newest.Number:
		return nil, fs.ErrNotExist
	case number == s.Newest.Number:
		return s.Newest, nil
	}
	return loadSheet(out, pageStem(number))
}

func load(out fs.FS, name string, into any) error {
	data, err := fs.ReadFile(out, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func store(ctx context.Context, out publish.Output, name string, what any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return out.Put(ctx, name, append(data, '\n'))
}
