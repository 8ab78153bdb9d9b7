package backfill

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A listing describes a list of posts in JSON: the names of its members. "" means there is
// none.
type listing struct {
	Items                                                string // the list; "" if that is all
	ID, URL, Title, Summary, Content, Published, Updated string // of a post

	by string // the name of the method
}

// listed requests a list of posts, and returns it as a document. A copy of the publisher's
// own feed counts more.
func (s *source) listed(ctx context.Context, address string) (*feedhistory.Document, error) {
	client, done := settings.Cloned(s.c)
	defer done()
	text, resp, err := settings.Read(ctx, client, address, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return nil, err
	}
	url := resp.Request.URL.String()
	posts, err := s.posts(text)
	if err != nil {
		return nil, &feedhistory.ParseError{URL: url, Reason: feedhistory.ReasonNotFeed, Err: err}
	}
	head := feedhistory.Document{URL: url, Format: feedhistory.FormatAtom, Response: feedhistory.Response{Requested: address, Received: time.Now()}}
	doc := head
	for _, post := range posts {
		if e, err := s.draft(post, url).Entry(); err == nil {
			e.Head = &head
			doc.Entries = append(doc.Entries, e)
		}
	}
	return &doc, nil
}

// posts returns the posts of a list.
func (l *listing) posts(text []byte) (posts []map[string]any, err error) {
	if l.Items == "" {
		return posts, json.Unmarshal(text, &posts)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	return posts, json.Unmarshal(all[l.Items], &posts)
}

// draft returns a post as the feed would have it. Its ID is the address, or what the IDs of
// the feed have in front of the post's number.
func (s *source) draft(post map[string]any, base string) compose.Draft {
	text := func(name string) string {
		switch value := post[name].(type) {
		case string:
			return value
		case float64:
			return strconv.FormatFloat(value, 'f', -1, 64)
		}
		return ""
	}
	at := func(name string) time.Time {
		if ms, ok := post[name].(float64); ok {
			return time.UnixMilli(int64(ms)).UTC()
		}
		t, _ := time.Parse(time.RFC3339Nano, text(name))
		return t
	}
	link := iri.Resolve(base, text(s.URL))
	d := compose.Draft{
		ID: link, Published: at(s.Published), Updated: at(s.Updated), Title: feedhistory.Text{Type: "text", Body: text(s.Title)},
		Summary: feedhistory.Text{Type: "html", Body: text(s.Summary)}, Content: feedhistory.Text{Type: "html", Body: text(s.Content), Base: base},
		Links: feedhistory.Links{{Rel: "alternate", Href: link}}, Extensions: []string{compose.KeptBy(s.by)},
	}
	if d.Updated.IsZero() {
		d.Updated = d.Published
	}
	if len(s.doc.Entries) > 0 {
		own, _ := s.doc.Entries[0].Links.Rel("alternate")
		if id := s.doc.Entries[0].ID; id != own.Href {
			d.ID = id[:strings.LastIndexByte(id, ':')+1] + text(s.ID)
		}
	}
	return d
}
