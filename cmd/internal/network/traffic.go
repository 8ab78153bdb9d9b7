package network

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A Traffic is a slog.Handler for following the requests of clients, for a terminal.
// Its zero value has seen none.
type Traffic struct {
	answers atomic.Int64

	mu      sync.Mutex
	flights map[string]flight // by URL
}

// A flight is a request without a complete answer.
type flight struct {
	began time.Time
	first string // the URL asked of the client, if redirects led elsewhere
}

// patience is how long a host may take before Waiting names it.
const patience = 2 * time.Second

// Answers returns the number of answers so far.
func (t *Traffic) Answers() int { return int(t.answers.Load()) }

// Waiting returns the host with the longest waiting request; "" if none has for two
// seconds.
func (t *Traffic) Waiting() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest, host := time.Now().Add(-patience), ""
	for url, f := range t.flights {
		if f.began.Before(oldest) {
			oldest, host = f.began, feedhistory.HostOf(url)
		}
	}
	return host
}

// Enabled implements slog.Handler.
func (t *Traffic) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (t *Traffic) WithAttrs([]slog.Attr) slog.Handler { return t }

// WithGroup implements slog.Handler.
func (t *Traffic) WithGroup(string) slog.Handler { return t }

// Handle implements slog.Handler.
func (t *Traffic) Handle(_ context.Context, r slog.Record) error {
	attrs := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value.String()
		return true
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	url := attrs["url"]
	switch r.Message {
	case "request":
		if t.flights == nil {
			t.flights = map[string]flight{}
		}
		t.flights[url] = flight{began: time.Now(), first: t.flights[url].first}
	case "answer":
		t.answers.Add(1)
		if f, ok := t.flights[url]; ok {
			f.began = time.Now() // its body may take as long again
			t.flights[url] = f
		}
	case "body", "retry":
		delete(t.flights, url)
	case "redirect":
		first := url
		if f := t.flights[url]; f.first != "" {
			first = f.first
		}
		delete(t.flights, url)
		t.flights[attrs["to"]] = flight{began: time.Now(), first: first}
	case "failure", "refusal":
		for to, f := range t.flights {
			if to == url || f.first == url {
				delete(t.flights, to)
			}
		}
	}
	return nil
}
