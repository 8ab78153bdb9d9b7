package feedhistory

import "time"

// A Schedule is when a feed asks to be polled, by RSS's ttl, skipHours and skipDays,
// and the syndication module's updatePeriod and updateFrequency. The zero value means
// the feed does not say.
type Schedule struct {
	Every     time.Duration // Every is the minimum time between polls; zero means the feed does not say.
	SkipHours uint32        // SkipHours has a bit for each hour of the day (UTC) in which not to poll; the lowest is midnight.
	SkipDays  uint8         // SkipDays has a bit for each day of the week (UTC) on which not to poll; the lowest is Sunday.
}

// Next returns the earliest time at which a poll makes sense: when the response is
// no longer fresh and the feed's interval has passed, outside the hours and days to
// skip, and at most a month after the response. It returns the zero time if neither
// the schedule nor the response says anything.
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

// unskipped returns the time, or the first hour after it that is not skipped. A
// schedule that skips everything skips nothing.
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

// maxInterval is the longest interval, so no feed can silence its readers for good.
const maxInterval = 31 * 24 * time.Hour
