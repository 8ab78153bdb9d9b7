// Package readertest has models of feed readers' APIs, for tests.
package readertest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
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
	e.FeedID, e.Hash, e.Status = feed, hex.EncodeToString(sum[:]), "unread"
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

func (m *Miniflux) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/version", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"version": m.Version})
	})
	mux.HandleFunc("GET /v1/feeds", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, m.feeds) })
	mux.HandleFunc("GET /v1/feeds/{feed}", func(w http.ResponseWriter, r *http.Request) {
		m.withFeed(w, r, func(f *feed) { answer(w, http.StatusOK, f) })
	})
	mux.HandleFunc("PUT /v1/feeds/{feed}", m.change)
	mux.HandleFunc("PUT /v1/feeds/{feed}/refresh", m.refresh)
	mux.HandleFunc("PUT /v1/entries/{entry}/bookmark", m.bookmark)
	mux.HandleFunc("GET /v1/feeds/{feed}/entries", m.list)
	mux.HandleFunc("GET /v1/entries/{entry}", m.entry)
	mux.HandleFunc("PUT /v1/entries", m.setStatus)
	if m.Version >= "2.2.16" {
		mux.HandleFunc("POST /v1/feeds/{feed}/entries/import", m.importEntry)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.requests++
		var fault *Fault
		if m.Fault != nil {
			fault = m.Fault(m.requests, r)
		}
		m.mu.Unlock()
		m.serve(w, r, mux, fault)
	})
}

func (m *Miniflux) serve(w http.ResponseWriter, r *http.Request, mux http.Handler, fault *Fault) {
	body, _ := io.ReadAll(r.Body) // only after this does the server notice the client's leaving
	r.Body = io.NopCloser(bytes.NewReader(body))
	if fault != nil {
		select {
		case <-time.After(fault.Wait):
		case <-r.Context().Done():
			return
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.Header.Get("X-Auth-Token") != m.Token:
		refuse(w, http.StatusUnauthorized, "access unauthorized")
	case fault == nil || fault.Wait > 0 && fault.Status == 0:
		mux.ServeHTTP(w, r)
	default:
		if fault.Late {
			mux.ServeHTTP(httptest.NewRecorder(), r)
		}
		if fault.Status == 0 {
			panic(http.ErrAbortHandler)
		}
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		refuse(w, fault.Status, fault.Message)
	}
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]string{"error_message": message})
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func (m *Miniflux) hasFeed(id int64) bool {
	return slices.ContainsFunc(m.feeds, func(f *feed) bool { return f.ID == id })
}

func (m *Miniflux) list(w http.ResponseWriter, r *http.Request) {
	id, q := number(r.PathValue("feed")), r.URL.Query()
	if !m.hasFeed(id) {
		refuse(w, http.StatusBadRequest, "invalid feed ID")
		return
	}
	found := []*Entry{}
	for _, e := range m.entries {
		if e.FeedID == id && e.Status != "removed" && e.ID > number(q.Get("after_entry_id")) {
			found = append(found, e)
		}
	}
	if q.Get("order") != "id" {
		slices.SortStableFunc(found, func(a, b *Entry) int { return a.PublishedAt.Compare(b.PublishedAt) })
	}
	if q.Get("direction") != "asc" {
		slices.Reverse(found)
	}
	total, limit := len(found), 100
	if text := q.Get("limit"); text != "" {
		limit = int(number(text))
	}
	found = found[min(int(number(q.Get("offset"))), len(found)):]
	answer(w, http.StatusOK, map[string]any{"total": total, "entries": found[:min(limit, len(found))]})
}

func (m *Miniflux) withFeed(w http.ResponseWriter, r *http.Request, do func(*feed)) {
	i := slices.IndexFunc(m.feeds, func(f *feed) bool { return f.ID == number(r.PathValue("feed")) })
	if i < 0 {
		refuse(w, http.StatusNotFound, "resource not found")
		return
	}
	do(m.feeds[i])
}

func (m *Miniflux) change(w http.ResponseWriter, r *http.Request) {
	m.withFeed(w, r, func(f *feed) {
		var change struct {
			FeedURL string `json:"feed_url"`
		}
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		f.FeedURL = cmp.Or(change.FeedURL, f.FeedURL)
		answer(w, http.StatusCreated, f)
	})
}

// mostRead is the maximum size of documents for Miniflux.
const mostRead = 15 << 20

// refresh reads a feed, as Miniflux does: new entries are unread, those with a
// known hash stay as they are.
func (m *Miniflux) refresh(w http.ResponseWriter, r *http.Request) {
	m.withFeed(w, r, func(f *feed) {
		doc, err := m.fetch(r, f.FeedURL)
		if err != nil {
			f.ErrorCount, f.ErrorMessage = f.ErrorCount+1, err.Error()
			refuse(w, http.StatusInternalServerError, err.Error())
			return
		}
		f.ErrorCount, f.ErrorMessage = 0, ""
		for _, e := range doc.Entries {
			sum := sha256.Sum256([]byte(e.ID))
			hash := hex.EncodeToString(sum[:])
			known := slices.ContainsFunc(m.entries, func(had *Entry) bool { return had.FeedID == f.ID && had.Hash == hash })
			if known || m.buried[fmt.Sprint(f.ID, " ", hash)] {
				continue
			}
			link, _ := e.Links.Rel(feedhistory.RelAlternate)
			at := e.Published
			if at.IsZero() {
				at = e.Updated
			}
			m.add(&Entry{FeedID: f.ID, Hash: hash, URL: link.Href, Title: e.Title().Plain(), Content: e.Content().Body, Status: "unread", PublishedAt: at})
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

func (m *Miniflux) fetch(r *http.Request, url string) (*feedhistory.Document, error) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := m.server.Client().Do(request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostRead+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("unable to fetch this resource (status code = %d)", resp.StatusCode)
	case len(data) > mostRead:
		return nil, errors.New("this resource is too large")
	}
	return feedhistory.Parse(bytes.NewReader(data), url)
}

func (m *Miniflux) bookmark(w http.ResponseWriter, r *http.Request) {
	for _, e := range m.entries {
		if e.ID == number(r.PathValue("entry")) {
			e.Starred = !e.Starred
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

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

func (m *Miniflux) entry(w http.ResponseWriter, r *http.Request) {
	for _, e := range m.entries {
		if e.ID == number(r.PathValue("entry")) {
			answer(w, http.StatusOK, e)
			return
		}
	}
	refuse(w, http.StatusNotFound, "resource not found")
}

func (m *Miniflux) setStatus(w http.ResponseWriter, r *http.Request) {
	var change struct {
		IDs    []int64 `json:"entry_ids"`
		Status string
	}
	if json.NewDecoder(r.Body).Decode(&change) != nil || len(change.IDs) == 0 {
		refuse(w, http.StatusBadRequest, "the list of entries cannot be empty")
		return
	}
	for _, e := range m.entries {
		if slices.Contains(change.IDs, e.ID) {
			e.Status = change.Status
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (m *Miniflux) importEntry(w http.ResponseWriter, r *http.Request) {
	id := number(r.PathValue("feed"))
	var in struct {
		URL, Title, Content, Author, Status string
		PublishedAt                         int64  `json:"published_at"`
		ExternalID                          string `json:"external_id"`
		Starred                             bool
		Tags                                []string
	}
	err := json.NewDecoder(r.Body).Decode(&in)
	in.Status = cmp.Or(in.Status, "read")
	switch {
	case !m.hasFeed(id):
		refuse(w, http.StatusBadRequest, "feed does not exist")
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, err.Error())
		return
	case in.URL == "":
		refuse(w, http.StatusBadRequest, "url is required")
		return
	case in.Status != "read" && in.Status != "unread":
		refuse(w, http.StatusBadRequest, "invalid entry status")
		return
	case strings.Contains(in.Title+in.Content, "\x00"):
		refuse(w, http.StatusInternalServerError, "pq: invalid byte sequence for encoding \"UTF8\": 0x00")
		return
	}
	h := fnv.New128a()
	h.Write([]byte(cmp.Or(in.ExternalID, in.URL)))
	e := &Entry{
		FeedID: id, Hash: hex.EncodeToString(h.Sum(nil)), URL: in.URL, Title: cmp.Or(in.Title, in.URL),
		Content: in.Content, Author: in.Author, Starred: in.Starred, Tags: in.Tags, PublishedAt: time.Now().UTC(),
	}
	if in.PublishedAt > 0 {
		e.PublishedAt = time.Unix(in.PublishedAt, 0).UTC()
	}
	status := http.StatusOK
	switch i := slices.IndexFunc(m.entries, func(had *Entry) bool { return had.FeedID == id && had.Hash == e.Hash }); {
	case m.buried[m.grave(e)]:
		refuse(w, http.StatusBadRequest, "store: entry is tombstoned")
		return
	case i >= 0:
		e = m.entries[i]
	default:
		m.add(e)
		status = http.StatusCreated
	}
	e.Status, e.Starred = in.Status, e.Starred || in.Starred
	answer(w, status, map[string]int64{"id": e.ID})
}
