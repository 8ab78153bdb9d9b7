package web

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones are named in addresses, wherever the server runs
)

// A replay is a feed from its beginning, or from any entry, at somebody's own
// pace. Its address says everything, so there is nothing to be kept of it.
type replay struct {
	start    time.Time      // when the first entry is released
	zone     *time.Location // that of days
	every    interval       // from one release to the next
	original float64        // how many times faster than it was published; zero: every counts
	per      int            // entries of a release
	days     [7]bool        // on which there are releases, from Sunday on
	from     string         // the id of the first entry; "": the oldest
	asof     int64          // the version of the feed at which the order is that of time; zero: as of start
	now      bool           // what is new at the source does not wait
	until    time.Time      // there are no releases from then on; zero: there is no end
}

// An interval is a time of the clock or of the calendar.
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

// The bounds of what a replay may ask for.
const (
	mostPer      = 100
	longestEvery = 10 * 366 // days
	mostFaster   = 10_000
)

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// replayKeys are the parameters of a replay; archive is that of its documents.
var replayKeys = []string{"start", "every", "per", "days", "from", "zone", "asof", "new", "until", "pace", "archive"}

// parseReplay reads what an address asks for. The error says what makes no sense.
func parseReplay(q url.Values) (*replay, error) {
	for key, values := range q {
		switch {
		case !slices.Contains(replayKeys, key):
			return nil, fmt.Errorf("%s= is unknown", key)
		case len(values) > 1:
			return nil, fmt.Errorf("%s= is there twice", key)
		}
	}
	r := &replay{zone: time.UTC, per: 1, from: q.Get("from")}
	for _, part := range []struct {
		key      string
		required bool
		read     func(string) error
	}{
		{"zone", false, r.readZone}, {"start", true, r.readStart}, {"pace", false, r.readPace}, {"every", !q.Has("pace"), r.readEvery},
		{"per", false, r.readPer}, {"days", false, r.readDays}, {"asof", false, r.readAsOf}, {"new", false, r.readNew}, {"until", false, r.readUntil},
	} {
		text := q.Get(part.key)
		if !q.Has(part.key) {
			if part.required {
				return nil, fmt.Errorf("%s= is missing", part.key)
			}
			continue
		}
		if err := part.read(text); err != nil {
			return nil, fmt.Errorf("%s=%s: %w", part.key, text, err)
		}
	}
	if r.days == [7]bool{} {
		r.days = [7]bool{true, true, true, true, true, true, true}
	}
	return r, nil
}

func (r *replay) readZone(text string) (err error) {
	if text == "" || text == "Local" {
		return errors.New("that is no time zone")
	}
	if r.zone, err = time.LoadLocation(text); err != nil {
		return errors.New("that is no time zone; they are called, for instance, UTC or Europe/Berlin")
	}
	return nil
}

func (r *replay) readStart(text string) (err error) {
	r.start, err = parseMoment(text, r.zone)
	r.start = r.start.In(r.zone)
	return err
}

func (r *replay) readUntil(text string) (err error) {
	if r.until, err = parseMoment(text, r.zone); err == nil && !r.until.After(r.start) {
		err = errors.New("the end comes before the start")
	}
	return err
}

func (r *replay) readEvery(text string) error {
	if r.original > 0 {
		return errors.New("there is a pace= already, which says when entries are released")
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
		return errors.New("nobody can wait for that long")
	}
	r.every = interval{time.Duration(n) * unit.clock, n * unit.days}
	return nil
}

func (r *replay) readPace(text string) (err error) {
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

func (r *replay) readPer(text string) (err error) {
	if r.per, err = strconv.Atoi(text); err != nil || r.per < 1 || r.per > mostPer {
		return errors.New("it should be a number between 1 and 100")
	}
	return nil
}

func (r *replay) readDays(text string) error {
	for name := range strings.SplitSeq(strings.ToLower(text), ",") {
		day := slices.Index(weekdays, strings.TrimSpace(name))
		if day < 0 {
			return errors.New("it should be a list of mon, tue, wed, thu, fri, sat, sun")
		}
		r.days[day] = true
	}
	return nil
}

func (r *replay) readAsOf(text string) (err error) {
	if r.asof, err = strconv.ParseInt(text, 10, 64); err != nil || r.asof < 1 {
		return errors.New("it should be a number that the page of the feed has put there")
	}
	return nil
}

func (r *replay) readNew(text string) error {
	if text != "now" && text != "last" {
		return errors.New("it should be now, or last")
	}
	r.now = text == "now"
	return nil
}

// query writes the replay for a URL: always the same for the same.
func (r *replay) query() url.Values {
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

// dayNames returns the days on which there are releases, from Monday on.
func (r *replay) dayNames() (names []string) {
	for i := range weekdays {
		if day := (i + 1) % 7; r.days[day] {
			names = append(names, weekdays[day])
		}
	}
	return names
}

// postpone returns the first time from t on, at its hour, on a day on which there
// are releases.
func (r *replay) postpone(t time.Time) time.Time {
	for !r.days[t.In(r.zone).Weekday()] {
		t = t.In(r.zone).AddDate(0, 0, 1)
	}
	return t
}

// A placed entry has a place in the order of a replay.
type placed struct {
	id    string
	time  time.Time // by which it was ordered
	added time.Time // to the mirror
	gone  time.Time // from the feed; zero: it is part of it
}

// A release is an entry that is released at a time, or a place that stays empty.
type release struct {
	placed
	at    time.Time
	empty bool
}

// timetable returns the releases up to an entry beyond a time: those of the order
// and those of what came to the mirror later. Each comes at the same time
// whenever it is asked for, and none before the one that precedes it.
func (r *replay) timetable(order, later []placed, beyond time.Time) (all []release) {
	next := r.slots(order)
	var last time.Time
	add := func(p placed, at time.Time) bool {
		at = r.postpone(at)
		if at.Before(last) {
			at = last
		}
		if !r.until.IsZero() && !at.Before(r.until) {
			return false
		}
		last = at
		all = append(all, release{p, at.UTC(), !p.gone.IsZero() && p.gone.Before(at)})
		return !at.After(beyond)
	}
	for i, p := range order {
		at := next(i)
		for r.now && len(later) > 0 && later[0].added.Before(at) {
			if !add(later[0], maxTime(later[0].added, r.start)) {
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
			at = maxTime(at, next(len(order)+i))
		}
		if !add(p, maxTime(at, r.start)) {
			return all
		}
	}
	return all
}

// slots returns a function that tells when the entry with an index is released,
// for indices that do not fall.
func (r *replay) slots(order []placed) func(i int) time.Time {
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

func maxTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
