package readertest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/feedhistory/feedhistory"
)

func (m *Miniflux) hasFeed(id int64) bool {
	return slices.ContainsFunc(m.feeds, func(f *feed) bool { return f.ID == id })
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
