// Package readertest has models of feed readers' APIs, for tests.
package readertest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// A Miniflux is a model of the reader's API, from version 2.2.16 on.
type Miniflux struct {
	URL     string
	Token   string // "" means "secret"
	Version string // "" means 2.3.3

	// Fault returns the fault of the n-th request, counted from 1, nil
	// for nothing.
	Fault func(n int, r *http.Request) *Fault

	mu       sync.Mutex
	server   *httptest.Server
	feeds    []*feed
	entries  []*Entry
	buried   map[string]bool // the feed and hash of entries deleted in 2.3
	requests int
}

type feed struct {
	ID      int64  `json:"id"`
	FeedURL string `json:"feed_url"`
	SiteURL string `json:"site_url"`
	Title   string `json:"title"`

	ErrorCount   int    `json:"parsing_error_count"`
	ErrorMessage string `json:"parsing_error_message"`
}

// An Entry is an entry in the model.
type Entry struct {
	ID          int64     `json:"id"`
	FeedID      int64     `json:"feed_id"`
	Hash        string    `json:"hash"`
	URL         string    `json:"url"`
	Title       string    `json:"title"`
	Content     string    `json:"content"`
	Author      string    `json:"author"`
	Status      string    `json:"status"`
	Starred     bool      `json:"starred"`
	Tags        []string  `json:"tags"`
	PublishedAt time.Time `json:"published_at"`
}

// A Fault is a disturbance of a request.
type Fault struct {
	Status     int           // the status of the answer; zero: the answer is lost
	Message    string        // error_message
	RetryAfter string        // the header of this name
	Late       bool          // the request has its effect nevertheless
	Wait       time.Duration // before anything happens
}

// Serve starts the model on a loopback address. It ends with the test.
func (m *Miniflux) Serve(t testing.TB) *Miniflux {
	t.Helper()
	m.Start()
	t.Cleanup(m.Close)
	return m
}

// Start starts the model.
func (m *Miniflux) Start() {
	m.Token, m.Version = cmp.Or(m.Token, "secret"), cmp.Or(m.Version, "2.3.3")
	m.buried = map[string]bool{}
	m.server = httptest.NewServer(m.handler())
	m.URL = m.server.URL
}

// Close ends it.
func (m *Miniflux) Close() {
	m.server.CloseClientConnections()
	m.server.Close()
}

// Subscribe subscribes the user to a feed, and returns its number.
func (m *Miniflux) Subscribe(url string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := int64(len(m.feeds) + 1)
	m.feeds = append(m.feeds, &feed{ID: id, FeedURL: url, SiteURL: url, Title: "A feed"})
	return id
}

// Unsubscribe removes a feed.
func (m *Miniflux) Unsubscribe(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.feeds = slices.DeleteFunc(m.feeds, func(f *feed) bool { return f.ID == id })
}

// Poll adds an entry as if Miniflux had found it in a feed: its hash is the
// SHA-256 of its id.
func (m *Miniflux) Poll(feed int64, id string, e Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := sha256.Sum256([]byte(id))
	e.FeedID, e.Hash, e.Status = feed, hex.EncodeToString(sum[:]), cmp.Or(e.Status, "unread")
	m.add(&e)
}

func (m *Miniflux) add(e *Entry) {
	e.ID = 1
	if len(m.entries) > 0 {
		e.ID = m.entries[len(m.entries)-1].ID + 1
	}
	m.entries = append(m.entries, e)
}

// Entries returns the visible entries, in the order in which it came.
func (m *Miniflux) Entries() (entries []Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if e.Status != "removed" {
			entries = append(entries, *e)
		}
	}
	return entries
}

// Break sets Fault while the model is in use.
func (m *Miniflux) Break(fault func(n int, r *http.Request) *Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Fault = fault
}

// Requests returns the number of requests so far.
func (m *Miniflux) Requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests
}

// Delete deletes an entry as the cleanup does. Before 2.3 a shell remains,
// which is not listed; from then on the hash is remembered.
func (m *Miniflux) Delete(url string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, e := range m.entries {
		switch {
		case e.URL != url:
			continue
		case m.Version < "2.3":
			*e = Entry{ID: e.ID, FeedID: e.FeedID, Hash: e.Hash, Status: "removed"}
		default:
			m.buried[m.grave(e)] = true
			m.entries = slices.Delete(m.entries, i, i+1)
		}
		return
	}
}

func (m *Miniflux) grave(e *Entry) string { return fmt.Sprint(e.FeedID, " ", e.Hash) }

// FeedURL returns the address of a subscription.
func (m *Miniflux) FeedURL(id int64) (url string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.feeds {
		if f.ID == id {
			url = f.FeedURL
		}
	}
	return url
}
