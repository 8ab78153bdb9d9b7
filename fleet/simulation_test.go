package fleet_test

import (
	"container/heap"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/fleet"
)

var simulated = flag.Int("simulate", 10_000, "the number of feeds in TestSimulation; the README has a million")

// A simulation polls feeds in simulated time, by the rules of Worker: how it looks for due
// hosts, how many it polls at once, how a visit claims feeds, and the pauses. It says how
// late the polls are, and how busy workers and database.
type simulation struct {
	feeds, hosts int
	zipf         bool          // some hosts have many feeds; otherwise each has as many
	every        time.Duration // how often a feed is polled
	workers      int
	atOnce       int // Worker.Hosts

	random  *rand.Rand
	now     time.Duration
	due     dueHosts // hosts nobody polls
	events  events
	busy    []int         // by worker, the number of hosts it polls
	base    time.Duration // free again at this time, having one core
	late    []time.Duration
	begin   time.Duration // of the measurement
	visits  int
	largest int           // the number of feeds of the largest host
	polling time.Duration // sum of the visits' times
}

// The times a simulation assumes. The database takes less for an unchanged poll, as
// measured.
const (
	baseTime   = 300 * time.Microsecond
	jobTime    = 30 * time.Millisecond // from the hold of a host to its first request
	longAnswer = time.Minute           // three tries of a request that nobody answers
	unanswered = 0.005                 // the share of requests that nobody answers
)

// A simulatedHost is a host with the times when its feeds are due, earliest first.
type simulatedHost struct {
	feeds []time.Duration
	due   time.Duration
}

// An event is the end of a visit or, if there is no host, a worker's look for due hosts.
type event struct {
	at     time.Duration
	worker int
	host   *simulatedHost
}

type (
	dueHosts []*simulatedHost
	events   []event
)

func (d dueHosts) Len() int           { return len(d) }
func (d dueHosts) Less(i, j int) bool { return d[i].due < d[j].due }
func (d dueHosts) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dueHosts) Push(x any)        { *d = append(*d, x.(*simulatedHost)) }
func (d *dueHosts) Pop() any          { return pop((*[]*simulatedHost)(d)) }
func (e events) Len() int             { return len(e) }
func (e events) Less(i, j int) bool   { return e[i].at < e[j].at }
func (e events) Swap(i, j int)        { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)          { *e = append(*e, x.(event)) }
func (e *events) Pop() any            { return pop((*[]event)(e)) }

func pop[T any](list *[]T) (last T) {
	last = (*list)[len(*list)-1]
	*list = (*list)[:len(*list)-1]
	return last
}

// answer returns how long a request takes: half of them 0.3 s, and some time out.
func (s *simulation) answer() time.Duration {
	if s.random.Float64() < unanswered {
		return longAnswer
	}
	return time.Duration(0.3 * math.Exp(s.random.NormFloat64()) * float64(time.Second))
}

// populate makes the hosts; their feeds are due at any time of the first period.
func (s *simulation) populate() {
	hosts := make([]*simulatedHost, s.hosts)
	for i := range hosts {
		hosts[i] = &simulatedHost{}
	}
	often := rand.NewZipf(s.random, 1.1, 50, uint64(s.hosts-1))
	for i := range s.feeds {
		h := hosts[i%s.hosts]
		if s.zipf && i >= s.hosts {
			h = hosts[often.Uint64()]
		}
		h.feeds = append(h.feeds, time.Duration(s.random.Int64N(int64(s.every))))
	}
	for _, h := range hosts {
		slices.Sort(h.feeds)
		h.due = h.feeds[0]
		s.largest = max(s.largest, len(h.feeds))
	}
	s.due = hosts
	heap.Init(&s.due)
}

// run simulates three periods, and measures the last.
func (s *simulation) run() {
	s.random = rand.New(rand.NewPCG(1, 2))
	s.populate()
	s.busy, s.begin = make([]int, s.workers), 2*s.every
	for w := range s.workers {
		heap.Push(&s.events, event{at: time.Duration(w) * time.Second / time.Duration(s.workers), worker: w})
	}
	for s.now < 3*s.every {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		if e.host == nil {
			s.look(e.worker)
			continue
		}
		s.busy[e.worker]--
		heap.Push(&s.due, e.host)
	}
}

// look takes the due hosts a worker has room for.
func (s *simulation) look(worker int) {
	room, made := s.atOnce-s.busy[worker], 0
	for ; made < room && s.due[0].due <= s.now; made++ {
		s.visit(worker, heap.Pop(&s.due).(*simulatedHost))
		s.busy[worker]++
	}
	wait := fleet.PlanSeldom
	if made == room {
		wait = fleet.PlanOften
	}
	heap.Push(&s.events, event{at: s.now + wait, worker: worker})
}

// visit polls a host's due feeds, and releases it.
func (s *simulation) visit(worker int, h *simulatedHost) {
	const slice, pause = 2 * time.Minute, time.Second
	at, polled := s.now+jobTime, 0
	for end := at + slice; ; {
		claimed := 0
		for ; claimed < fleet.MostAtPause && h.feeds[0] <= at && at < end; claimed++ {
			if polled++; polled > 1 {
				at += pause
			}
			if at >= s.begin {
				s.late = append(s.late, at-h.feeds[0])
			}
			at += s.answer()
			h.feeds = append(h.feeds[1:], at+s.every)
		}
		if claimed < fleet.MostAtPause || at >= end {
			break
		}
	}
	s.base = max(s.base, s.now) + time.Duration(polled)*baseTime
	at = max(at, s.base)
	h.due = max(h.feeds[0], at+pause)
	if s.now >= s.begin {
		s.visits++
		s.polling += at - s.now
	}
	heap.Push(&s.events, event{at, worker, h})
}

// row returns the result as a row of the README's table.
func (s *simulation) row() string {
	slices.Sort(s.late)
	n := len(s.late)
	var sum time.Duration
	for _, late := range s.late {
		sum += late
	}
	at := func(share float64) time.Duration {
		return s.late[min(n-1, int(share*float64(n)))].Round(10 * time.Millisecond)
	}
	round := 10 * time.Millisecond
	rate := float64(n) / s.every.Seconds()
	return fmt.Sprintf("| %v | %d × %d | %.0f | %.0f | %v · %v · %v · %v | %.2f |", s.every, s.workers, s.atOnce, rate,
		s.polling.Seconds()/s.every.Seconds(), (sum / time.Duration(n)).Round(round), at(0.5), at(0.99), at(1), rate*baseTime.Seconds())
}

// As many hosts at once as the visits need poll every feed in time; fewer do not.
func TestSimulation(t *testing.T) {
	t.Parallel()
	n := *simulated
	for _, crowd := range []struct {
		name  string
		hosts int
		zipf  bool
	}{{"a feed a host", n, false}, {"ten feeds a host", n / 10, false}, {"a few hosts have many", n / 4, true}} {
		for _, every := range []time.Duration{time.Hour, 15 * time.Minute} {
			for _, workers := range [][2]int{{1, 100}, {4, 100}, {1, 1000}, {4, 1000}} {
				s := &simulation{feeds: n, hosts: crowd.hosts, zipf: crowd.zipf, every: every, workers: workers[0], atOnce: workers[1]}
				t.Run(fmt.Sprintf("%s/%v/%d×%d", crowd.name, every, s.workers, s.atOnce), s.test)
			}
		}
	}
}

func (s *simulation) test(t *testing.T) {
	s.run()
	t.Logf("at most %d feeds a host: %s", s.largest, s.row())
	hasRoom := int(s.polling/s.every) < s.workers*s.atOnce*9/10
	mostOfHost := int(s.every / (2 * time.Second)) // the pause and the answers
	if hasRoom && s.largest < mostOfHost {
		require.Less(t, s.late[len(s.late)*9/10], 5*time.Second)
		require.GreaterOrEqual(t, len(s.late), s.feeds*9/10)
	}
}
