package republish

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a replay has any zone, on any machine

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
	"github.com/feedhistory/feedhistory/mirror"
)

// A Replay is a feed from its beginning, or from any entry, at a chosen pace. Its
// address says everything except the order of the entries, which the Handler stores in its
// Output. ParseReplay makes one; the zero value is none.
type Replay struct {
	start    time.Time      // when the first entry is released
	zone     *time.Location // the time zone of days
	every    interval       // time between releases
	original float64        // how many times faster than the original; zero means every counts
	per      int            // entries per release
	days     [7]bool        // the days with releases, from Sunday on
	from     string         // the id of the first entry; "" means the oldest
	asof     int64          // the version of the feed at which the order is fixed; zero means at start
	now      bool           // whether new entries at the source do not wait
	until    time.Time      // no releases from then on; zero means no end
}

// An interval is a time by the clock or by the calendar.
type interval struct {
	clock time.Duration
	days  int
}

func (i interval) after(t time.Time) time.Time {
	return t.AddDate(0, 0, i.days).Add(i.clock)
}

func (i interval) String() string {
	switch {
	case i.days == 0:
		return strconv.Itoa(int(i.clock/time.Hour)) + "h"
	case i.days%7 == 0:
		return strconv.Itoa(i.days/7) + "w"
	}
	return strconv.Itoa(i.days) + "d"
}

// The limits of a replay.
const (
	mostPer      = 100
	longestEvery = 10 * 366 // in days
	mostFaster   = 10_000
)

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// replayKeys are the parameters of a replay; archive selects one of its
// documents.
var replayKeys = []string{"start", "every", "per", "days", "from", "zone", "asof", "new", "until", "pace", "archive"}

// ParseReplay reads the parameters in an address. The error names the parameter.
func ParseReplay(q url.Values) (*Replay, error) {
	if err := checkKeys(q, replayKeys...); err != nil {
		return nil, err
	}
	r := &Replay{zone: time.UTC, per: 1, from: q.Get("from")}
	for _, key := range []string{"zone", "start", "pace", "every", "per", "days", "asof", "new", "until"} { // some depend on earlier ones
		text := q.Get(key)
		if !q.Has(key) {
			if key == "start" || key == "every" && !q.Has("pace") {
				return nil, fmt.Errorf("%s= is missing", key)
			}
			continue
		}
		if err := r.set(key, text); err != nil {
			return nil, fmt.Errorf("%s=%s: %w", key, text, err)
		}
	}
	if r.days == [7]bool{} {
		r.days = [7]bool{true, true, true, true, true, true, true}
	}
	return r, nil
}

// checkKeys returns an error if a query has parameters other than these, or one
// of them twice.
func checkKeys(q url.Values, known ...string) error {
	for key, values := range q {
		switch {
		case !slices.Contains(known, key):
			return fmt.Errorf("%s= is unknown", key)
		case len(values) > 1:
			return fmt.Errorf("%s= is given twice", key)
		}
	}
	return nil
}

// set sets a parameter.
func (r *Replay) set(key, text string) (err error) {
	switch key {
	case "zone":
		if text == "" || text == "Local" {
			return errors.New("that is not a time zone")
		}
		if r.zone, err = time.LoadLocation(text); err != nil {
			return errors.New("that is not a time zone, such as UTC or Europe/Berlin")
		}
	case "start":
		r.start, err = parseMoment(text, r.zone)
		r.start = r.start.In(r.zone)
	case "until":
		if r.until, err = parseMoment(text, r.zone); err == nil && !r.until.After(r.start) {
			err = errors.New("the end comes before the start")
		}
	case "every":
		return r.readEvery(text)
	case "pace":
		return r.readPace(text)
	case "per":
		if r.per, err = strconv.Atoi(text); err != nil || r.per < 1 || r.per > mostPer {
			return errors.New("it should be a number between 1 and 100")
		}
	case "days":
		for name := range strings.SplitSeq(strings.ToLower(text), ",") {
			day := slices.Index(weekdays, strings.TrimSpace(name))
			if day < 0 {
				return errors.New("it should be a list of mon, tue, wed, thu, fri, sat, sun")
			}
			r.days[day] = true
		}
	case "asof":
		if r.asof, err = strconv.ParseInt(text, 10, 64); err != nil || r.asof < 1 {
			return errors.New("it should be the number that the feed's page has put there")
		}
	case "new":
		if text != "now" && text != "last" {
			return errors.New("it should be now, or last")
		}
		r.now = text == "now"
	}
	return err
}

func (r *Replay) readEvery(text string) error {
	if r.original > 0 {
		return errors.New("it cannot be combined with pace=")
	}
	if text == "" {
		return errors.New("it should be a number with h, d or w, such as 12h, 1d or 2w")
	}
	n, err := strconv.Atoi(text[:len(text)-1])
	unit := map[byte]interval{'h': {clock: time.Hour}, 'd': {days: 1}, 'w': {days: 7}}[text[len(text)-1]]
	switch {
	case err != nil || unit == interval{}:
		return errors.New("it should be a number with h, d or w, such as 12h, 1d or 2w")
	case n < 1:
		return errors.New("it must be at least an hour, 1h")
	case n*max(unit.days, 1) > longestEvery:
		return errors.New("that is too long to wait")
	}
	r.every = interval{time.Duration(n) * unit.clock, n * unit.days}
	return nil
}

func (r *Replay) readPace(text string) (err error) {
	factor, ok := strings.CutPrefix(text, "original")
	if !ok {
		return errors.New("it should be original, or original×10 for ten times as fast")
	}
	if r.original = 1; factor != "" {
		factor = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(factor, "×"), "x"), "*")
		r.original, err = strconv.ParseFloat(factor, 64)
	}
	if err != nil || !(r.original >= 0.01 && r.original <= mostFaster) {
		return errors.New("it should be original×N, with N between 0.01 and 10000")
	}
	return nil
}

// Query returns the replay as the query of a URL: equal replays have equal
// queries.
func (r *Replay) Query() url.Values {
	q := url.Values{"start": {r.start.Format(time.RFC3339)}}
	if at := r.start; at.Hour() == 0 && at.Minute() == 0 && at.Second() == 0 && at.Nanosecond() == 0 {
		q.Set("start", at.Format(time.DateOnly))
	}
	if r.original > 0 {
		q.Set("pace", "original×"+strconv.FormatFloat(r.original, 'g', -1, 64))
	} else {
		q.Set("every", r.every.String())
	}
	if r.per > 1 {
		q.Set("per", strconv.Itoa(r.per))
	}
	if days := r.dayNames(); len(days) < 7 {
		q.Set("days", strings.Join(days, ","))
	}
	if r.from != "" {
		q.Set("from", r.from)
	}
	if r.zone != time.UTC {
		q.Set("zone", r.zone.String())
	}
	if r.asof > 0 {
		q.Set("asof", strconv.FormatInt(r.asof, 10))
	}
	if r.now {
		q.Set("new", "now")
	}
	if !r.until.IsZero() {
		q.Set("until", r.until.In(r.zone).Format(time.RFC3339))
	}
	return q
}

// dayNames returns the names of the days with releases, from Monday on.
func (r *Replay) dayNames() (names []string) {
	for i := range weekdays {
		if day := (i + 1) % 7; r.days[day] {
			names = append(names, weekdays[day])
		}
	}
	return names
}

// postpone returns the first time at or after t, at the same time of day, on a
// day with releases.
func (r *Replay) postpone(t time.Time) time.Time {
	for !r.days[t.In(r.zone).Weekday()] {
		t = t.In(r.zone).AddDate(0, 0, 1)
	}
	return t
}

// timetable returns the releases up to the first one after a time: those in the
// order, and those of later entries. A release always
// gets the same time, whenever the timetable is made, and no release is before
// the preceding one.
func (r *Replay) timetable(order, later []place, beyond time.Time) (all []Release) {
	next := r.slots(order)
	var last time.Time
	add := func(p place, at time.Time) bool {
		at = r.postpone(at)
		if at.Before(last) {
			at = last
		}
		if !r.until.IsZero() && !at.Before(r.until) {
			return false
		}
		last = at
		all = append(all, Release{At: at.UTC(), ID: p.id, Empty: !p.gone.IsZero() && p.gone.Before(at)})
		return !at.After(beyond)
	}
	for i, p := range order {
		at := next(i)
		for r.now && len(later) > 0 && later[0].added.Before(at) {
			if !add(later[0], feedtime.Later(later[0].added, r.start)) {
				return all
			}
			later = later[1:]
		}
		if !add(p, at) {
			return all
		}
	}
	for i, p := range later {
		at := p.added
		if !r.now {
			at = feedtime.Later(at, next(len(order)+i))
		}
		if !add(p, feedtime.Later(at, r.start)) {
			return all
		}
	}
	return all
}

// slots returns a function for the release time of the entry with an
// index. The indices must not decrease.
func (r *Replay) slots(order []place) func(i int) time.Time {
	if r.original > 0 {
		return func(i int) time.Time {
			if len(order) == 0 {
				return r.start
			}
			since := order[min(i, len(order)-1)].time.Sub(order[0].time)
			return r.start.Add(time.Duration(float64(since) / r.original))
		}
	}
	n, at := 0, r.postpone(r.start)
	return func(i int) time.Time {
		for ; n < i/r.per; n++ {
			at = r.postpone(r.every.after(at))
		}
		return at
	}
}

const (
	mostOrders    = 8              // orders to keep in memory; those of large feeds have some megabytes
	archiveAfter  = 24 * time.Hour // after this time a release has its permanent place
	leastReleased = 20             // minimum number of entries in the subscription document of a replay, if there are so many
	mostReleased  = 500            // maximum number of archived entries there
	showReleased  = 30             // days for which the subscription document shows a release
	mostKept      = 24 * time.Hour // maximum time for caches to keep a document of a replay
)

// A replayState is a replay at a moment.
type replayState struct {
	*Replay
	request
	h        *Handler
	now      time.Time
	released []Release // first release first
	next     time.Time // when the next release is; zero if unknown
	ended    bool
	lost     loss
}

// serveReplay answers with a document of a replay (5005#4): the subscription
// document, or one of its archives.
func (h *Handler) serveReplay(w http.ResponseWriter, r *http.Request, asked request) error {
	q := r.URL.Query()
	replay, err := ParseReplay(q)
	if err != nil {
		return wrongAddress(err.Error())
	}
	leave, err := h.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	p, err := h.replayAt(r.Context(), asked, replay, settings.Now(h.Time))
	if err != nil {
		return err
	}
	archive := 0
	if text := q.Get("archive"); q.Has("archive") {
		if archive, err = strconv.Atoi(text); err != nil || archive < 1 || archive > p.archives() {
			return &Error{http.StatusNotFound, "there is no such archive of the replay yet", "Begin with the address without archive=."}
		}
	}
	doc, err := p.document(r.Context(), archive)
	if err != nil {
		return err
	}
	return serveDocument(w, r, p.format, "public, max-age="+strconv.Itoa(int(p.keep(archive)/time.Second)), doc)
}

// replayAt returns a replay at a moment.
func (h *Handler) replayAt(ctx context.Context, asked request, r *Replay, now time.Time) (*replayState, error) {
	table, lost, err := h.timetable(ctx, asked.feed, asked.name, r, now)
	if err != nil {
		return nil, err
	}
	p := &replayState{Replay: r, request: asked, h: h, now: now, released: table, lost: lost}
	if n := len(p.released); n > 0 && p.released[n-1].At.After(now) {
		p.next, p.released = p.released[n-1].At, p.released[:n-1]
	} else {
		p.ended = !r.until.IsZero() && !now.Before(r.until)
	}
	return p, nil
}

// timetable returns the releases of a feed's replay up to the first one after a time, and the
// entries that cannot be read.
func (h *Handler) timetable(ctx context.Context, feed *mirror.Feed, name string, r *Replay, beyond time.Time) ([]Release, loss, error) {
	places, err := h.placesOf(ctx, feed)
	if err != nil {
		return nil, loss{}, err
	}
	order, later, err := h.ordered(ctx, feed, name, r, places.list)
	return r.timetable(order, later, beyond), places.lost, err
}

// archives returns the number of archives.
func (p *replayState) archives() int {
	return releasedBy(p.released, p.now.Add(-archiveAfter)) / p.h.archiveSize()
}

// releasedBy returns the number of releases up to a time.
func releasedBy(releases []Release, at time.Time) int {
	return sort.Search(len(releases), func(i int) bool { return releases[i].At.After(at) })
}

// shownFrom returns the index of the first release in the subscription document.
// Readers that follow no archives, and were away for weeks, find theirs there.
func (p *replayState) shownFrom() int {
	all, archived := len(p.released), p.archives()*p.h.archiveSize()
	from := min(all-leastReleased, max(all-mostReleased, releasedBy(p.released, p.now.AddDate(0, 0, -showReleased))))
	return max(0, min(archived, from))
}

// keep returns how long caches may keep a document.
func (p *replayState) keep(archive int) time.Duration {
	switch {
	case archive > 0 && archive < p.archives() || p.ended:
		return mostKept
	case p.next.IsZero():
		return 5 * time.Minute // new entries may come at any time
	}
	return min(p.next.Sub(p.now), mostKept).Truncate(time.Second)
}

// url returns the URL of an archive, or of the subscription document for zero.
func (p *replayState) url(archive int) string {
	q := p.Query()
	if archive > 0 {
		q.Set("archive", strconv.Itoa(archive))
	}
	return p.h.feeds() + p.name + "/replay." + string(p.format) + "?" + q.Encode()
}

// document returns a document of the replay.
func (p *replayState) document(ctx context.Context, archive int) (*feedhistory.Document, error) {
	m, err := newSource(p.feed, p.format, p.url(0))
	if err != nil {
		return nil, err
	}
	head := m.head
	head.Title += ", from the beginning"
	head.Subtitle = strings.TrimSpace(head.Subtitle + " A replay: " + p.String() + ".")
	archives := p.archives()
	at := func(n int) string {
		if n < 1 || n > archives {
			return ""
		}
		return p.url(n)
	}
	size := p.h.archiveSize()
	from, to := p.shownFrom(), len(p.released)
	if archive > 0 {
		from, to = (archive-1)*size, archive*size
	}
	entries, err := p.entries(ctx, m, p.released[from:to])
	if err != nil {
		return nil, err
	}
	if gaps := p.lost.gaps(p.feed); len(gaps) > 0 {
		head.Coverage = &feedhistory.Coverage{Of: addressOf(p.feed), Kind: p.feed.Kind, Verdict: feedhistory.VerdictPartial, Gaps: gaps}
		entries = append(entries, compose.PseudoEntry(gaps[0]))
	}
	if archive > 0 {
		d := compose.Archive(head, entries, compose.URLs{Self: p.url(archive), Current: p.url(0), Prev: at(archive - 1), Next: at(archive + 1)})
		d.Updated = p.released[to-1].At
		return d, nil
	}
	d := compose.Subscription(head, entries, p.url(0), at(archives))
	d.Updated = p.start.UTC()
	if to > 0 {
		d.Updated = p.released[to-1].At
	}
	return d, nil
}

// entries returns the entries of releases, newest first.
func (p *replayState) entries(ctx context.Context, m *source, releases []Release) (entries []*feedhistory.Entry, err error) {
	for _, r := range slices.Backward(releases) {
		if r.Empty || p.lost.has(r.ID) {
			continue
		}
		record, err := mirror.Lookup(ctx, p.h.store, p.feed.URL, r.ID)
		if errors.Is(err, mirror.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e, err := m.released(record, r.At)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// String describes a replay in words.
func (r *Replay) String() string {
	var text string
	switch {
	case r.original > 0:
		text = "as it was published, " + strconv.FormatFloat(r.original, 'g', -1, 64) + " times as fast"
	case r.every.days == 0:
		text = plural(r.per, "entry", "entries") + " every " + plural(int(r.every.clock/time.Hour), "hour", "hours")
	case r.every.days%7 == 0:
		text = plural(r.per, "entry", "entries") + " every " + plural(r.every.days/7, "week", "weeks")
	default:
		text = plural(r.per, "entry", "entries") + " every " + plural(r.every.days, "day", "days")
	}
	text = strings.Replace(text, "every 1 ", "every ", 1)
	if days := r.dayNames(); len(days) < 7 {
		text += ", only on " + strings.Join(days, ", ")
	}
	text += fmt.Sprintf(", from %s on", r.start.Format("2 January 2006, 15:04 MST"))
	if !r.until.IsZero() {
		text += fmt.Sprintf(" until %s", r.until.In(r.zone).Format("2 January 2006, 15:04 MST"))
	}
	return text
}

// plural returns a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// A Preview is the present and the future of a replay.
type Preview struct {
	Released int       // number of releases so far
	All      int       // number of known releases
	Next     []Release // the next releases
}

// A Release is the release of an entry.
type Release struct {
	At    time.Time // of a Preview, in the replay's zone
	ID    string    // the id of the entry
	Empty bool      // whether nothing comes then, because the entry was deleted
}

// Preview returns the next releases of a replay, at most n (none, if n is not positive),
// and fixes the order of its entries. The error is an *Error if the feed has no such replay.
func (h *Handler) Preview(ctx context.Context, feed *mirror.Feed, r *Replay, n int) (*Preview, error) {
	if feed == nil || r == nil {
		return nil, errors.New("republish: Handler.Preview: the Feed or the Replay is nil")
	}
	name, err := h.Name(ctx, feed.URL)
	if err != nil {
		return nil, err
	}
	if r.zone == nil {
		return nil, errors.New("republish: Handler.Preview: the Replay is not from ParseReplay")
	}
	table, _, err := h.timetable(ctx, feed, name, r, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		return nil, err
	}
	p := &Preview{All: len(table), Released: releasedBy(table, settings.Now(h.Time))}
	p.Next = slices.Clone(table[p.Released:][:min(max(n, 0), len(table)-p.Released)])
	for i := range p.Next {
		p.Next[i].At = p.Next[i].At.In(r.zone)
	}
	return p, nil
}

// The order of a replay is the order of time, as the mirror was at a version of
// the feed. An entry edited later, or dated back, would move,
// so the order is stored when it is first requested. If it is lost, it is made
// again as well as possible.

// knownPlaces are the places of a feed's entries at a version, in the order in
// which they came to the mirror.
type knownPlaces struct {
	version int64
	list    []place
	lost    loss
}

// A place is an entry with its place in the order of a replay.
type place struct {
	id            string
	time          time.Time // the time deciding its place
	added         time.Time // when it came to the mirror
	gone          time.Time // when it left the feed; zero if it is part of it
	first, change int64     // the versions of the feed when it came, and when it changed
}

// placesOf returns the places of all entries with content.
func (h *Handler) placesOf(ctx context.Context, feed *mirror.Feed) (knownPlaces, error) {
	if known, ok := h.places.Get(feed.URL); ok && known.version == feed.Commits {
		return known, nil
	}
	key := fmt.Sprintf("places %d %s", feed.Commits, feed.URL)
	places, _, err := share(ctx, h, patience, key, func(ctx context.Context) (knownPlaces, error) { return h.readPlaces(ctx, feed) })
	return places, err
}

// readPlaces reads the places from the Store.
func (h *Handler) readPlaces(ctx context.Context, feed *mirror.Feed) (knownPlaces, error) {
	now := knownPlaces{version: feed.Commits}
	var list []place
	for r, err := range h.store.Entries(ctx, mirror.Query{Feed: feed.URL, States: mirror.Current | mirror.Former}) {
		if err != nil {
			return now, err
		}
		p := place{id: r.ID, time: r.Time(), added: r.Added, first: r.FirstCommit, change: r.LastCommit}
		if r.State != mirror.Live {
			p.gone = r.Changed
		} else if _, err := r.Entry(); err != nil {
			h.Logger.ErrorContext(ctx, "an entry cannot be published", "feed", feed.URL, "entry", r.ID, "error", err)
			now.lost = now.lost.add(r.ID)
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b place) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.id, b.id)) })
	now.list = slices.CompactFunc(list, func(a, b place) bool { return a.id == b.id }) // an entry changed meanwhile comes twice
	h.places.Put(feed.URL, now)
	return now, nil
}

// asOf returns the version at which the order of a replay is fixed if its
// address does not say: the version when the replay started or, if the feed had
// no entries yet, a day after its first entry came.
func asOf(list []place, start time.Time) (version int64) {
	if len(list) == 0 {
		return 0
	}
	first := slices.MinFunc(list, func(a, b place) int { return a.added.Compare(b.added) }).added
	if start.Before(first) {
		start = first.Add(24 * time.Hour)
	}
	for _, p := range list {
		if !p.added.After(start) {
			version = max(version, p.first)
		}
	}
	return version
}

// ordered returns the entries of a replay in its order, and those added to the
// mirror later.
func (h *Handler) ordered(ctx context.Context, feed *mirror.Feed, name string, r *Replay, list []place) (order, later []place, err error) {
	asof := r.asof
	switch {
	case asof > feed.Commits:
		return nil, nil, wrongAddress("asof=" + strconv.FormatInt(asof, 10) + ": the mirror has no such version yet")
	case asof == 0:
		asof = asOf(list, r.start)
	}
	frozen, err := h.frozen(ctx, name, asof, list)
	if err != nil {
		return nil, nil, err
	}
	known := make(map[string]*place, len(list))
	for i := range list {
		known[list[i].id] = &list[i]
		if list[i].first > asof {
			later = append(later, list[i])
		}
	}
	for i, id := range frozen.IDs {
		p := place{id: id, time: frozen.Times[i], gone: time.Unix(0, 0)} // the mirror has forgotten it
		if is := known[id]; is != nil {
			p.added, p.gone = is.added, is.gone
		}
		order = append(order, p)
	}
	if r.from == "" {
		return order, later, nil
	}
	at := slices.IndexFunc(order, func(p place) bool { return p.id == r.from })
	if at < 0 {
		return nil, nil, wrongAddress("from=" + r.from + ": there was no such entry then")
	}
	return order[at:], later, nil
}

// A frozenOrder is an order as it is stored.
type frozenOrder struct {
	IDs   []string    `json:"ids"`
	Times []time.Time `json:"times"`
}

// freeze makes the order of the entries at a version. An entry edited
// since then is ordered by its present time.
func freeze(list []place, asof int64) (f frozenOrder) {
	var order []place
	for _, p := range list {
		if p.first <= asof && (p.gone.IsZero() || p.change > asof) {
			order = append(order, p)
		}
	}
	slices.SortFunc(order, func(a, b place) int { return cmp.Or(a.time.Compare(b.time), cmp.Compare(a.id, b.id)) })
	for _, p := range order {
		f.IDs, f.Times = append(f.IDs, p.id), append(f.Times, p.time)
	}
	return f
}

// mostFrozen is the maximum number of entries in all stored orders of a feed
// together, because anybody can request one.
const mostFrozen = 500_000

const ordersName = ".orders.json"

func orderName(asof int64) string { return ".order-" + strconv.FormatInt(asof, 10) + ".json.gz" }

// frozen returns the order of a feed at a version, and stores it.
func (h *Handler) frozen(ctx context.Context, name string, asof int64, list []place) (f frozenOrder, err error) {
	defer h.lock(name + " orders")()
	key := name + "\n" + strconv.FormatInt(asof, 10)
	if f, ok := h.orders.Get(key); ok {
		return f, nil
	}
	out := subOutput{h.out, name}
	data, err := fs.ReadFile(out, orderName(asof))
	switch {
	case err == nil:
		f, err = readOrder(data)
	case errors.Is(err, fs.ErrNotExist):
		f = freeze(list, asof)
		err = keepOrder(ctx, out, asof, f)
	}
	if err == nil {
		h.orders.Put(key, f)
	}
	return f, err
}

func readOrder(data []byte) (f frozenOrder, err error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return f, err
	}
	data, err = io.ReadAll(z)
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && len(f.IDs) != len(f.Times) {
		err = errors.New("an order of a replay is damaged")
	}
	return f, err
}

// keepOrder stores an order, unless there are too many.
func keepOrder(ctx context.Context, out subOutput, asof int64, f frozenOrder) error {
	kept := map[int64]int{} // the number of entries in each order
	data, err := fs.ReadFile(out, ordersName)
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all := 0
	for _, n := range kept {
		all += n + 100
	}
	if all > 0 && all+len(f.IDs) > mostFrozen {
		return nil
	}
	data, err = json.Marshal(f)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(data)
	_ = z.Close()
	if err := out.Put(ctx, orderName(asof), packed.Bytes()); err != nil {
		return err
	}
	kept[asof] = len(f.IDs)
	if data, err = json.Marshal(kept); err != nil {
		return err
	}
	return out.Put(ctx, ordersName, data)
}

// released returns an entry as a replay shows it: with the time of its release,
// and its original date in its text and in its source.
func (m *source) released(r *mirror.Record, at time.Time) (*feedhistory.Entry, error) {
	e, err := m.entry(r)
	if err != nil {
		return nil, err
	}
	original := feedtime.First(r.Content.Published, r.Content.Updated)
	note := "<p><em>First published on an unknown date.</em></p>"
	if !original.IsZero() {
		note = "<p><em>First published on " + original.UTC().Format("2 January 2006") + ".</em></p>"
	}
	var out strings.Builder
	element, copied, noted := string(e.XML()), 0, false
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	s.Next()
	for depth := s.Depth(); s.Child(depth); {
		from, space, local := s.Offset(), s.Space(), s.Local()
		text, noting := m.withNote(e, s, note)
		switch s.Skip(); {
		case noting:
			noted = true
		case space == feedxml.Atom && local == "source" && element[from:s.End()] == m.element && !original.IsZero():
			end := strings.LastIndex(m.element, "</")
			text = m.element[:end] + "<updated>" + original.UTC().Format(time.RFC3339Nano) + "</updated>" + m.element[end:]
		case !isDate(space, local):
			continue
		}
		out.WriteString(element[copied:from] + text)
		copied = s.End()
	}
	out.WriteString(element[copied:])
	more := ""
	if !noted {
		more = m.text("summary", feedhistory.Text{}, note)
	}
	if m.format == feedhistory.FormatRSS {
		more += "<pubDate>" + at.UTC().Format("Mon, 02 Jan 2006 15:04:05") + " GMT</pubDate>"
	} else {
		more += fmt.Sprintf(`<published xmlns="%s">%s</published><updated xmlns="%[1]s">%[2]s</updated>`, feedxml.Atom, at.UTC().Format(time.RFC3339Nano))
	}
	return m.with(out.String(), more, r.ID)
}

// withNote returns the current child of an entry with a note before its text, if it is a text
// of the entry.
func (m *source) withNote(e *feedhistory.Entry, s *xmlscan.Cursor, note string) (element string, ok bool) {
	space, local := s.Space(), s.Local()
	base, _ := s.Attr(feedxml.XML, "base")
	switch {
	case m.format == feedhistory.FormatRSS && space == "" && local == "description":
		return written("description", note+s.ElementText(), "xml:base", base), true
	case m.format == feedhistory.FormatRSS && space == feedxml.Content && local == "encoded":
		return written("content:encoded", note+s.ElementText(), "xmlns:content", feedxml.Content, "xml:base", base), true
	case m.format == feedhistory.FormatRSS || space != feedxml.Atom || local != "content" && local != "summary":
		return "", false
	}
	text := e.Summary()
	if local == "content" {
		text = e.Content()
	}
	if text.Src != "" || feedxml.IsMedia(text.Type) {
		return "", false
	}
	return m.text(local, text, note), true
}

// isDate reports whether an element is a date of the entry.
func isDate(space, local string) bool {
	switch space {
	case feedxml.Atom:
		return local == "updated" || local == "published"
	case feedxml.DC:
		return local == "date"
	}
	return space == "" && local == "pubDate"
}

// text returns an element with a note before its text.
func (m *source) text(local string, text feedhistory.Text, note string) string {
	body := text.Body
	if text.Type != "html" && text.Type != "xhtml" && body != "" {
		body = "<p>" + strings.ReplaceAll(feedhistory.Text{Body: strings.TrimSpace(body)}.HTML(), "\n", "<br>") + "</p>"
	}
	if m.format == feedhistory.FormatRSS {
		return written("description", note+body)
	}
	return written(local, note+body, "xmlns", feedxml.Atom, "type", "html", "xml:base", text.Base, "xml:lang", text.Lang)
}

// written returns an element with text, and with those of its attributes that have a value.
func written(name, text string, attrs ...string) string {
	var b feedxml.Markup
	b.Element(name, text, attrs...)
	return strings.TrimSuffix(b.String(), "\n")
}
