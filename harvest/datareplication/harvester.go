package datareplication

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/fetch"
	wire "github.com/feedhistory/feedhistory/internal/harvest"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A Harvester reads one feed. Do not change its fields during a harvest.
type Harvester struct {
	// HTTP makes the requests, with its settings except for the limits on
	// documents, because pages may be larger: see Budget. A page may take an
	// hour. Nil means a client with default
	// settings.
	HTTP *feedhistory.Client

	URL string // URL is the URL of the feed, which leads to its newest page.

	// Header returns additional header fields for a request, such as Authorization with a
	// token. It is called for each request to the origin of URL, by several goroutines, so
	// tokens can be renewed. If it returns an error, the request fails. Nil means no
	// additional fields.
	Header func(ctx context.Context, url string) (http.Header, error)

	// Snapshot is the URL of a snapshot's index. A harvest without a mark
	// begins with the snapshot, and continues with the feed. If it is "", such
	// a harvest begins with the oldest page.
	Snapshot string

	// Lenient yields entities without a Content-ID, with the Content-ID of
	// another entity, or with an unknown operation. Otherwise such an entity
	// ends the harvest. After an entity without a Content-ID, a harvest can
	// only continue by time, so some entities come again.
	Lenient bool

	// PageDone is called when a page that has a successor has been read to its end, and at
	// the end of a snapshot, before the next request. The mark is the one to store then: a
	// harvest from there reads no page again, so one that is killed later costs only the
	// request under way. If PageDone returns an error, the harvest ends with it. Keep does
	// not call it.
	PageDone func(Mark) error

	Parallel int // Parallel is the number of pages of a snapshot to read at the same time; zero means 4.

	// Budget bounds the cost of one harvest. Most pages of the feed take a HEAD and a GET,
	// those of a snapshot a GET. Zero means 200,000 requests, 1 TiB a page, and 64 MiB an entity.
	Budget harvest.Budget
}

// withDefaults returns the limits of a harvest.
func withDefaults(b harvest.Budget) harvest.Budget {
	b.Requests, b.Page, b.Entity = cmp.Or(b.Requests, 200_000), cmp.Or(b.Page, 1<<40), cmp.Or(b.Entity, 64<<20)
	return b
}

// check returns an error for settings a Harvester cannot work with.
func (h *Harvester) check() error {
	return cmp.Or(h.Budget.Check("datareplication"), settings.Check("datareplication", settings.Number{Name: "Harvester.Parallel", Value: int64(h.Parallel)}))
}

// Harvest returns the harvest of the entities after the given mark. It makes no
// request until you range over its entities.
func (h *Harvester) Harvest(ctx context.Context, from Mark) *Harvest {
	return &Harvest{h: h, ctx: ctx, from: from, mark: from}
}

// A Harvest yields the entities of a feed after a Mark, up to the newest. Use
// it in one goroutine.
type Harvest struct {
	h    *Harvester
	ctx  context.Context
	from Mark

	mark     Mark
	whole    bool
	gaps     []*feedhistory.Gap
	requests int
}

// Entities yields the entities in the feed's order, each once it is whole. The
// entities of a snapshot come first: those of a page in its order, but those of
// several pages interleaved.
//
// An error ends the harvest: a *harvest.Error; the error of the request for the feed's URL,
// as feedhistory.Client.Get returns it; or the context's error. A missing page (404, 410)
// may have been cleaned up meanwhile, so the harvest then continues by itself from where it
// is; harvest.ErrPage is about one still linked to, and still missing. A snapshot begins
// again by itself only if none of its entities has been yielded. The entities yielded before are whole and in order, and the next
// harvest can continue from Mark. Ranging again starts the harvest again.
func (h *Harvest) Entities() iter.Seq2[*Entity, error] {
	return func(yield func(*Entity, error) bool) {
		*h = Harvest{h: h.h, ctx: h.ctx, from: h.from, mark: h.from}
		if err := h.h.check(); err != nil {
			yield(nil, err)
			return
		}
		limits := withDefaults(h.h.Budget)
		fetcher, done := wire.Fetcher(h.h.HTTP, limits.Page)
		defer done()
		r := &run{
			Harvest: h, ctx: fetch.WithFields(h.ctx, h.h.URL, h.h.Header), fetcher: fetcher, limits: limits, yield: yield,
		}
		err := r.run()
		if r.stopped {
			return
		}
		if err == nil && r.reach != nil {
			err = harvest.NewGap(r.h.URL, r.reach)
		}
		if cut := h.ctx.Err(); cut != nil && err != nil {
			err = cut
		}
		if h.whole = err == nil; !h.whole {
			h.gaps = append(h.gaps, gapOf(h.h.URL, err))
			yield(nil, err)
		}
	}
}

// gapOf returns an error as a gap.
func gapOf(url string, err error) *feedhistory.Gap {
	if gap, ok := errors.AsType[*feedhistory.Gap](err); ok {
		return gap
	}
	return harvest.NewGap(url, err)
}

// Mark returns the place after the last entity yielded, and whether the harvest has ended with
// nothing missing. After a snapshot it is the time when the snapshot began; before the first
// entity, where the harvest began. Store it together with your work on the entity, and once
// more at the end, whole or not.
//
// In the middle of a snapshot there is no such place: an interrupted snapshot
// is read again.
func (h *Harvest) Mark() (next Mark, whole bool) { return h.mark, h.whole }

// Gaps returns what is missing, or may be: the errors of a harvest that has ended.
func (h *Harvest) Gaps() []*feedhistory.Gap { return slices.Clone(h.gaps) }

// Requests returns the number of requests. Repetitions of a request do not
// count.
func (h *Harvest) Requests() int { return h.requests }

// seconds rounds a time down to the resolution of a stamp
// (datareplication#snapshot-2).
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// A run is a harvest under way.
type run struct {
	*Harvest
	ctx     context.Context // for the requests
	fetcher *feedhistory.Client
	limits  harvest.Budget
	yield   func(*Entity, error) bool
	stopped bool  // the caller has stopped ranging over the entities
	partly  bool  // part of a snapshot was yielded
	begun   bool  // part of the feed was yielded
	reach   error // the feed begins after the mark, which has only a time

	since Mark // where to begin in the feed
	walk
}

// A walk is one pass through the feed.
type walk struct {
	visited map[string]bool // the pages, by their identifying URLs
	ids     recentIDs
	found   bool      // the mark's entity was found
	earlier bool      // an entity is stamped before the mark, so the feed reaches back to it
	older   string    // the URL of the last page read that is stamped before the mark
	first   time.Time // the first stamp read
	last    time.Time // the last stamp read
}

// run reads the snapshot, if the harvest needs one, and then the feed.
func (r *run) run() error {
	r.since = r.from
	r.since.Time = seconds(r.from.Time)
	if r.from.IsZero() && r.h.Snapshot != "" {
		var created time.Time
		err := again(func() (err error) {
			created, err = r.snapshot()
			return err
		}, func() bool { return !r.partly })
		if err != nil || r.stopped {
			return err
		}
		r.since = Mark{Time: seconds(created)}
		r.mark = r.since
		if err := r.announce(); err != nil {
			return err
		}
	}
	return again(r.feed, func() bool { return true })
}

// again calls do, and calls it again if a page is missing, because it may have
// been cleaned up meanwhile; but not if the same page is missing again.
func again(do func() error, may func() bool) error {
	const tries = 10
	missing := ""
	for try := 1; ; try++ {
		err := do()
		page, ok := errors.AsType[*harvest.Error](err)
		if !ok || page.Code != harvest.ErrPage && page.Code != harvest.ErrSnapshot || !gone(err) || page.URL == missing || try == tries || !may() {
			return err
		}
		missing = page.URL
	}
}

// feed reads the feed from the start, or from where it was interrupted.
func (r *run) feed() error {
	if r.begun {
		r.since = r.mark
	}
	mark := r.since
	r.since.Page, r.since.Next = "", "" // a place is tried once
	newest, err := r.head(r.h.URL, "")
	switch {
	case err != nil:
		return err
	case newest.IsEmpty() && r.since.ContentID != "":
		return r.lost(newest.URL)
	case newest.IsEmpty(), newest.Next == "" && before(newest, r.since.Time): // datareplication#consumer-3
		return nil
	}
	if resumed, err := r.resume(mark); resumed {
		return err
	}
	r.walk = newWalk()
	from, err := r.ahead(newest)
	if err != nil || before(from, r.since.Time) {
		return err
	}
	r.walk = newWalk()
	return r.backFrom(from)
}

// ahead follows the links to newer pages while a page is stamped before the mark, because a
// URL may lead to another page than the newest (datareplication#feed-3). It returns the
// first page that is not, or the newest page.
func (r *run) ahead(page *wire.Page) (*wire.Page, error) {
	began := r.mark
	r.visited[page.Key()] = true
	for page.Next != "" && before(page, r.since.Time) {
		newer, err := r.head(page.Next, page.Key())
		if err == nil {
			err = r.follows(newer, page)
		}
		if err != nil {
			return nil, err
		}
		page = newer
		r.mark.Page, r.mark.Next = page.URL, "" // where a harvest cut short goes on
	}
	r.mark = began
	return page, nil
}

// follows checks whether a page to which an older one links names that one, and is new.
func (r *run) follows(page, older *wire.Page) error {
	if err := r.visit(older, page.Key()); err != nil {
		return err
	}
	if page.Prev != "" && !older.Is(page.Prev) {
		return linkError(page.URL, "prev", page.Prev, older.Key())
	}
	return nil
}

func newWalk() walk { return walk{visited: map[string]bool{}} }

// backFrom goes back from a page to the page where reading must begin, and reads from there.
func (r *run) backFrom(page *wire.Page) error {
	way, err := r.back(page)
	if err != nil {
		return err
	}
	return r.forward(nil, way)
}

// before reports whether everything on a page is stamped before a time.
func before(p *wire.Page, t time.Time) bool {
	return !p.Modified.IsZero() && p.Modified.Before(t)
}

// A step is a page to read, and the page linking to it.
type step struct{ url, from string }

// back goes from the newest page back to the page where reading must begin: one stamped
// before the mark, or else the oldest one (datareplication#consumer-1). It returns
// the pages on the way.
func (r *run) back(newest *wire.Page) (way []step, err error) {
	way = []step{{newest.Key(), r.h.URL}}
	r.mark.Page, r.mark.Next = newest.URL, ""
	if err := r.visit(newest, newest.Key()); err != nil {
		return nil, err
	}
	for newer := newest; newer.Prev != "" && !before(newer, r.since.Time); {
		older, err := r.head(newer.Prev, newer.Key())
		if gone(err) && r.isOldest(newer) {
			return way, nil
		}
		if err == nil {
			err = r.neighbours(older, newer, newer == newest)
		}
		if err != nil {
			return nil, err
		}
		way = append(way, step{older.Key(), newer.Key()})
		newer, r.mark.Page = older, older.URL
	}
	return way, nil
}

// isOldest reports whether a page no longer links to an older one, because the older
// one has been cleaned up meanwhile (datareplication#feed-6).
func (r *run) isOldest(page *wire.Page) bool {
	now, err := r.head(page.Key(), "")
	return err == nil && now.Prev == ""
}

// neighbours checks whether the links and stamps of two pages agree. The link to the
// newest page is written last, so it may still be missing (datareplication#producer-1).
func (r *run) neighbours(older, newer *wire.Page, newest bool) error {
	if err := r.visit(newer, older.Key()); err != nil {
		return err
	}
	switch {
	case older.Self != "" && !(older.Self == newer.Prev || older.Self == older.URL):
		return linkError(older.URL, "self", older.Self, newer.Prev)
	case older.Next == "" && newest, newer.Self == "" && newest:
	case !newer.Is(older.Next):
		return linkError(older.URL, "next", older.Next, newer.Key())
	}
	if !newer.Modified.IsZero() && newer.Modified.Before(older.Modified) {
		return stampError(newer.URL, "", newer.Modified, older.Modified)
	}
	return nil
}

// visit records a page another one links to.
func (r *run) visit(from *wire.Page, key string) error {
	if r.visited[key] {
		return &harvest.Error{Code: harvest.ErrLoop, URL: from.URL, Text: fmt.Sprintf("the link to %s makes a loop", key), Clause: clauseLinks}
	}
	r.visited[key] = true
	return nil
}

// forward reads the pages of a way, last first, and then those added since; after the last page
// of the way, or a given one.
func (r *run) forward(page *wire.Page, way []step) error {
	for len(way) > 0 || page.Next != "" {
		var at step
		var older *wire.Page
		if n := len(way); n > 0 {
			at, way = way[n-1], way[:n-1]
		} else {
			at, older = step{page.Next, page.Key()}, page
		}
		var err error
		if page, err = r.read(at, older); err == nil {
			err = r.endPage(page)
		}
		if err != nil || r.stopped {
			return err
		}
	}
	if r.since.ContentID != "" && !r.found {
		return r.missing(page.URL)
	}
	return nil
}

// goOn reads the pages after one already read.
func (r *run) goOn(page *wire.Page) error {
	r.visited[page.Key()] = true
	if err := r.endPage(page); err != nil {
		return err
	}
	return r.forward(page, nil)
}

// read reads a page and yields its entities after the mark. If an older page links to
// it and was not known to be its neighbour, the two must agree.
func (r *run) read(at step, older *wire.Page) (*wire.Page, error) {
	page, err := r.open(http.MethodGet, at.url, at.from)
	if err != nil {
		return nil, err
	}
	defer page.Close()
	if older != nil {
		if err := r.follows(page, older); err != nil {
			return nil, err
		}
	}
	if before(page, r.since.Time) {
		r.earlier, r.older = true, page.URL
	}
	err = r.entities(page, time.Time{}, func(e *Entity) error {
		if e.Modified.Before(r.last) {
			return stampError(page.URL, e.ContentID, e.Modified, r.last)
		}
		r.last = e.Modified
		return r.deliver(e)
	})
	if err == nil && !r.stopped && before(page, r.last) {
		err = stampError(page.URL, "", page.Modified, r.last)
	}
	return page, err
}

// errStopped ends the reading of a page when the caller has stopped.
var errStopped = errors.New("stopped")

// entities reads the entities of a page of the feed, or of a snapshot created at the
// given time.
func (r *run) entities(page *wire.Page, created time.Time, deliver func(*Entity) error) error {
	boundary, err := wire.Boundary(page.Header.Get(wire.FieldType))
	if err != nil {
		return malformed(page.URL, 0, err, clauseReading)
	}
	parts := wire.NewParts(page.Body(), boundary, r.limits.Entity)
	for n := 1; ; n++ {
		part, err := parts.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if cut := r.interrupted(page, n-1, err); cut != nil {
				return cut
			}
			return malformed(page.URL, n, err, clauseReading)
		}
		e, err := received(part, page.URL, created)
		if err != nil {
			return malformed(page.URL, n, err, clauseParts)
		}
		e.number = n
		if err := deliver(e); err != nil {
			return err
		}
	}
}

// deliver yields an entity if it comes after the mark.
func (r *run) deliver(e *Entity) error {
	if r.first.IsZero() {
		r.first = e.Modified
	}
	wanted, err := r.wanted(e)
	if err == nil {
		err = r.fault(e, wanted)
	}
	switch {
	case err != nil:
		return err
	case !wanted:
		if r.found { // it is the mark's entity
			r.mark.Page, r.mark.Next = e.Page, ""
		}
		return nil
	}
	r.mark, r.begun = Mark{Time: e.Modified, ContentID: e.ContentID, Page: e.Page}, true
	if r.stopped = !r.yield(e, nil); r.stopped {
		return errStopped
	}
	return nil
}

// fault returns the fault of a wanted entity, or of the mark's entity.
func (r *run) fault(e *Entity, wanted bool) error {
	if r.h.Lenient {
		return nil
	}
	repeated := r.ids.repeated(e.ContentID)
	if !wanted && e.ContentID != r.since.ContentID {
		return nil
	}
	err := e.fault()
	if err == nil && repeated {
		err = fmt.Errorf("%w: %q", ErrRepeatedID, clip(e.ContentID))
	}
	if err != nil {
		return malformed(e.Page, e.number, err, clauseParts)
	}
	return nil
}

// recentIDs notices repeated Content-IDs. It remembers digests of the last mostIDs at least,
// and of twice as many at most. A repetition beyond that is harmless to a mark, which also
// has the entity's stamp.
type recentIDs struct {
	newer, before map[[16]byte]struct{}
}

// mostIDs is the number of Content-IDs to remember: they take up to 16 MB.
const mostIDs = 1 << 17

// repeated reports whether an ID has come before, and remembers it.
func (r *recentIDs) repeated(id string) bool {
	sum := sha256.Sum256([]byte(id))
	key := [16]byte(sum[:])
	_, newer := r.newer[key]
	_, before := r.before[key]
	if newer || before {
		return true
	}
	if r.newer == nil || len(r.newer) == mostIDs {
		r.before, r.newer = r.newer, map[[16]byte]struct{}{}
	}
	r.newer[key] = struct{}{}
	return false
}

// wanted reports whether an entity comes after the mark (datareplication#consumer-2). The error reports a feed
// without the mark's place.
func (r *run) wanted(e *Entity) (bool, error) {
	since := r.since
	if e.Modified.Before(since.Time) {
		r.earlier = true
	}
	switch {
	case since.IsZero() || r.found:
		return true, nil
	case since.ContentID == "" && e.Modified.Before(since.Time):
		return false, nil
	case since.ContentID == "":
		if !r.earlier && e.Modified.After(since.Time) {
			r.reach = r.lost(e.Page)
		}
		r.found = true
		return true, nil
	case e.ContentID == since.ContentID && (since.Time.IsZero() || e.Modified.Equal(since.Time)):
		r.found = true
		return false, nil
	case !since.Time.IsZero() && e.Modified.After(since.Time):
		return false, r.missing(e.Page)
	}
	return false, nil
}

// missing returns why the mark's entity is not there.
func (r *run) missing(page string) error {
	if !r.earlier {
		return r.lost(page)
	}
	return &harvest.Error{
		Code: harvest.ErrMark, URL: r.h.URL, Item: r.since.ContentID, Clause: clauseMark,
		Text: fmt.Sprintf("the feed does not have the mark's entity %q of %s", clip(r.since.ContentID), stamp(r.since.Time)),
	}
}

func (r *run) lost(page string) error {
	text := fmt.Sprintf("the feed does not reach back to %s", r.since)
	if !r.first.IsZero() {
		text += ", only to " + stamp(r.first)
	}
	return &harvest.Error{Code: harvest.ErrReach, URL: page, At: r.first, Text: text + ": some entities may be lost", Clause: clauseReach}
}

// resume continues at the mark's place, so a harvest that was cut short does not go back to
// it from the newest page. It reports whether it could: otherwise nothing was yielded.
func (r *run) resume(mark Mark) (resumed bool, err error) {
	r.walk = newWalk()
	if mark.Next != "" {
		if resumed, err := r.resumeAfter(mark); resumed || err != nil {
			return resumed, err
		}
		r.walk = newWalk()
	}
	if mark.Page == "" {
		return false, nil
	}
	page, err := r.markPage(mark.Page)
	switch {
	case r.found || err == nil && before(page, r.since.Time):
		if r.earlier = true; err == nil && !r.stopped {
			err = r.goOn(page)
		}
		return true, err
	case err == nil || isElsewhere(err):
		r.walk = newWalk()
		return true, r.backFrom(page)
	case r.isFinal(err):
		return true, err
	}
	return false, nil
}

// isFinal reports whether an error would end any other way of beginning, too.
func (r *run) isFinal(err error) bool {
	return r.ctx.Err() != nil || errors.Is(err, harvest.ErrBudget)
}

// resumeAfter continues with the mark's Next. The header of the mark's Page must prove that
// the entity is the last there; a page with a successor does not change
// (datareplication#feed-6). If that page is older than the entity, the entity is looked for.
func (r *run) resumeAfter(mark Mark) (resumed bool, err error) {
	at := step{mark.Next, r.h.URL}
	if mark.Page != "" {
		page, err := r.head(mark.Page, r.h.URL)
		switch {
		case err != nil:
			return r.isFinal(err), err
		case before(page, r.since.Time):
			r.earlier, r.older = true, page.URL
		case page.Next == mark.Next && page.Modified.Equal(r.since.Time):
			r.found, r.earlier, r.last = true, true, r.since.Time
			r.ids.repeated(mark.ContentID)
			r.visited[page.Key()] = true
			return true, r.forward(page, nil)
		default:
			return false, nil
		}
	}
	page, err := r.read(at, nil)
	switch {
	case gone(err):
		return false, nil
	case err != nil || r.stopped:
		return true, err
	}
	return true, r.goOn(page)
}

// endPage notes that a page has been read to its end. If it has a successor, nothing will be
// added to it (datareplication#feed-6), so the next harvest may begin there.
func (r *run) endPage(page *wire.Page) error {
	at := &r.mark
	switch {
	case r.stopped || page.Next == "":
		return nil
	case r.since.ContentID != "" && !r.found:
		at.Page, at.Next = r.older, page.Next
	case at.ContentID != "" && at.Page == page.URL:
		at.Next = page.Next
	case at.ContentID == "" && before(page, at.Time):
		at.Page = page.URL
	default:
		return nil
	}
	return r.announce()
}

// announce announces the mark.
func (r *run) announce() error {
	if r.h.PageDone == nil {
		return nil
	}
	return r.h.PageDone(r.mark)
}

// markPage reads the mark's page, which should have the mark's entity. A mark without
// an entity needs only the page's header.
func (r *run) markPage(url string) (*wire.Page, error) {
	if r.since.ContentID != "" {
		return r.read(step{url, r.h.URL}, nil)
	}
	page, err := r.head(url, r.h.URL)
	if err == nil && page.IsEmpty() {
		err = errElsewhere
	}
	return page, err
}

var errElsewhere = errors.New("the page has no entities")

// isElsewhere reports whether an error means the mark's entity is not on the pages read.
func isElsewhere(err error) bool {
	return errors.Is(err, harvest.ErrReach) || errors.Is(err, harvest.ErrMark)
}

// open requests a page of the feed by another page's link.
func (r *run) open(method, url, from string) (*wire.Page, error) {
	if err := r.spend(1); err != nil {
		return nil, err
	}
	page, err := r.request(r.ctx, method, url)
	if err != nil && url != r.h.URL {
		err = &harvest.Error{Code: harvest.ErrPage, URL: url, From: from, Err: err, Clause: clausePages}
	}
	return page, err
}

// request requests a page if its origin is allowed.
func (r *run) request(ctx context.Context, method, url string) (*wire.Page, error) {
	if err := r.foreign(url); err != nil {
		return nil, err
	}
	page, err := wire.Open(ctx, r.fetcher, method, url)
	if err != nil {
		return nil, err
	}
	if err := r.foreign(page.URL); err != nil { // after a redirect
		return nil, errors.Join(err, page.Close())
	}
	return page, nil
}

// foreign refuses a URL outside of the feed's origin, if the client's policy demands
// it.
func (r *run) foreign(address string) error {
	if r.h.HTTP == nil || !r.h.HTTP.OneOrigin {
		return nil
	}
	if iri.AreSameOrigin(r.h.URL, address) {
		return nil
	}
	return &feedhistory.FetchError{URL: address, Reason: feedhistory.ReasonRefused, Err: errors.New("its origin is not the feed's")}
}

// cutShort reports a page that ended before its last delimiter, after so many whole entities.
func cutShort(url string, whole int, err error) error {
	return &harvest.Error{
		Code: harvest.ErrCutShort, URL: url, Err: err, Clause: clauseTorn,
		Text: fmt.Sprintf("the page is cut short after %d entities: %s", whole, feedhistory.Describe(err)),
	}
}

// spend counts requests before they are made.
func (r *run) spend(n int) error {
	if n > r.limits.Requests-r.requests {
		return wire.OverBudget(r.h.URL, "requests", int64(r.limits.Requests), clauseBounded)
	}
	r.requests += n
	return nil
}

// head returns the header of a page. If the answer to HEAD has no links, that to GET may
// have them.
func (r *run) head(url, from string) (page *wire.Page, err error) {
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		if page, err = r.open(method, url, from); err != nil {
			return nil, err
		}
		if err = page.Close(); err != nil || page.IsEmpty() || page.Header.Get(wire.FieldLink) != "" {
			break
		}
	}
	return page, err
}

// gone reports whether an error is about a missing page.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist)
}

// interrupted returns the error for a page not read to its end; nil if it was, but is
// malformed.
func (r *run) interrupted(page *wire.Page, whole int, err error) error {
	failed, isOfRequest := errors.AsType[*feedhistory.FetchError](err)
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case errors.Is(err, wire.ErrTooLarge):
		return wire.OverBudget(page.URL, "entity", r.limits.Entity, clauseBounded)
	case isOfRequest && failed.Reason == feedhistory.ReasonTruncated:
		return cutShort(page.URL, whole, errors.Unwrap(failed.Err))
	case err == io.EOF || err == io.ErrUnexpectedEOF || isOfRequest && errors.Is(err, os.ErrDeadlineExceeded):
		return cutShort(page.URL, whole, err)
	case isOfRequest && failed.Reason == feedhistory.ReasonLimit:
		return err
	}
	return nil
}

// snapshot yields the entities of a snapshot, and returns when it began.
func (r *run) snapshot() (created time.Time, err error) {
	pages, created, err := r.index()
	if err == nil {
		err = r.spend(len(pages))
	}
	if err != nil {
		return time.Time{}, err
	}
	return created, r.snapshotPages(pages, created)
}

// index reads the index of the snapshot.
func (r *run) index() (pages []string, created time.Time, err error) {
	if err := r.spend(1); err != nil {
		return nil, time.Time{}, err
	}
	page, err := r.request(r.ctx, http.MethodGet, r.h.Snapshot)
	if err != nil {
		return nil, time.Time{}, &harvest.Error{Code: harvest.ErrSnapshot, URL: r.h.Snapshot, Err: err, Clause: clauseSnapshot}
	}
	defer page.Close()
	unreadable := func(err error) ([]string, time.Time, error) {
		return nil, time.Time{}, malformed(page.URL, 0, err, clauseSnapshot)
	}
	i, err := page.Index()
	if err != nil {
		if cut := r.interrupted(page, 0, err); cut != nil {
			return nil, time.Time{}, cut
		}
		return unreadable(err)
	}
	if created, err = wire.ParseTime(i.CreatedAt); err != nil {
		return unreadable(fmt.Errorf("createdAt: %w", err))
	}
	for n, p := range i.Pages {
		i.Pages[n] = iri.Resolve(page.URL, p)
	}
	return i.Pages, created, nil
}

// snapshotPages reads several pages at a time. Each reader waits until its
// entity is taken, so there are no more entities in memory than readers.
func (r *run) snapshotPages(pages []string, created time.Time) (err error) {
	ctx, cancel := context.WithCancel(r.ctx)
	todo, entities, failed := make(chan string), make(chan *Entity), make(chan error, 1)
	var readers sync.WaitGroup
	for range min(cmp.Or(r.h.Parallel, 4), len(pages)) {
		readers.Go(func() {
			for url := range todo {
				if err := r.snapshotPage(ctx, url, created, entities); err != nil {
					select {
					case failed <- err: // the first error counts
					default:
					}
					cancel()
				}
			}
		})
	}
	go func() {
		defer close(entities)
		defer readers.Wait()
		defer close(todo)
		for _, url := range pages {
			select {
			case todo <- url:
			case <-ctx.Done():
				return
			}
		}
	}()
	for e := range entities {
		r.partly = true
		if !r.stopped && !r.yield(e, nil) {
			r.stopped = true
			cancel()
		}
	}
	cancel()
	select {
	case err = <-failed:
	default:
		err = r.ctx.Err()
	}
	if r.stopped {
		return nil
	}
	return err
}

// snapshotPage sends the entities of a page.
func (r *run) snapshotPage(ctx context.Context, url string, created time.Time, entities chan<- *Entity) error {
	page, err := r.request(ctx, http.MethodGet, url)
	if err != nil {
		return &harvest.Error{Code: harvest.ErrSnapshot, URL: url, From: r.h.Snapshot, Err: err, Clause: clausePages}
	}
	defer page.Close()
	err = r.entities(page, created, func(e *Entity) error {
		select {
		case entities <- e:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if errors.Is(err, context.Canceled) && r.ctx.Err() == nil {
		return nil // another reader has failed
	}
	return err
}
