package web

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

type entryPage struct {
	Feed    string // its short name
	Of      string // the feed's title
	ID      string
	State   mirror.State
	Removed time.Time // when it was, if it is not part of the feed any more
	wording
	Added, Changed time.Time
	Link           string   // of the original; "" if there is none
	Enclosures     []string // further links of it
	Versions       []wording
}

// A wording is what an entry says, or said.
type wording struct {
	Title              string
	TitleLang, Lang    string // of the title and of the content; "" if it is not said
	Updated, Published time.Time
	Authors            string
	Summary            template.HTML // "" if there is a content
	Content            template.HTML
	Cut                bool   // it was too long to be shown whole
	Elsewhere          string // where the content is, if not here
	Damaged            bool   // what is stored cannot be read
}

// Empty reports whether there is nothing to show.
func (w *wording) Empty() bool {
	return w.Summary == "" && w.Content == "" && w.Elsewhere == "" && !w.Damaged
}

// showEntry shows an entry with its earlier versions.
func (s *Server) showEntry(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	feed, err := s.feedOf(r)
	if err != nil {
		return err
	}
	record, err := s.record(ctx, feed.URL, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	e, err := record.Entry()
	p := &entryPage{
		Feed: ShortName(feed.URL), Of: titleOf(feed), ID: record.ID, State: record.State,
		wording: newWording(record.Content, e, err), Added: record.Added, Changed: record.Changed,
		Link: webLink(record.Content.Link),
	}
	if p.State != mirror.Live {
		p.Removed = record.Changed
		if when := record.Tombstone.When; !when.IsZero() {
			p.Removed = when
		}
	}
	if e != nil {
		for _, l := range e.Links {
			if l.Rel == feedhistory.RelEnclosure && webLink(l.Href) != "" {
				p.Enclosures = append(p.Enclosures, webLink(l.Href))
			}
		}
	}
	for v, err := range s.Store.Versions(ctx, feed.URL, record.ID) {
		if err != nil {
			return err
		}
		e, err := v.Entry()
		p.Versions = append(p.Versions, newWording(v.Content, e, err))
	}
	return s.render(w, r, http.StatusOK, "entry", p.Title, p)
}

// record returns a record with its content. It is found by its place.
func (s *Server) record(ctx context.Context, feed, id string) (*mirror.Record, error) {
	records, err := s.Store.Records(ctx, feed, []string{id})
	if err != nil {
		return nil, err
	}
	if known := records[id]; known != nil {
		beyond := known.Cursor()
		beyond.ID += "\x01"
		query := mirror.Query{Feed: feed, Until: beyond.Time.Add(time.Second), Beyond: beyond, Deleted: true, Limit: 1}
		for r, err := range s.Store.Entries(ctx, query) {
			if err != nil {
				return nil, err
			}
			if r.ID == id {
				return r, nil
			}
		}
	}
	return nil, fmt.Errorf("entry %q: %w", id, mirror.ErrNotFound)
}

func newWording(c mirror.Content, e *feedhistory.Entry, err error) wording {
	w := wording{Title: strings.TrimSpace(c.Title), Updated: c.Updated, Published: c.Published, Damaged: err != nil}
	if err != nil {
		return w
	}
	content, summary := e.Content(), e.Summary()
	w.TitleLang, w.Lang = e.Title().Lang, content.Lang
	w.Content, w.Cut = sanitise(content)
	if w.Content == "" {
		w.Elsewhere, w.Lang = webLink(content.Src), summary.Lang
		w.Summary, w.Cut = sanitise(summary)
	}
	if item, err := e.Decode(); err == nil && item != nil {
		var names []string
		for _, person := range item.Authors {
			if name := strings.TrimSpace(person.Name); name != "" {
				names = append(names, name)
			}
		}
		w.Authors = strings.Join(names, ", ")
	}
	return w
}
