// Package readertest has models of feed readers' APIs, for tests.
package readertest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	e.FeedID, e.Hash, e.Status = feed, foundHash(id), cmp.Or(e.Status, "unread")
	m.add(&e)
}

// foundHash returns the hash of an entry found in a feed.
func foundHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
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

// A call answers a request with a status and JSON, or nil for no content.
type call func(r *http.Request) (status int, answer any)

func refusal(status int, message string) (int, any) {
	return status, map[string]string{"error_message": message}
}

func (m *Miniflux) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, answer := range map[string]call{
		"GET /v1/version":                      func(*http.Request) (int, any) { return http.StatusOK, map[string]string{"version": m.Version} },
		"GET /v1/feeds":                        func(*http.Request) (int, any) { return http.StatusOK, m.listed() },
		"GET /v1/feeds/{feed}":                 m.ofFeed(func(f *feed, _ *http.Request) (int, any) { return http.StatusOK, f }),
		"PUT /v1/feeds/{feed}":                 m.ofFeed(change),
		"PUT /v1/feeds/{feed}/refresh":         m.ofFeed(m.refresh),
		"GET /v1/feeds/{feed}/entries":         m.list,
		"POST /v1/feeds/{feed}/entries/import": m.importEntry,
		"GET /v1/entries/{entry}":              m.ofEntry(func(e *Entry) (int, any) { return http.StatusOK, e }),
		"PUT /v1/entries/{entry}/bookmark":     m.ofEntry(func(e *Entry) (int, any) { e.Starred = !e.Starred; return http.StatusNoContent, nil }),
		"PUT /v1/entries":                      m.setStatus,
	} {
		if strings.HasSuffix(pattern, "/import") && m.Version < "2.2.16" {
			continue
		}
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { write(w)(answer(r)) })
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

// write returns a function that answers.
func write(w http.ResponseWriter) func(status int, answer any) {
	return func(status int, answer any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if answer != nil {
			_ = json.NewEncoder(w).Encode(answer)
		}
	}
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
		write(w)(refusal(http.StatusUnauthorized, "access unauthorized"))
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
		write(w)(refusal(fault.Status, fault.Message))
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// listed returns the feeds, those with the most errors first.
func (m *Miniflux) listed() []*feed {
	return slices.SortedStableFunc(slices.Values(m.feeds), func(a, b *feed) int { return b.ErrorCount - a.ErrorCount })
}

func (m *Miniflux) hasFeed(id int64) bool {
	return slices.ContainsFunc(m.feeds, func(f *feed) bool { return f.ID == id })
}

// ofFeed answers a request for a feed.
func (m *Miniflux) ofFeed(answer func(*feed, *http.Request) (int, any)) call {
	return func(r *http.Request) (int, any) {
		for _, f := range m.feeds {
			if f.ID == number(r.PathValue("feed")) {
				return answer(f, r)
			}
		}
		return refusal(http.StatusNotFound, "resource not found")
	}
}

// ofEntry answers a request for an entry.
func (m *Miniflux) ofEntry(answer func(*Entry) (int, any)) call {
	return func(r *http.Request) (int, any) {
		for _, e := range m.entries {
			if e.ID == number(r.PathValue("entry")) {
				return answer(e)
			}
		}
		return refusal(http.StatusNotFound, "resource not found")
	}
}

// change changes the address of a feed.
func change(f *feed, r *http.Request) (int, any) {
	var change struct {
		FeedURL string `json:"feed_url"`
	}
	if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
		return refusal(http.StatusBadRequest, err.Error())
	}
	f.FeedURL = cmp.Or(change.FeedURL, f.FeedURL)
	return http.StatusCreated, f
}

// mostRead is the maximum size of documents for Miniflux.
const mostRead = 15 << 20

// refresh reads a feed, as Miniflux does: new entries are unread, those with a
// known hash stay as they are.
func (m *Miniflux) refresh(f *feed, r *http.Request) (int, any) {
	doc, err := m.fetch(r, f.FeedURL)
	if err != nil {
		f.ErrorCount, f.ErrorMessage = f.ErrorCount+1, err.Error()
		return refusal(http.StatusInternalServerError, err.Error())
	}
	f.ErrorCount, f.ErrorMessage = 0, ""
	for _, e := range doc.Entries {
		link, _ := e.Links.Rel("alternate")
		found := &Entry{
			FeedID: f.ID, Hash: foundHash(e.ID), URL: link.Href, Title: e.Title().Plain(), Content: e.Content().Body,
			Status: "unread", PublishedAt: e.Published,
		}
		if found.PublishedAt.IsZero() {
			found.PublishedAt = e.Updated
		}
		if m.same(found) == nil && !m.buried[m.grave(found)] {
			m.add(found)
		}
	}
	return http.StatusNoContent, nil
}

// same returns the entry of the same feed and hash; nil if there is none.
func (m *Miniflux) same(e *Entry) *Entry {
	for _, had := range m.entries {
		if had.FeedID == e.FeedID && had.Hash == e.Hash {
			return had
		}
	}
	return nil
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
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("unable to fetch this resource (status code = %d)", resp.StatusCode)
	}
	data, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, mostRead))
	if err != nil {
		return nil, err
	}
	return feedhistory.Parse(bytes.NewReader(data), url)
}

func (m *Miniflux) list(r *http.Request) (int, any) {
	id, q := number(r.PathValue("feed")), r.URL.Query()
	if !m.hasFeed(id) {
		return refusal(http.StatusBadRequest, "invalid feed ID")
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
	total, limit := len(found), int(number(cmp.Or(q.Get("limit"), "100")))
	found = found[min(int(number(q.Get("offset"))), len(found)):]
	return http.StatusOK, map[string]any{"total": total, "entries": found[:min(limit, len(found))]}
}

func (m *Miniflux) setStatus(r *http.Request) (int, any) {
	var change struct {
		IDs    []int64 `json:"entry_ids"`
		Status string
	}
	if json.NewDecoder(r.Body).Decode(&change) != nil || len(change.IDs) == 0 {
		return refusal(http.StatusBadRequest, "the list of entries cannot be empty")
	}
	for _, e := range m.entries {
		if slices.Contains(change.IDs, e.ID) {
			e.Status = change.Status
		}
	}
	return http.StatusNoContent, nil
}

func (m *Miniflux) importEntry(r *http.Request) (int, any) {
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
		return refusal(http.StatusBadRequest, "feed does not exist")
	case err != nil:
		return refusal(http.StatusBadRequest, err.Error())
	case in.URL == "":
		return refusal(http.StatusBadRequest, "url is required")
	case in.Status != "read" && in.Status != "unread":
		return refusal(http.StatusBadRequest, "invalid entry status")
	case strings.Contains(in.Title+in.Content, "\x00"):
		return refusal(http.StatusInternalServerError, "pq: invalid byte sequence for encoding \"UTF8\": 0x00")
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
	if m.buried[m.grave(e)] {
		return refusal(http.StatusBadRequest, "store: entry is tombstoned")
	}
	status := http.StatusOK
	if had := m.same(e); had != nil {
		e = had
	} else {
		m.add(e)
		status = http.StatusCreated
	}
	e.Status, e.Starred = in.Status, e.Starred || in.Starred
	return status, map[string]int64{"id": e.ID}
}
