package feedhistory

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Schedule is how often a feed itself wants to be polled: by RSS's ttl,
// skipHours and skipDays, and the syndication module's updatePeriod and
// updateFrequency. The zero value means that the feed does not say.
type Schedule struct {
	Every     time.Duration // Every is the least time between polls; zero means that the feed does not say.
	SkipHours uint32        // SkipHours has a bit for each hour of the day (UTC) in which not to poll; the lowest is midnight.
	SkipDays  uint8         // SkipDays has a bit for each day of the week (UTC) on which not to poll; the lowest is Sunday.
}

// Next returns the earliest time at which a poll makes sense: when the response is
// no longer fresh and the feed's interval has passed, outside the hours and days to
// skip, and at most a month after the response. It returns the zero time if neither
// says anything.
func (s Schedule) Next(r Response) time.Time {
	next := r.Fresh
	if at := r.Received.Add(s.Every); s.Every > 0 && at.After(next) {
		next = at
	}
	if latest := r.Received.Add(maxInterval); next.After(latest) && !r.Received.IsZero() {
		next = latest
	}
	if next.IsZero() && s.skips(r.Received) {
		next = r.Received
	}
	return s.unskipped(next)
}

func (s Schedule) skips(t time.Time) bool {
	t = t.UTC()
	return s.SkipDays>>t.Weekday()&1 == 1 || s.SkipHours>>t.Hour()&1 == 1
}

// unskipped returns the time, or the first hour after it that is not skipped;
// what skips everything skips nothing.
func (s Schedule) unskipped(t time.Time) time.Time {
	if t.IsZero() || !s.skips(t) {
		return t
	}
	hour := t.Truncate(time.Hour)
	for range 8 * 24 {
		if hour = hour.Add(time.Hour); !s.skips(hour) {
			return hour
		}
	}
	return t
}

// NextPoll returns when to request the document again, or the zero time if neither
// the document nor the response says. See Schedule.Next.
func (d *Document) NextPoll() time.Time { return d.Schedule.Next(d.Response) }

var periods = map[string]time.Duration{
	"hourly": time.Hour, "daily": 24 * time.Hour, "weekly": 7 * 24 * time.Hour,
	"monthly": 30 * 24 * time.Hour, "yearly": 365 * 24 * time.Hour,
}

// A scheduleReader collects what a head section says about polling.
type scheduleReader struct {
	ttl       time.Duration
	period    time.Duration
	frequency int
}

// maxInterval keeps a feed from silencing its readers for good.
const maxInterval = 31 * 24 * time.Hour

// scheduleElement reads the current element of the head section if it is about
// polling, and reports whether it was.
func (r *reader) scheduleElement() bool {
	rss, syndication := r.doc.Format == RSS && r.isRSS(), r.space() == nsSyndication
	local := r.s.Local()
	if rss {
		local = rssName(local)
	}
	switch {
	case rss && local == "ttl":
		if n := count(r.plainText()); n > 0 {
			r.polls.ttl = min(time.Duration(n)*time.Minute, maxInterval)
		}
	case rss && local == "skipHours":
		r.skips("hour", func(text string) {
			if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= 24 {
				r.doc.Schedule.SkipHours |= 1 << (n % 24) // 24 is an old name of 0
			}
		})
	case rss && local == "skipDays":
		r.skips("day", func(text string) {
			for day := time.Sunday; day <= time.Saturday; day++ {
				if strings.EqualFold(text, day.String()) {
					r.doc.Schedule.SkipDays |= 1 << day
				}
			}
		})
	case syndication && local == "updatePeriod":
		r.polls.period = periods[strings.ToLower(r.plainText())]
	case syndication && local == "updateFrequency":
		r.polls.frequency = count(r.plainText())
	default:
		return false
	}
	r.doc.Schedule.Every = r.polls.every()
	return true
}

// count reads a number that is not negative; what is none counts as zero. All
// numbers of a million and more are the same, on machines of 32 bits too.
func count(text string) int {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return int(min(max(n, 0), 1<<20))
}

// every is the longest of the intervals that the feed asks for. A frequency
// says how often it is updated in a period; the default period is a day.
func (s scheduleReader) every() time.Duration {
	period := s.period
	if period == 0 && s.frequency > 0 {
		period = periods["daily"]
	}
	return max(s.ttl, min(period/time.Duration(max(s.frequency, 1)), maxInterval))
}

// skips reads the children of skipHours or skipDays.
func (r *reader) skips(name string, read func(text string)) {
	for depth := r.s.Depth(); r.child(depth); {
		if rssName(r.s.Local()) == name {
			read(r.plainText())
		}
	}
}
