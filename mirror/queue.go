package mirror

import (
	"slices"
	"time"
)

// A queue holds the feeds waiting to be polled, in a lane for each host. The feeds of a
// host are polled one at a time, with a pause after each poll.
type queue struct {
	pause   time.Duration
	hosts   map[string]*lane
	ready   []*lane          // lanes whose next feed may be polled, longest wait first
	resting []*lane          // lanes in their pause after a poll, by the end of the pause
	turns   map[string]*turn // the turns of all feeds waiting or being polled
	waiting int              // the number of feeds waiting
}

// A lane is the queue of one host. It is ready, or resting, or one of its feeds
// is being polled.
type lane struct {
	host  string
	turns []*turn
	until time.Time // the end of its pause
	hurry bool      // whether to skip the pause after the poll under way
}

// A turn is a feed's place in a lane.
type turn struct {
	feed   string
	lane   *lane
	cancel func() // ends the poll; nil if the poll has not begun
}

func newQueue(pause time.Duration) *queue {
	return &queue{pause: pause, hosts: map[string]*lane{}, turns: map[string]*turn{}}
}

// add puts a feed into the queue, unless it is there already or is being
// polled.
func (q *queue) add(feed, host string) {
	if q.turns[feed] != nil {
		return
	}
	at := q.hosts[host]
	if at == nil {
		at = &lane{host: host}
		q.hosts[host] = at
		q.ready = append(q.ready, at)
	}
	t := &turn{feed: feed, lane: at}
	at.turns = append(at.turns, t)
	q.turns[feed] = t
	q.waiting++
}

// hurry makes a waiting feed the next one, without a pause.
func (q *queue) hurry(feed string) {
	t := q.turns[feed]
	if t == nil || t.cancel != nil {
		return
	}
	same := func(other *turn) bool { return other == t }
	t.lane.turns = slices.Insert(slices.DeleteFunc(t.lane.turns, same), 0, t)
	for _, lanes := range []*[]*lane{&q.ready, &q.resting} {
		if i := slices.Index(*lanes, t.lane); i >= 0 {
			*lanes = slices.Delete(*lanes, i, i+1)
			q.ready = slices.Insert(q.ready, 0, t.lane)
			return
		}
	}
	t.lane.hurry = true
}

// next returns the turn of a feed to be polled now, or nil.
func (q *queue) next(now time.Time) *turn {
	for len(q.resting) > 0 && !q.resting[0].until.After(now) {
		q.ready = append(q.ready, q.resting[0])
		q.resting = q.resting[1:]
	}
	for len(q.ready) > 0 {
		at := q.ready[0]
		q.ready = q.ready[1:]
		if len(at.turns) == 0 {
			delete(q.hosts, at.host)
			continue
		}
		t := at.turns[0]
		at.turns = at.turns[1:]
		q.waiting--
		return t
	}
	return nil
}

// done ends a turn.
func (q *queue) done(t *turn, now time.Time) {
	delete(q.turns, t.feed)
	if t.lane.hurry {
		t.lane.hurry = false
		q.ready = slices.Insert(q.ready, 0, t.lane)
		return
	}
	t.lane.until = now.Add(q.pause)
	q.resting = append(q.resting, t.lane)
}

// drop removes a waiting feed from the queue.
func (q *queue) drop(t *turn) {
	delete(q.turns, t.feed)
	t.lane.turns = slices.DeleteFunc(t.lane.turns, func(other *turn) bool { return other == t })
	q.waiting--
}

// wake returns when the next pause ends; ok is false if no feed waits for one.
func (q *queue) wake() (time.Time, bool) {
	if q.waiting == 0 || len(q.resting) == 0 {
		return time.Time{}, false
	}
	return q.resting[0].until, true
}
