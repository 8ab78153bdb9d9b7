package republish

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the server may run where no zones are installed
)

// A Replay is a feed from its beginning, or from any entry, at a chosen pace. Its
// address says everything except the order of the entries, which the server stores
// (see replayorder.go).
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

func (r *Replay) readZone(text string) (err error) {
	if text == "" || text == "Local" {
		return errors.New("that is not a time zone")
	}
	if r.zone, err = time.LoadLocation(text); err != nil {
		return errors.New("that is not a time zone, such as UTC or Europe/Berlin")
	}
	return nil
}

func (r *Replay) readStart(text string) (err error) {
	r.start, err = parseMoment(text, r.zone)
	r.start = r.start.In(r.zone)
	return err
}

func (r *Replay) readUntil(text string) (err error) {
	if r.until, err = parseMoment(text, r.zone); err == nil && !r.until.After(r.start) {
		err = errors.New("the end comes before the start")
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

func (r *Replay) readPer(text string) (err error) {
	if r.per, err = strconv.Atoi(text); err != nil || r.per < 1 || r.per > mostPer {
		return errors.New("it should be a number between 1 and 100")
	}
	return nil
}

func (r *Replay) readDays(text string) error {
	for name := range strings.SplitSeq(strings.ToLower(text), ",") {
		day := slices.Index(weekdays, strings.TrimSpace(name))
		if day < 0 {
			return errors.New("it should be a list of mon, tue, wed, thu, fri, sat, sun")
		}
		r.days[day] = true
	}
	return nil
}

func (r *Replay) readAsOf(text string) (err error) {
	if r.asof, err = strconv.ParseInt(text, 10, 64); err != nil || r.asof < 1 {
		return errors.New("it should be the number that the feed's page has put there")
	}
	return nil
}

func (r *Replay) readNew(text string) error {
	if text != "now" && text != "last" {
		return errors.New("it should be now, or last")
	}
	r.now = text == "now"
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

// A placedEntry is an entry with its place in the order of a replay.
type placedEntry struct {
	id    string
	time  time.Time // the time deciding its place
	added time.Time // when it came to the mirror
	gone  time.Time // when it left the feed; zero if it is part of it
}

// A release is the release of an entry at a time, or an empty place.
type release struct {
	placedEntry
	at    time.Time
	empty bool
}

// timetable returns the releases up to the first one after a time: those in the
// order, and those of later entries. A release always
// gets the same time, whenever the timetable is made, and no release is before
// the preceding one.
func (r *Replay) timetable(order, later []placedEntry, beyond time.Time) (all []release) {
	next := r.slots(order)
	var last time.Time
	add := func(p placedEntry, at time.Time) bool {
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

// slots returns a function for the release time of the entry with an
// index. The indices must not decrease.
func (r *Replay) slots(order []placedEntry) func(i int) time.Time {
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
