// Package miniflux reads all entries of a user by the API of Miniflux.
package miniflux

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/memory"
	"github.com/feedhistory/feedhistory/cmd/internal/readerapi"
	"github.com/feedhistory/feedhistory/mirror"
)

// atOnce is the number of entries in an answer.
const atOnce = 100

type feed struct {
	ID    int64  `json:"id"`
	URL   string `json:"feed_url"`
	Title string `json:"title"`
}

type entry struct {
	ID         int64     `json:"id"`
	Hash       string    `json:"hash"`
	URL        string    `json:"url"`
	Title      string    `json:"title"`
	Content    string    `json:"content"`
	Author     string    `json:"author"`
	Published  time.Time `json:"published_at"`
	Tags       []string  `json:"tags"`
	Enclosures []struct {
		URL  string `json:"url"`
		Type string `json:"mime_type"`
		Size int64  `json:"size"`
	} `json:"enclosures"`
}

// Read yields the entries of all feeds, feed by feed, oldest first. The server's header has
// the user's API key as a bearer token, or the user and the password.
func Read(ctx context.Context, s *readerapi.Server, wanted func(feed string) bool, mark string) iter.Seq2[memory.Found, error] {
	if token := s.Token(); token != "" {
		s.Header = s.Header.Clone()
		s.Header.Del("Authorization")
		s.Header.Set("X-Auth-Token", token)
	}
	s.URL = strings.TrimSuffix(strings.TrimSuffix(s.URL, "/"), "/v1") + "/v1"
	return func(yield func(memory.Found, error) bool) {
		var feeds []feed
		if err := s.Get(ctx, "feeds", nil, &feeds); err != nil {
			yield(memory.Found{}, err)
			return
		}
		from, after := place(mark)
		for _, f := range feeds {
			if f.ID < from || !wanted(f.URL) {
				continue
			}
			if f.ID != from {
				after = 0
			}
			if !yield(memory.Found{Feed: f.URL, Title: f.Title}, nil) || !entries(ctx, s, f, after, yield) {
				return
			}
		}
	}
}

// place reads a mark: a feed, and the last of its entries.
func place(mark string) (feed, after int64) {
	first, rest, _ := strings.Cut(mark, " ")
	feed, _ = strconv.ParseInt(first, 10, 64)
	after, _ = strconv.ParseInt(rest, 10, 64)
	return feed, after
}

// entries yields the entries of a feed, and reports whether to continue.
func entries(ctx context.Context, s *readerapi.Server, f feed, after int64, yield func(memory.Found, error) bool) bool {
	for {
		query := url.Values{"order": {"id"}, "direction": {"asc"}, "limit": {strconv.Itoa(atOnce)}}
		if after > 0 {
			query.Set("after_entry_id", strconv.FormatInt(after, 10))
		}
		var answer struct{ Entries []entry }
		if err := s.Get(ctx, fmt.Sprintf("feeds/%d/entries", f.ID), query, &answer); err != nil {
			return yield(memory.Found{}, err) && false
		}
		for i := range answer.Entries {
			e := &answer.Entries[i]
			if e.ID <= after {
				return yield(memory.Found{}, fmt.Errorf("%s: the entries of feed %d are not in order: Miniflux 2.0.49 or newer is needed", s.URL, f.ID)) && false
			}
			after = e.ID
			if !yield(memory.Found{Feed: f.URL, Title: f.Title, Entry: e.kept(), Mark: fmt.Sprint(f.ID, " ", e.ID)}, nil) {
				return false
			}
		}
		if len(answer.Entries) < atOnce {
			return true
		}
	}
}

// kept returns the entry. Miniflux keeps a hash of its id.
func (e *entry) kept() *mirror.KeptEntry {
	k := &mirror.KeptEntry{Hash: e.Hash, Draft: feedhistory.Draft{
		Title: memory.Plain(e.Title), Content: memory.HTML(e.Content), Published: e.Published.UTC(),
		Links: memory.Alternate(e.URL), Authors: memory.Authors(e.Author), Categories: memory.Categories(e.Tags),
	}}
	for _, file := range e.Enclosures {
		length := ""
		if file.Size > 0 {
			length = strconv.FormatInt(file.Size, 10)
		}
		k.Links = memory.Enclosure(k.Links, file.URL, file.Type, length)
	}
	return k
}
