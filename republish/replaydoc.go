package republish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

const (
	mostOrders    = 8              // orders to keep in memory; those of large feeds have some megabytes
	archiveAfter  = 24 * time.Hour // after this time a release has its permanent place
	leastReleased = 20             // minimum number of entries in the subscription document of a replay, if there are so many
	mostReleased  = 500            // maximum number of archived entries there
	showReleased  = 30             // days for which the subscription document shows a release
	mostKept      = 24 * time.Hour // maximum time for caches to keep a document of a replay
)

// replays serves replays, and keeps their orders.
type replays struct {
	store  mirror.Store
	out    publish.Output
	locks  *locks
	feeds  string // the URL of the directory of all feeds, with a final slash
	size   int    // entries per archive
	logger *slog.Logger
	orders publish.Cache[string, frozenOrder]
	places publish.Cache[string, knownPlaces]
}

// A replayState is a replay at a moment.
type replayState struct {
	*Replay
	s        *replays
	feed     *mirror.Feed
	name     string
	format   feedhistory.Format
	now      time.Time
	released []release // first release first
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
	leave, err := h.slots.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	p, err := h.replays.state(r.Context(), asked.feed, asked.name, replay, h.now())
	if err != nil {
		return err
	}
	p.format = asked.format
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
	var b bytes.Buffer
	if err := write(&b, doc, p.format); err != nil {
		return err
	}
	return serveBytes(w, r, b.Bytes(), p.format, "public, max-age="+strconv.Itoa(int(p.keep(archive)/time.Second)))
}

// state returns a replay at a moment.
func (s *replays) state(ctx context.Context, feed *mirror.Feed, name string, r *Replay, now time.Time) (*replayState, error) {
	places, err := s.placesOf(ctx, feed)
	if err != nil {
		return nil, err
	}
	order, later, err := s.ordered(ctx, feed, name, r, places.list)
	if err != nil {
		return nil, err
	}
	p := &replayState{lost: places.lost, Replay: r, s: s, feed: feed, name: name, now: now, released: r.timetable(order, later, now)}
	if n := len(p.released); n > 0 && p.released[n-1].at.After(now) {
		p.next, p.released = p.released[n-1].at, p.released[:n-1]
	} else {
		p.ended = !r.until.IsZero() && !now.Before(r.until)
	}
	return p, nil
}

// archives returns the number of archives.
func (p *replayState) archives() int {
	return p.releasedBy(p.now.Add(-archiveAfter)) / p.s.size
}

// releasedBy returns the number of releases up to a time.
func (p *replayState) releasedBy(at time.Time) int {
	n, _ := slices.BinarySearchFunc(p.released, at, func(r release, at time.Time) int {
		if r.at.After(at) {
			return 1
		}
		return -1
	})
	return n
}

// shownFrom returns the index of the first release in the subscription document.
// Readers that follow no archives, and were away for weeks, find theirs there.
func (p *replayState) shownFrom() int {
	all, archived := len(p.released), p.archives()*p.s.size
	from := min(all-leastReleased, max(all-mostReleased, p.releasedBy(p.now.AddDate(0, 0, -showReleased))))
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
	return p.s.feeds + p.name + "/replay." + p.format.String() + "?" + q.Encode()
}

// document returns a document of the replay.
func (p *replayState) document(ctx context.Context, archive int) (*feedhistory.Document, error) {
	head, err := heading(p.feed, p.format, nil)
	if err != nil {
		return nil, err
	}
	head.ID = p.url(0)
	head.Title += ", from the beginning"
	head.Subtitle = strings.TrimSpace(head.Subtitle + " A replay: " + p.String() + ".")
	archives := p.archives()
	at := func(n int) string {
		if n < 1 || n > archives {
			return ""
		}
		return p.url(n)
	}
	size := p.s.size
	from, to := p.shownFrom(), len(p.released)
	if archive > 0 {
		from, to = (archive-1)*size, archive*size
	}
	entries, err := p.entries(ctx, head, p.released[from:to])
	if err != nil {
		return nil, err
	}
	if gaps := p.lost.gaps(p.feed); len(gaps) > 0 {
		head.Coverage = &feedhistory.Coverage{Of: addressOf(p.feed), Kind: p.feed.Kind, Verdict: feedhistory.Partial, Gaps: gaps}
		entries = append(entries, gaps[0].PseudoEntry())
	}
	if archive > 0 {
		d := feedhistory.NewArchive(head, entries, feedhistory.DocumentLinks{Self: p.url(archive), Current: p.url(0), Prev: at(archive - 1), Next: at(archive + 1)})
		d.Updated = p.released[to-1].at
		return d, nil
	}
	d := feedhistory.NewSubscription(head, entries, p.url(0), at(archives))
	d.Updated = p.start.UTC()
	if to > 0 {
		d.Updated = p.released[to-1].at
	}
	return d, nil
}

// entries returns the entries of releases, newest first.
func (p *replayState) entries(ctx context.Context, head *feedhistory.Document, releases []release) (entries []*feedhistory.Entry, err error) {
	m := newSource(p.feed, head, p.format)
	for _, r := range slices.Backward(releases) {
		if r.empty || p.lost.has(r.id) {
			continue
		}
		record, err := mirror.Lookup(ctx, p.s.store, p.feed.URL, r.id)
		if errors.Is(err, mirror.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e, err := m.released(record, r.at)
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
	At    time.Time // in the replay's zone
	ID    string    // the id of the entry
	Empty bool      // whether nothing comes then, because the entry was deleted
}

// Preview returns the next releases of a replay, at most n (none, if n is not positive),
// and fixes the order of its entries. The error is an *Error if the feed has no such replay.
// The error may be the context's.
func (h *Handler) Preview(ctx context.Context, feed *mirror.Feed, r *Replay, n int) (*Preview, error) {
	if feed == nil || r == nil {
		return nil, errors.New("republish: Handler.Preview: the Feed or the Replay is nil")
	}
	name, err := h.Name(ctx, feed.URL)
	if err != nil {
		return nil, err
	}
	places, err := h.replays.placesOf(ctx, feed)
	if err != nil {
		return nil, err
	}
	order, later, err := h.replays.ordered(ctx, feed, name, r, places.list)
	if err != nil {
		return nil, err
	}
	table := r.timetable(order, later, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	p := &Preview{All: len(table)}
	p.Released, _ = slices.BinarySearchFunc(table, h.now(), func(x release, now time.Time) int {
		if x.at.After(now) {
			return 1
		}
		return -1
	})
	for _, x := range table[p.Released:][:min(max(n, 0), len(table)-p.Released)] {
		p.Next = append(p.Next, Release{At: x.at.In(r.zone), ID: x.id, Empty: x.empty})
	}
	return p, nil
}
