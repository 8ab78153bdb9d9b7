package mirror_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// Roads lead to a model. Its feed is at one of three hosts; the others redirect
// to it, permanently or not, or have lost it. The first host, to which one
// subscribed, never redirects permanently. Now and then a host asks to be left
// alone for a while.
type roads struct {
	model   *feedtest.Model
	weather *weather // on the way to the model; nil if there is none
	guesses bool     // polls request documents no link has named, so a first refusal may not count
	at      int
	others  [3]string // what a host does that does not have the feed

	mu       sync.Mutex // protects the fields below: a walk requests documents ahead
	random   *rand.Rand
	quiet    [3]time.Time
	since    [3]time.Time // requests of the same instant were on their way
	impolite []string     // requests to hosts that had asked to be left alone
	asked    map[string]bool
}

var roadHosts = [3]string{"model.example", "one.example", "two.example"}

func newRoads(model *feedtest.Model, random *rand.Rand) *roads {
	return &roads{model: model, random: random, others: [3]string{"301", "404", "404"}, asked: map[string]bool{}}
}

// move moves the feed, or changes what the other hosts do.
func (r *roads) move() string {
	if r.random.IntN(2) == 0 {
		r.at = r.random.IntN(3)
	}
	for i := range r.others {
		r.others[i] = []string{"301", "301", "302", "404", "500", "410"}[r.random.IntN(5+min(i, 1))]
	}
	return fmt.Sprintf("moved to %s, others %v", roadHosts[r.at], r.others)
}

// settle leaves the feed where it is, so that it can be found from where it
// was. Archives whose links were read at a host that has lost everything since
// cannot be found.
func (r *roads) settle() {
	r.others, r.random = [3]string{"301", "301", "301"}, nil
}

// quieten notes a request, and returns for how long its host asks to be left
// alone from then on; zero if it does not ask.
func (r *roads) quieten(host int, q *http.Request) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.quiet[host].After(time.Now()) && r.since[host].Before(time.Now()) {
		r.impolite = append(r.impolite, fmt.Sprint(q.Host, q.URL))
	}
	again := r.asked[q.Host+q.URL.String()] // the walk does not report the failure of a repeated request
	r.asked[q.Host+q.URL.String()] = true
	if r.random != nil && !again && r.random.IntN(100) == 0 {
		wait = time.Duration(1+r.random.IntN(5)) * time.Hour
		if !r.guesses || q.URL.RequestURI() == "/feed" { // before which there are no guesses
			r.quiet[host], r.since[host] = time.Now().Add(wait), time.Now()
		}
	}
	return wait
}

func (r *roads) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	host := 0
	for i, name := range roadHosts {
		if q.Host == name {
			host = i
		}
	}
	if wait := r.quieten(host, q); wait > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(wait.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	if host == r.at {
		var site http.Handler = r.model
		if r.weather != nil {
			site = r.weather
		}
		site.ServeHTTP(w, q)
		return
	}
	to := "http://" + roadHosts[r.at] + q.URL.RequestURI()
	switch r.others[host] {
	case "301":
		http.Redirect(w, q, to, http.StatusMovedPermanently)
	case "302":
		http.Redirect(w, q, to, http.StatusFound)
	case "404":
		http.NotFound(w, q)
	case "410":
		w.WriteHeader(http.StatusGone)
	default:
		w.WriteHeader(http.StatusInternalServerError)
	}
}
