package handover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/feedhistory/feedhistory/mirror"
)

// An Export writes mirrored feeds into files for import into feed readers.
type Export struct {
	Store   mirror.Store
	Query   mirror.Query // Query selects the entries of each feed.
	Status  string       // Read or Unread; "" means Read
	Starred bool         // whether to star the entries
}

// articles yields the articles of feeds, oldest first, each with its feed.
func (x *Export) articles(ctx context.Context, feeds iter.Seq2[*mirror.Feed, error]) iter.Seq2[origin, error] {
	return func(yield func(origin, error) bool) {
		for f, err := range feeds {
			if err != nil {
				yield(origin{}, err)
				return
			}
			o := origin{feed: f, site: siteOf(f)}
			q := x.Query
			q.Feed, q.Oldest, q.Deleted = f.URL, true, false
			for r, err := range x.Store.Entries(ctx, q) {
				if err == nil {
					o.article, err = x.article(r, o.site)
				}
				if !yield(o, err) || err != nil {
					return
				}
			}
		}
	}
}

func (x *Export) article(r *mirror.Record, site string) (*article, error) {
	e, err := r.Entry()
	if err != nil {
		return nil, err
	}
	return articleOf(r, e, site), nil
}

// An origin is an article with its feed.
type origin struct {
	*article
	feed *mirror.Feed
	site string
}

// write writes a list in JSON, one element per line, between a beginning and an
// end.
func write[T any](w io.Writer, begin, end string, articles iter.Seq2[origin, error], form func(origin) T) error {
	out := bufio.NewWriter(w)
	_, _ = out.WriteString(begin) // Flush returns any error
	separator := "\n"
	for a, err := range articles {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		line, err := json.Marshal(form(a))
		if err != nil {
			return err
		}
		_, _ = out.WriteString(separator)
		_, _ = out.Write(line)
		separator = ",\n"
	}
	_, _ = out.WriteString("\n" + end + "\n")
	return out.Flush()
}

// A greaderItem is an entry in the format of Google Reader's export.
type greaderItem struct {
	ID         string         `json:"id"`
	Title      string         `json:"title"`
	Published  int64          `json:"published"` // in Unix seconds
	Author     string         `json:"author,omitempty"`
	Categories []string       `json:"categories"`
	Alternate  []greaderLink  `json:"alternate"`
	Enclosure  []greaderLink  `json:"enclosure,omitempty"`
	Content    greaderContent `json:"content"`
	Origin     greaderOrigin  `json:"origin"`
}

type greaderLink struct {
	Href string `json:"href"`
	Type string `json:"type,omitempty"`
}

type greaderContent struct {
	Content string `json:"content"`
}

type greaderOrigin struct {
	StreamID string `json:"streamId"`
	FeedURL  string `json:"feedUrl"`
	Title    string `json:"title"`
	HTMLURL  string `json:"htmlUrl"`
}

// greaderState is the prefix of the states of entries, which are categories.
const greaderState = "user/-/state/com.google/"

// GoogleReader writes feeds in the format of Google Reader's export, which FreshRSS
// imports. Ids are the feed's, so FreshRSS recognises the entries it has. The importer
// does not accept enclosures, so the content links to them.
func (x *Export) GoogleReader(ctx context.Context, w io.Writer, feeds iter.Seq2[*mirror.Feed, error]) error {
	const begin = `{"id":"user/-/state/com.google/reading-list","title":"feedhistory","items":[`
	return write(w, begin, "]}", x.articles(ctx, feeds), func(a origin) greaderItem {
		item := greaderItem{
			ID: a.id, Title: a.title, Published: max(a.at.Unix(), 0), Author: a.author,
			Categories: []string{greaderState + "read"},
			Alternate:  []greaderLink{{Href: a.url, Type: "text/html"}},
			Content:    greaderContent{a.html + a.enclosed()},
			Origin:     greaderOrigin{"feed/" + a.feed.URL, a.feed.URL, clean(a.feed.Title), a.site},
		}
		if x.Status == Unread {
			item.Categories[0] = greaderState + "unread"
		}
		if x.Starred {
			item.Categories = append(item.Categories, greaderState+"starred")
		}
		item.Categories = append(item.Categories, a.tags...)
		for _, l := range a.enclosures {
			item.Enclosure = append(item.Enclosure, greaderLink{l.Href, l.Type})
		}
		return item
	})
}

// A nextcloudItem is an entry of articles.json. All fields are required.
type nextcloudItem struct {
	GUID          string  `json:"guid"`
	URL           string  `json:"url"`
	Title         string  `json:"title"`
	Author        string  `json:"author"`
	PubDate       int64   `json:"pubDate"` // in Unix seconds
	Body          string  `json:"body"`
	EnclosureMime *string `json:"enclosureMime"`
	EnclosureLink *string `json:"enclosureLink"`
	Unread        bool    `json:"unread"`
	Starred       bool    `json:"starred"`
	FeedLink      string  `json:"feedLink"` // the feed's website, by which News finds the feed
	RTL           bool    `json:"rtl"`
}

// NextcloudNews writes feeds in the format of Nextcloud News, articles.json.
// News assigns an article to the subscription with the same website.
func (x *Export) NextcloudNews(ctx context.Context, w io.Writer, feeds iter.Seq2[*mirror.Feed, error]) error {
	return write(w, "[", "]", x.articles(ctx, feeds), func(a origin) nextcloudItem {
		item := nextcloudItem{
			GUID: a.id, URL: a.url, Title: a.title, Author: a.author, PubDate: max(a.at.Unix(), 0),
			Body: a.html, Unread: x.Status == Unread, Starred: x.Starred, FeedLink: a.site,
		}
		if len(a.enclosures) > 0 {
			first := a.enclosures[0]
			item.EnclosureLink, item.EnclosureMime = &first.Href, &first.Type
			rest := article{html: a.html, enclosures: a.enclosures[1:]}
			item.Body += rest.enclosed()
		}
		return item
	})
}
