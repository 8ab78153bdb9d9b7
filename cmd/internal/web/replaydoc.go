package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

const (
	mostOrders    = 8              // orders to keep in memory; those of large feeds have some megabytes
	archiveAfter  = 24 * time.Hour // after this time a release has its permanent place
	leastReleased = 20             // minimum number of entries in the subscription document of a replay, if there are so many
	mostKept      = 24 * time.Hour // maximum time that caches may keep a document of a replay
)

// A replaying is a replay at a moment.
type replaying struct {
	*replay
	s        *Server
	feed     *mirror.Feed
	name     string
	format   feedhistory.Format
	now      time.Time
	released []release // first release first
	next     time.Time // when the next release is; zero if unknown
	ended    bool
}

// now returns the present time for replays.
func (s *Server) now() time.Time {
	if s.clock != nil {
		return s.clock()
	}
	return time.Now()
}

// serveReplay answers with a document of a replay (5005#4): the subscription
// document, or one of its archives.
func (s *Server) serveReplay(w http.ResponseWriter, r *http.Request) error {
	feed, name, err := s.toPublish(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	asked, err := parseReplay(q)
	if err != nil {
		return wrongAddress(err.Error())
	}
	p, err := s.replaying(r.Context(), feed, name, asked, s.now())
	if err != nil {
		return err
	}
	p.format = formatOf(r)
	archive := 0
	if text := q.Get("archive"); q.Has("archive") {
		if archive, err = strconv.Atoi(text); err != nil || archive < 1 || archive > p.archives() {
			return &problem{http.StatusNotFound, "There is no such archive of the replay yet", "Begin with the address without archive=."}
		}
	}
	doc, err := p.document(r.Context(), archive)
	if err != nil {
		return err
	}
	write := feedhistory.WriteAtom
	if p.format == feedhistory.RSS {
		write = feedhistory.WriteRSS
	}
	var b bytes.Buffer
	if err := write(&b, doc); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", mediaTypeOf(p.format))
	h.Set("Content-Security-Policy", documentPolicy)
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(p.keep(archive)/time.Second)))
	deliver(w, r, http.StatusOK, b.Bytes())
	return nil
}

// replaying returns a replay at a moment.
func (s *Server) replaying(ctx context.Context, feed *mirror.Feed, name string, r *replay, now time.Time) (*replaying, error) {
	order, later, err := s.ordered(ctx, feed, name, r)
	if err != nil {
		return nil, err
	}
	p := &replaying{replay: r, s: s, feed: feed, name: name, now: now, released: r.timetable(order, later, now)}
	if n := len(p.released); n > 0 && p.released[n-1].at.After(now) {
		p.next, p.released = p.released[n-1].at, p.released[:n-1]
	} else {
		p.ended = !r.until.IsZero() && !now.Before(r.until)
	}
	return p, nil
}

// size returns the number of places in an archive.
func (p *replaying) size() int {
	if p.s.size > 0 {
		return p.s.size
	}
	return 100
}

// archives returns the number of archives.
func (p *replaying) archives() int {
	settled := p.now.Add(-archiveAfter)
	n, _ := slices.BinarySearchFunc(p.released, settled, func(r release, at time.Time) int {
		if r.at.After(at) {
			return 1
		}
		return -1
	})
	return n / p.size()
}

// keep returns how long caches may keep a document.
func (p *replaying) keep(archive int) time.Duration {
	switch {
	case archive > 0 && archive < p.archives() || p.ended:
		return mostKept
	case p.next.IsZero():
		return 5 * time.Minute // new entries may come at any time
	}
	return min(p.next.Sub(p.now), mostKept).Truncate(time.Second)
}

// url returns the URL of an archive, or of the subscription document for zero.
func (p *replaying) url(archive int) string {
	q := p.query()
	if archive > 0 {
		q.Set("archive", strconv.Itoa(archive))
	}
	return p.s.base() + "feeds/" + p.name + "/replay." + p.format.String() + "?" + q.Encode()
}

// document returns a document of the replay.
func (p *replaying) document(ctx context.Context, archive int) (*feedhistory.Document, error) {
	head, err := heading(p.feed, p.format, false)
	if err != nil {
		return nil, err
	}
	head.ID = p.url(0)
	head.Title += ", once more"
	head.Subtitle = strings.TrimSpace(head.Subtitle + " A replay: " + p.says() + ".")
	archives := p.archives()
	at := func(n int) string {
		if n < 1 || n > archives {
			return ""
		}
		return p.url(n)
	}
	size := p.size()
	from, to := max(0, min(archives*size, len(p.released)-leastReleased)), len(p.released)
	if archive > 0 {
		from, to = (archive-1)*size, archive*size
	}
	entries, err := p.entries(ctx, head, p.released[from:to])
	if err != nil {
		return nil, err
	}
	if archive > 0 {
		d := feedhistory.NewArchive(head, entries, feedhistory.ArchiveAt{Self: p.url(archive), Current: p.url(0), Prev: at(archive - 1), Next: at(archive + 1)})
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
func (p *replaying) entries(ctx context.Context, head *feedhistory.Document, releases []release) (entries []*feedhistory.Entry, err error) {
	m := newSource(p.feed, head, p.format)
	for _, r := range slices.Backward(releases) {
		if r.empty {
			continue
		}
		record, err := p.s.record(ctx, p.feed.URL, r.id)
		if errors.Is(err, mirror.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e, err := m.released(record, r.at)
		if err != nil {
			p.s.Logger.ErrorContext(ctx, "an entry cannot be published", "feed", p.feed.URL, "entry", r.id, "err", err)
			continue
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// says describes a replay in words.
func (r *replay) says() string {
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
