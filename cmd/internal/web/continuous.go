package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// Continuous reading: several entries on a page, the oldest first.

// entriesRead is the number of entries on a page, and mostRead the size of
// contents after which a page ends.
const (
	entriesRead = 10
	mostRead    = 1 << 20
)

// A readPage shows entries one below the other.
type readPage struct {
	Name, Title string
	Entries     []readEntry
	Next        string // the query of the next page; "" for none
	Images      bool
}

// A readEntry is an entry to read.
type readEntry struct {
	Feed, ID, Link string
	entryText
}

// showRead shows the entries of a feed from one on, or from its beginning.
func (s *Server) showRead(w http.ResponseWriter, r *http.Request) error {
	feed, err := s.feedOf(r)
	if err != nil {
		return err
	}
	p := &readPage{Name: republish.Name(feed.URL), Title: titleOf(feed), Images: showsImages(r)}
	query := mirror.Query{Feed: feed.URL, Oldest: true, Limit: entriesRead + 1}
	if id := r.URL.Query().Get("from"); id != "" {
		first, err := mirror.Lookup(r.Context(), s.store, feed.URL, id)
		if err != nil {
			return err
		}
		p.add(first)
		query.Beyond, query.Limit = first.Place(), entriesRead
	}
	size := 0
	for record, err := range s.store.Entries(r.Context(), query) {
		if err != nil {
			return err
		}
		if len(p.Entries) == entriesRead || size > mostRead {
			p.Next = "?" + url.Values{"from": {record.ID}}.Encode()
			break
		}
		size += len(record.Content.Data)
		p.add(record)
	}
	if len(p.Entries) == 0 {
		return &problem{http.StatusNotFound, "There is no entry yet", "Come back when the feed has been read."}
	}
	if p.Images {
		w.Header().Set("Content-Security-Policy", policyWith(false, true))
	}
	return s.render(w, r, http.StatusOK, "read", "Reading "+p.Title, p)
}

func (p *readPage) add(record *mirror.Record) {
	e, err := record.Entry()
	p.Entries = append(p.Entries, readEntry{
		Feed: p.Name, ID: record.ID, Link: webLink(record.Content.Link), entryText: newWording(record.Content, record.Copy, e, err, p.Images),
	})
}

// Time returns when the entry was published; zero if unknown.
func (e *readEntry) Time() time.Time {
	if e.Published.IsZero() {
		return e.Updated
	}
	return e.Published
}

// hitsAround returns the entries before and after another one among a search's results;
// nil if there is none.
func (d *directory) hitsAround(ctx context.Context, r *mirror.Record, search string) (older, newer *neighbour, err error) {
	for _, n := range []struct {
		to     **neighbour
		oldest bool
	}{{&older, false}, {&newer, true}} {
		query := mirror.Query{Feed: r.Feed, Search: search, Prefix: isBeginning(search), Beyond: r.Place(), Oldest: n.oldest, Limit: 1}
		for other, err := range d.store.Entries(ctx, query) {
			if err != nil {
				return nil, nil, err
			}
			*n.to = &neighbour{ID: other.ID, Title: strings.TrimSpace(other.Content.Title)}
		}
	}
	return older, newer, nil
}
