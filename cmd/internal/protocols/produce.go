package protocols

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// A Production is a collection to publish for harvests, and how.
type Production struct {
	Protocol   string          `required:"" enum:"atom-pmh,datareplication,modified-range" placeholder:"PROTOCOL" help:"The protocol: atom-pmh, datareplication or modified-range."`
	Out        string          `placeholder:"DIR" help:"Directory in which to publish; produce creates it if necessary. Not with modified-range."`
	Listen     terminal.Listen `placeholder:"ADDRESS" help:"Serve the result at this address until interrupted; port 0 means any free port."`
	DB         string          `name:"db" placeholder:"FILE|URL" help:"With atom-pmh and modified-range: keep the collection in a database instead: a file, or a postgres:// URL. --listen serves it while other runs add to it."`
	Base       string          `placeholder:"URL" help:"URL where the result is served (default: the URL of --listen)."`
	Title      string          `help:"With atom-pmh and modified-range: the feed's title."`
	Deletions  string          `default:"entry" enum:"entry,absence" placeholder:"WAY" help:"With atom-pmh: announce deletions by an entry (the default), or by the absence of records from one complete document."`
	Settle     time.Duration   `least:"0s" placeholder:"TIME" help:"With atom-pmh: how long after its stamp a change may become visible."`
	Historical bool            `of:"atom-pmh" help:"With atom-pmh: keep the entries of records' earlier states."`
	Size       int             `least:"0" placeholder:"N" help:"Number of entries in an archive, or of items in an answer (default: 100)."`
	PageSize   terminal.Size   `least:"1" default:"1MB" placeholder:"SIZE" help:"With datareplication: size of a page (default: ${default})."`
	CleanUp    terminal.Moment `placeholder:"TIME" help:"With datareplication: then remove the old pages no harvester needs that was up to date at TIME: a time, a date, or how long ago, such as 30d."`
	Snapshot   bool            `of:"datareplication" help:"With datareplication: the lines are all resources; publish a snapshot of them, from which new harvesters begin."`
}

// Produce publishes the lines in a directory. It returns a handler for serving the result; an
// error with the exit status if something cannot be published yet; and any other error.
func (c *Production) Produce(w *command.World, log *slog.Logger) (http.Handler, error, error) {
	spareMemory()
	if c.Protocol == AtomPMH {
		return c.producePMH(w, log)
	}
	handler, err := c.produceReplication(w, log)
	return handler, nil, err
}

// Pools reports whether the collection is produced from a database.
func (c *Production) Pools() bool {
	return c.DB != "" || c.Protocol == ModifiedRange || c.Protocol == AtomPMH && c.Out == "" && c.Deletions == "entry" && c.Settle == 0
}

// producePMH publishes metadata records.
func (c *Production) producePMH(w *command.World, log *slog.Logger) (handler http.Handler, waiting, err error) {
	p := &atompmh.Producer{
		Output: publish.Dir{Path: c.Out}, Base: c.Base, ByAbsence: c.Deletions == "absence", Settle: c.Settle, Historical: c.Historical, Split: compose.Split{Size: c.Size},
		Pool: func(_ context.Context, since time.Time) iter.Seq2[atompmh.Item, error] {
			return c.linesSince(w, since)
		},
	}
	if c.Title != "" {
		p.Head = &feedhistory.Document{Title: c.Title}
	}
	err = p.Update(w.Ctx)
	if only := onlyFuture(err); only != "" {
		w.Say(only)
		waiting, err = terminal.StatusError(terminal.ExitPartial), nil
	}
	if err != nil {
		return nil, nil, err
	}
	w.Tell("the feed: " + p.URL())
	return &publish.Handler{FS: &command.Root{Name: c.Out}, Logger: log}, waiting, nil
}

// linesSince yields the records described by lines, those changed since a time.
func (c *Production) linesSince(w *command.World, since time.Time) iter.Seq2[atompmh.Item, error] {
	return func(yield func(atompmh.Item, error) bool) {
		n, repeats := 0, repetitions{World: w}
		for line, err := range show.Lines[Change](w.Stdin) {
			if err == nil && (line.Kind == historicalKind || line.Kind == allKind) {
				continue
			}
			var item atompmh.Item
			if err == nil {
				item, err = itemOf(line)
			}
			if err == nil {
				repeats.tell(item)
			}
			if n++; err == nil && item.Modified.Before(since) {
				continue
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
		if n == 0 && c.Deletions == "absence" {
			yield(atompmh.Item{}, errors.New("the input has no record: publishing none would delete all"))
		}
	}
}

// repetitions tells once that records have representations of one type.
type repetitions struct {
	*command.World
	told bool
}

// tell says it of a record.
func (r *repetitions) tell(item atompmh.Item) {
	for i, of := range item.Representations {
		if !r.told && slices.ContainsFunc(item.Representations[:i], func(s atompmh.Representation) bool { return s.Type == of.Type }) {
			r.told = true
			r.Tell(fmt.Sprintf("the record %q has several representations of the type %q: Atom allows one alternate of a type, so the others are published as related, where consumers do not find them", item.ID, of.Type))
		}
	}
}

// onlyFuture says which records have a time in the future; "" if something else is wrong,
// too.
func onlyFuture(err error) string {
	if !errors.Is(err, harvest.ErrFuture) || errors.Is(err, harvest.ErrLate) || errors.Is(err, harvest.ErrSameTime) || errors.Is(err, harvest.ErrRecord) {
		return ""
	}
	return "not published yet: " + strings.ReplaceAll(err.Error(), "\n", "; ")
}

// itemOf returns the record described by a line in harvest's format.
func itemOf(line Change) (item atompmh.Item, err error) {
	item = atompmh.Item{ID: line.ID, Title: line.Title, Representations: line.Representations, Deleted: line.Kind == atompmh.Deleted.String()}
	if line.Kind != "" && line.Kind != atompmh.Record.String() && line.Kind != historicalKind && !item.Deleted {
		return item, fmt.Errorf("the record %q is of the kind %q: neither record nor deleted", line.ID, line.Kind)
	}
	if item.Modified, err = time.Parse(time.RFC3339, line.Time); err != nil {
		return item, fmt.Errorf("the record %q: time is not a time such as 2003-12-13T18:30:02Z: %q", line.ID, line.Time)
	}
	return item, nil
}

// A jsonResource is an entity as harvest prints it, with further header fields.
type jsonResource struct {
	Entity
	Header map[string]string `json:"header"`
}

func (j jsonResource) entity() datareplication.Entity {
	e := datareplication.Entity{
		ContentID: j.ID, Operation: datareplication.Operation(strings.ToUpper(j.Operation)), Type: j.Type, Body: j.Base64,
	}
	if j.Base64 == nil {
		e.Body = []byte(j.Body)
	}
	for name, value := range j.Header {
		if e.Header == nil {
			e.Header = textproto.MIMEHeader{}
		}
		e.Header.Set(name, value)
	}
	return e
}

// produceReplication appends entities, or makes a snapshot.
func (c *Production) produceReplication(w *command.World, log *slog.Logger) (http.Handler, error) {
	p := &datareplication.Producer{Output: publish.Dir{Path: c.Out}, PageSize: int64(c.PageSize)}
	var err error
	if c.Snapshot {
		lines := show.Lines[jsonResource](w.Stdin)
		err = p.Snapshot(w.Ctx, func(yield func(datareplication.Entity, error) bool) {
			for line, err := range lines {
				if !yield(line.entity(), err) {
					return
				}
			}
		})
	} else {
		err = c.append(w, p)
	}
	if err == nil && !c.CleanUp.IsZero() {
		err = p.CleanUp(w.Ctx, c.CleanUp.Time)
	}
	if err != nil {
		return nil, err
	}
	if c.Base != "" {
		w.Tell("the feed: " + c.Base)
	}
	if created, err := p.LastSnapshot(); err == nil && !created.IsZero() && c.Base != "" {
		w.Tell("the snapshot: " + strings.TrimSuffix(c.Base, "/") + "/snapshot")
	}
	return &datareplication.Handler{FS: publish.Dir{Path: c.Out}, Base: c.Base, Logger: log}, nil
}

// The entities are appended in portions of this many, or this many bytes.
const (
	appendEntities = 1000
	appendBytes    = 4 << 20
)

// append appends the entities of the lines. If the newest entity of the feed is among them,
// only those after it are new: an earlier run has appended the others.
func (c *Production) append(w *command.World, p *datareplication.Producer) (err error) {
	if w.FromTerminal() && !c.CleanUp.IsZero() {
		return nil
	}
	last, err := p.Last()
	if err != nil {
		return err
	}
	spool, err := createSpool()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSpool(spool)) }()
	n, first := 0, 0 // the number of lines, and of those appended before
	for line, err := range show.Lines[jsonResource](io.TeeReader(w.Stdin, spool)) {
		if err != nil {
			return err
		}
		if n++; line.ID != "" && line.ID == last.ContentID {
			first = n
		}
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var portion []datareplication.Entity
	size := 0
	n = 0
	for line, err := range show.Lines[jsonResource](spool) {
		if err != nil {
			return err
		}
		if n++; n <= first {
			continue
		}
		e := line.entity()
		portion, size = append(portion, e), size+len(e.Body)
		if len(portion) < appendEntities && size < appendBytes {
			continue
		}
		if err := p.Append(w.Ctx, portion...); err != nil {
			return err
		}
		clear(portion)
		portion, size = portion[:0], 0
	}
	return p.Append(w.Ctx, portion...)
}

// A Pooled is a collection produced from a database, in the order of its items' times.
// Harvests look for later times only, so an update may add no earlier ones; only the first
// load, of which nothing is served before its end, may come in any order.
type Pooled struct {
	*Production
	store    *database.Store
	feed     *mirror.Feed
	now      time.Time
	isLoaded atomic.Bool // the first load has ended

	newest  time.Time // of the items before this load
	pending []*mirror.Record
	size    int
	future  []string // the items whose time is still to come
	late    []error
	lates   int
}

// The changes of an update are sorted in portions of this many items or bytes, and stored in
// smaller commits.
const (
	poolSorted = 5000
	poolBytes  = 4 << 20
	poolCommit = 500
	mostLate   = 10 // the number of late items to name
)

// historicalMark separates the ID of an earlier state from its time.
const historicalMark = "\x00"

// OpenPool opens the collection's database.
func (c *Production) OpenPool(w *command.World) (*Pooled, error) {
	store, err := (&database.Location{DB: c.DB}).Create(w)
	if err != nil {
		return nil, err
	}
	if c.Listen == "" {
		oneCache(store)
	}
	p := &Pooled{Production: c, store: store, now: time.Now()}
	if err := p.open(w.Ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return p, nil
}

// open reads the state of the collection.
func (p *Pooled) open(ctx context.Context) (err error) {
	url := "urn:feedhistory:produced:" + p.Protocol
	if p.feed, err = p.store.Feed(ctx, url); errors.Is(err, mirror.ErrNotFound) {
		p.feed, err = mirror.NewFeed(url), nil
		p.feed.Title, p.feed.Next, p.feed.Source = p.Protocol, show.Never, p.Protocol
	}
	if err != nil {
		return err
	}
	p.isLoaded.Store(p.feed.Polls > 0)
	for r, err := range p.store.Entries(ctx, mirror.Query{Feed: p.feed.URL, States: mirror.Current | mirror.Former, Limit: 1}) {
		if err != nil {
			return err
		}
		p.newest = r.Time()
	}
	return nil
}

// query returns the query for the items that records become.
func query[T any](p *Pooled, item func(*mirror.Record) (T, error)) harvest.Query[T] {
	return func(ctx context.Context, start, end time.Time, limit int) (items []T, err error) {
		records, err := p.recent(ctx, start, end, limit)
		for _, r := range records {
			if err == nil {
				var it T
				it, err = item(r)
				items = append(items, it)
			}
		}
		return items, err
	}
}

// recent returns the states of items within a range of times, the latest first.
func (p *Pooled) recent(ctx context.Context, start, end time.Time, limit int) (found []*mirror.Record, err error) {
	q := mirror.Query{Feed: p.feed.URL, Since: start, Until: end, States: mirror.Current | mirror.Former, Limit: limit}
	for r, err := range p.store.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		r.ID, _, _ = strings.Cut(r.ID, historicalMark)
		found = append(found, r)
	}
	return found, nil
}

// clock returns the time of the latest item, because an item added later may still have a
// time before the present. It is the epoch while there is none.
func (p *Pooled) clock() time.Time {
	latest, err := p.recent(context.Background(), time.Time{}, time.Time{}, 1)
	if err != nil || len(latest) == 0 {
		return time.Unix(0, 0)
	}
	return latest[0].Time()
}

// pmhItem returns the metadata record of a stored one.
func pmhItem(r *mirror.Record) (atompmh.Item, error) {
	it := atompmh.Item{ID: r.ID, Modified: r.Time(), Title: r.Content.Title, Deleted: r.State != mirror.Live}
	if it.Deleted {
		return it, nil
	}
	e, err := r.Entry()
	if err == nil {
		it.Representations = atompmh.RepresentationsOf(e)
	}
	return it, err
}

// rangeItem returns the member of a collection that is stored as a record.
func rangeItem(r *mirror.Record) (modifiedrange.Item, error) {
	if r.State != mirror.Live {
		return modifiedrange.Item{Modified: r.Time(), Deleted: r.ID}, nil
	}
	e, err := r.Entry()
	return modifiedrange.Item{Modified: r.Time(), Entry: e}, err
}

// Close closes the database.
func (p *Pooled) Close() error { return p.store.Close() }

// Load adds the lines to the database. An exit status says some of them must wait for their
// time.
func (p *Pooled) Load(w *command.World) error {
	var err error
	if p.Protocol == AtomPMH {
		err = load(w, p, recordLines(w))
	} else {
		err = load(w, p, rangeLine)
	}
	if err == nil {
		err = p.end(w.Ctx)
	}
	if err != nil {
		return err
	}
	p.isLoaded.Store(true)
	if waiting := p.future; len(waiting) > 0 {
		w.Say("not published, because the time is still to come: record " + strings.Join(waiting[:min(len(waiting), mostLate)], "; "))
		return terminal.StatusError(terminal.ExitPartial)
	}
	return nil
}

// load adds the items of the lines; a line without an entry is about none.
func load[T any](w *command.World, p *Pooled, read func(T) (*mirror.Record, error)) error {
	for line, err := range show.Lines[T](w.Stdin) {
		var item *mirror.Record
		if err == nil {
			item, err = read(line)
		}
		if err == nil && item != nil {
			err = p.add(w.Ctx, item)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newItem returns the record of a state of an item; the entry of a deletion is a marker.
func newItem(id string, at time.Time, deleted bool, e *feedhistory.Entry) *mirror.Record {
	r := &mirror.Record{
		ID: id, State: mirror.Live, Copy: mirror.Copy{At: at, Digest: e.Digest()},
		Content: mirror.Content{Format: feedhistory.FormatAtom, Data: string(e.XML()), Title: e.Title().Plain(), Updated: at},
	}
	if deleted {
		r.State, r.Tombstone = mirror.Deleted, mirror.TombstoneRecord{When: at}
	}
	return r
}

// recordLines returns a function that returns the metadata record of a line.
func recordLines(w *command.World) func(line Change) (*mirror.Record, error) {
	repeats := repetitions{World: w}
	return func(line Change) (*mirror.Record, error) {
		if line.Kind == allKind {
			return nil, nil
		}
		it, err := itemOf(line)
		if err != nil {
			return nil, err
		}
		e, err := it.Entry()
		if err != nil {
			return nil, err
		}
		repeats.tell(it)
		return newItem(it.ID, it.Modified.UTC(), it.Deleted, e), nil
	}
}

// A rangeEntry is a line as publish.Lines reads it, except that an ID may occur again: the pool
// knows which states it has. Line is nil if the line is not about an entry.
type rangeEntry struct{ *publish.Line }

// UnmarshalJSON implements json.Unmarshaler.
func (e *rangeEntry) UnmarshalJSON(data []byte) (err error) {
	e.Line, err = publish.ReadLine(data)
	return err
}

// rangeLine returns the entry of a line.
func rangeLine(line rangeEntry) (*mirror.Record, error) {
	if line.Line == nil {
		return nil, nil
	}
	if line.Deleted.Deleted && line.Deleted.When.IsZero() {
		return nil, fmt.Errorf("the deletion of %q has no time", line.ID)
	}
	read := line.Entry
	if line.Deleted.Deleted {
		read = compose.Draft{ID: line.ID, Updated: line.Deleted.When.UTC()}.Entry
	}
	e, err := read()
	if err != nil {
		return nil, fmt.Errorf("the entry %q: %w", line.ID, err)
	}
	return newItem(line.ID, modifiedrange.StampOf(e).UTC(), line.Deleted.Deleted, e), nil
}

// Handler serves the collection: each answer is made from the database, as other processes
// may have changed it meanwhile.
func (p *Pooled) Handler(w *command.World, log *slog.Logger) http.Handler {
	var served http.Handler
	if p.Protocol == AtomPMH {
		h := &atompmh.Handler{URL: strings.TrimSuffix(p.Base, "/") + "/feed.atom", Size: p.Size, Logger: log, Items: query(p, pmhItem)}
		if p.Title != "" {
			h.Head = &feedhistory.Document{Title: p.Title}
		}
		w.Tell("the feed: " + h.URL)
		mux := http.NewServeMux()
		mux.Handle("/feed.atom", h)
		served = mux
	} else {
		w.Tell("the collection: " + p.Base)
		served = &modifiedrange.Handler{
			Head: &feedhistory.Document{ID: p.Base, Title: cmp.Or(p.Title, p.Base)}, Now: p.clock, Items: query(p, rangeItem), Limit: p.Size, Logger: log,
		}
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !p.isLoaded.Load() {
			rw.Header().Set("Retry-After", "10")
			http.Error(rw, "the collection is being loaded", http.StatusServiceUnavailable)
			return
		}
		served.ServeHTTP(rw, r)
	})
}

// add adds an item.
func (p *Pooled) add(ctx context.Context, item *mirror.Record) error {
	if strings.Contains(item.ID, historicalMark) {
		return fmt.Errorf("the id %q has a NUL character", item.ID)
	}
	if item.Copy.At.After(p.now) {
		p.future = append(p.future, fmt.Sprintf("%q, modified %s", item.ID, show.Time(item.Copy.At)))
		return nil
	}
	p.pending = append(p.pending, item)
	most := poolCommit
	if p.isLoaded.Load() {
		most = poolSorted
	}
	if p.size += len(item.Content.Data); len(p.pending) < most && p.size < poolBytes {
		return nil
	}
	return p.flush(ctx)
}

// flush stores the pending items, oldest first. Those the pool has already are left out.
func (p *Pooled) flush(ctx context.Context) error {
	slices.SortStableFunc(p.pending, func(a, b *mirror.Record) int {
		return cmp.Or(a.Copy.At.Compare(b.Copy.At), strings.Compare(a.ID, b.ID))
	})
	newest := p.newest
	for portion := range slices.Chunk(p.pending, poolCommit) {
		if err := p.commit(ctx, portion); err != nil {
			return err
		}
		newest = portion[len(portion)-1].Copy.At
	}
	clear(p.pending)
	if p.pending, p.size = p.pending[:0], 0; newest.After(p.newest) {
		p.newest = newest
	}
	return nil
}

// end stores the remaining items, and ends the first load.
func (p *Pooled) end(ctx context.Context) error {
	if err := p.flush(ctx); err != nil {
		return err
	}
	if !p.isLoaded.Load() {
		p.feed.Polls = 1
		if err := p.store.Commit(ctx, &mirror.Commit{Feed: p.feed}); err != nil {
			return err
		}
	}
	if more := p.lates - len(p.late); more > 0 {
		p.late = append(p.late, fmt.Errorf("and %d more", more))
	}
	return errors.Join(p.late...)
}

// commit stores items, which are in the order of time.
func (p *Pooled) commit(ctx context.Context, items []*mirror.Record) error {
	ids := make([]string, len(items))
	for i, r := range items {
		ids[i] = r.ID
	}
	known, err := p.store.Records(ctx, p.feed.URL, ids)
	if err != nil {
		return err
	}
	change := &mirror.Commit{Feed: p.feed}
	at := map[string]int{} // the place of an ID in the change
	for _, r := range items {
		next := p.feed.Commits + 1
		r.Feed, r.FirstCommit, r.LastCommit, r.Added, r.Changed = p.feed.URL, next, next, p.now, p.now
		old := known[r.ID]
		switch err := p.judge(old, r); {
		case errors.Is(err, errSame):
			continue
		case err != nil:
			if p.lates++; len(p.late) < mostLate {
				p.late = append(p.late, err)
			}
			continue
		}
		if p.Historical && old != nil && old.State == mirror.Live {
			earlier, err := p.earlier(ctx, change, at, old)
			if err != nil {
				return err
			}
			change.Put = append(change.Put, earlier)
		}
		if i, again := at[r.ID]; again {
			change.Put[i] = r
		} else {
			at[r.ID] = len(change.Put)
			change.Put = append(change.Put, r)
		}
		known[r.ID] = r
		p.count(old, r)
	}
	if len(change.Put) == 0 {
		return nil
	}
	p.feed.Changed = p.now
	return p.store.Commit(ctx, change)
}

var errSame = errors.New("the pool has it already")

// judge returns why a state cannot follow the known one of the item, nil if there is none.
func (p *Pooled) judge(old, r *mirror.Record) error {
	refused := func(code harvest.Code, clause string) error {
		return &harvest.Error{Code: code, Item: r.ID, At: r.Copy.At, Clause: clause}
	}
	switch {
	case old != nil && old.Copy.At.Equal(r.Copy.At) && old.Copy.Digest == r.Copy.Digest && old.State == r.State:
		return errSame
	case old != nil && old.Copy.At.Equal(r.Copy.At):
		return refused(harvest.ErrSameTime, "atom-pmh#13, atom-pmh#24")
	case old != nil && old.Copy.At.After(r.Copy.At):
		return refused(harvest.ErrLate, "atom-pmh#12, atom-pmh#23")
	case p.isLoaded.Load() && r.Copy.At.Before(p.newest):
		return refused(harvest.ErrLate, "atom-pmh#7")
	}
	return nil
}

// earlier returns a state that another follows as a record of its own. It is still in the
// change, or else in the store.
func (p *Pooled) earlier(ctx context.Context, change *mirror.Commit, at map[string]int, old *mirror.Record) (*mirror.Record, error) {
	var r mirror.Record
	if i, ok := at[old.ID]; ok {
		r = *change.Put[i]
	} else {
		stored, err := mirror.Lookup(ctx, p.store, p.feed.URL, old.ID)
		if err != nil {
			return nil, err
		}
		r = *stored
	}
	r.ID += historicalMark + r.Copy.At.Format(time.RFC3339Nano)
	return &r, nil
}

// count counts the entries of the feed.
func (p *Pooled) count(old, r *mirror.Record) {
	was, is := old != nil && old.State == mirror.Live, r.State == mirror.Live
	switch {
	case is && !was:
		p.feed.Entries++
		if old != nil {
			p.feed.Deleted--
		}
	case was && !is:
		p.feed.Entries--
		p.feed.Deleted++
	case !is && old == nil:
		p.feed.Deleted++
	}
}
