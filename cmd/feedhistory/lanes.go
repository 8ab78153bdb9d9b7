package main

import (
	"time"
)

// Lanes are feeds that wait to be polled, a lane for each host: the feeds of one
// host are polled one at a time, with a pause between them.
type lanes struct {
	pause   time.Duration
	hosts   map[string]*lane
	ready   []*lane         // that may go on, those first that have waited longest
	resting []*lane         // after a poll, by when their pause ends
	known   map[string]bool // the feeds that wait or are being polled
	waiting int             // how many feeds wait
}

// A lane is either ready, resting, or one of its feeds is being polled.
type lane struct {
	host  string
	feeds []string
	until time.Time // the end of its pause
}

// A turn is a feed whose turn it is.
type turn struct {
	feed string
	lane *lane
}

func newLanes(pause time.Duration) *lanes {
	return &lanes{pause: pause, hosts: map[string]*lane{}, known: map[string]bool{}}
}

// add has a feed wait, unless it does already or is being polled.
func (l *lanes) add(feed, host string) {
	if l.known[feed] {
		return
	}
	l.known[feed] = true
	l.waiting++
	at := l.hosts[host]
	if at == nil {
		at = &lane{host: host}
		l.hosts[host] = at
		l.ready = append(l.ready, at)
	}
	at.feeds = append(at.feeds, feed)
}

// next returns a feed that may be polled now.
func (l *lanes) next(now time.Time) (turn, bool) {
	for len(l.resting) > 0 && !l.resting[0].until.After(now) {
		if at := l.resting[0]; len(at.feeds) > 0 {
			l.ready = append(l.ready, at)
		} else {
			delete(l.hosts, at.host)
		}
		l.resting = l.resting[1:]
	}
	if len(l.ready) == 0 {
		return turn{}, false
	}
	at := l.ready[0]
	l.ready = l.ready[1:]
	t := turn{at.feeds[0], at}
	at.feeds = at.feeds[1:]
	l.waiting--
	return t, true
}

// done ends a turn.
func (l *lanes) done(t turn, now time.Time) {
	delete(l.known, t.feed)
	t.lane.until = now.Add(l.pause)
	l.resting = append(l.resting, t.lane)
}

// wake is when the next pause ends; false if nobody waits for that.
func (l *lanes) wake() (time.Time, bool) {
	if l.waiting == 0 || len(l.resting) == 0 {
		return time.Time{}, false
	}
	return l.resting[0].until, true
}
