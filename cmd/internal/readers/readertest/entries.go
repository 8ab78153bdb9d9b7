package readertest

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"time"
)

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

func (m *Miniflux) bookmark(w http.ResponseWriter, r *http.Request) {
	for _, e := range m.entries {
		if e.ID == number(r.PathValue("entry")) {
			e.Starred = !e.Starred
		}
	}
	w.WriteHeader(http.StatusNoContent)
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
