package readers

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"html"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/togofeed"
)

// An article is an entry in the form in which feed readers keep it.
type article struct {
	id         string // the entry's ID as published
	url        string
	title      string // plain text
	html       string // with absolute references
	author     string
	at         time.Time
	tags       []string
	enclosures []feedhistory.Link
}

// articleOf returns the article of a record. An entry without an address gets the
// site's, because readers require one.
func articleOf(r *mirror.Record, e *feedhistory.Entry, site string) *article {
	a := &article{
		id: e.ID, url: cmp.Or(linkOf(e), site), title: clean(e.Title().Plain()), at: e.Time(),
	}
	for _, l := range e.Links {
		if l.Rel == "enclosure" {
			a.enclosures = append(a.enclosures, l)
		}
	}
	if a.at.IsZero() {
		a.at = r.Time()
	}
	// if there are too many extensions to decode, the item has those already decoded
	item, _ := togofeed.Item(e)
	a.html = cmp.Or(htmlOf(e.Content(), item.Content), htmlOf(e.Summary(), item.Description))
	if a.title == "" {
		a.title = beginning(a.html)
	}
	var names []string
	for _, p := range item.Authors {
		if name := clean(cmp.Or(p.Name, p.Email)); name != "" {
			names = append(names, name)
		}
	}
	a.author = strings.Join(names, ", ")
	for _, tag := range item.Categories {
		if tag = clean(tag); tag != "" {
			a.tags = append(a.tags, tag)
		}
	}
	return a
}

// clean returns text as one line, without NUL, which databases refuse.
func clean(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\x00", "")), " ")
}

// htmlOf returns a text as HTML; absolute is its body with absolute references.
func htmlOf(t feedhistory.Text, absolute string) string {
	switch {
	case t.Src != "":
		src := html.EscapeString(t.Src)
		return `<p><a href="` + src + `">` + src + `</a></p>`
	case strings.TrimSpace(t.Body) == "":
		return ""
	case t.Type == "html" || t.Type == "xhtml":
		return strings.ReplaceAll(absolute, "\x00", "")
	case t.Type == "" || t.Type == "text" || strings.HasPrefix(t.Type, "text/"):
		body := html.EscapeString(strings.TrimSpace(strings.ReplaceAll(t.Body, "\x00", "")))
		return "<p>" + strings.ReplaceAll(body, "\n", "<br>\n") + "</p>"
	}
	return "" // other kinds of data
}

// titleLength is the number of characters of the content for the title of an entry
// without one.
const titleLength = 100

// beginning returns the first words of HTML, as a title.
func beginning(body string) string {
	text := clean(feedhistory.Text{Type: "html", Body: body}.Plain())
	if utf8.RuneCountInString(text) <= titleLength {
		return text
	}
	return string([]rune(text)[:titleLength]) + "…"
}

// enclosed returns links to the enclosures as HTML, for readers that cannot import
// enclosures; "" if there are none, or if the text links to all of them.
func (a *article) enclosed() string {
	var b strings.Builder
	for _, l := range a.enclosures {
		href := html.EscapeString(l.Href)
		if l.Href == "" || strings.Contains(a.html, href) {
			continue
		}
		b.WriteString(`<p><a href="` + href + `">` + html.EscapeString(cmp.Or(l.Title, l.Type, l.Href)) + "</a></p>")
	}
	return b.String()
}

// An Export writes mirrored feeds into files for import into feed readers.
type Export struct {
	Store   mirror.Store
	Query   mirror.Query // Query selects the entries of each feed.
	Status  string       // Read or Unread, of all entries; "" means Unread
	Starred bool         // whether to star all entries
}

// articles yields the articles of feeds, oldest first, each with its feed.
func (x *Export) articles(ctx context.Context, feeds iter.Seq2[*mirror.Feed, error]) iter.Seq2[origin, error] {
	return func(yield func(origin, error) bool) {
		for f, err := range feeds {
			if err != nil {
				yield(origin{}, err)
				return
			}
			o := origin{feed: f, site: siteOf(f), read: x.Status == Read, starred: x.Starred}
			q := x.Query
			q.Feed, q.Reverse, q.States = f.URL, true, mirror.Current
			for r, err := range x.Store.Entries(ctx, q) {
				var e *feedhistory.Entry
				if err == nil {
					e, err = r.Entry()
				}
				if err == nil {
					o.article = articleOf(r, e, o.site)
				}
				if !yield(o, err) || err != nil {
					return
				}
			}
		}
	}
}

// An origin is an article with its feed.
type origin struct {
	*article
	feed          *mirror.Feed
	site          string
	read, starred bool
}

// An exportFormat is a list in JSON.
type exportFormat struct {
	begin, end string
	item       func(origin) any
}

// exportFormats are the formats by their names.
var exportFormats = map[string]exportFormat{
	"greader":   {`{"id":"user/-/state/com.google/reading-list","title":"feedhistory","items":[`, "]}", googleReader},
	"nextcloud": {"[", "]", nextcloudNews},
}

// Write writes feeds in a format, one entry per line: greader is that of Google Reader's
// export, which FreshRSS imports; nextcloud is articles.json of Nextcloud News.
func (x *Export) Write(ctx context.Context, w io.Writer, format string, feeds iter.Seq2[*mirror.Feed, error]) error {
	form := exportFormats[format]
	out := bufio.NewWriter(w)
	_, _ = out.WriteString(form.begin) // Flush returns any error
	separator := "\n"
	for a, err := range x.articles(ctx, feeds) {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		line, err := json.Marshal(form.item(a))
		if err != nil {
			return err
		}
		_, _ = out.WriteString(separator)
		_, _ = out.Write(line)
		separator = ",\n"
	}
	_, _ = out.WriteString("\n" + form.end + "\n")
	return out.Flush()
}

// googleReaderState is the prefix of the states of entries, which are categories.
const googleReaderState = "user/-/state/com.google/"

// A googleReaderItem is an item of Google Reader's export.
type googleReaderItem struct {
	ID        string             `json:"id"`
	Title     string             `json:"title"`
	Published int64              `json:"published"` // in Unix seconds
	Author    string             `json:"author,omitempty"`
	States    []string           `json:"categories"` // states, and the entry's categories
	Alternate []googleReaderLink `json:"alternate"`
	Enclosure []googleReaderLink `json:"enclosure,omitempty"`
	Content   struct {
		HTML string `json:"content"`
	} `json:"content,omitzero"`
	Origin struct {
		StreamID string `json:"streamId"`
		FeedURL  string `json:"feedUrl"`
		Title    string `json:"title"`
		Site     string `json:"htmlUrl"`
	} `json:"origin"`
}

type googleReaderLink struct {
	Href string `json:"href"`
	Type string `json:"type,omitempty"`
}

// googleReader returns an article in Google Reader's form. Ids are the feed's, so FreshRSS
// recognises the entries it has. The importer does not accept enclosures, so the content links
// to them.
func googleReader(a origin) any {
	states := []string{googleReaderState + Unread}
	if a.read {
		states[0] = googleReaderState + Read
	}
	if a.starred {
		states = append(states, googleReaderState+"starred")
	}
	item := googleReaderItem{
		ID: a.id, Title: a.title, Published: max(a.at.Unix(), 0), Author: a.author, States: append(states, a.tags...),
		Alternate: []googleReaderLink{{a.url, "text/html"}},
	}
	item.Content.HTML = a.html + a.enclosed()
	item.Origin.StreamID, item.Origin.FeedURL = "feed/"+a.feed.URL, a.feed.URL
	item.Origin.Title, item.Origin.Site = clean(a.feed.Title), a.site
	for _, l := range a.enclosures {
		item.Enclosure = append(item.Enclosure, googleReaderLink{l.Href, l.Type})
	}
	return item
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

// nextcloudNews returns an article in that form. News assigns it to the subscription with the same
// website.
func nextcloudNews(a origin) any {
	item := nextcloudItem{
		GUID: a.id, URL: a.url, Title: a.title, Author: a.author, PubDate: max(a.at.Unix(), 0),
		Body: a.html, Unread: !a.read, Starred: a.starred, FeedLink: a.site,
	}
	if len(a.enclosures) > 0 {
		first := a.enclosures[0]
		item.EnclosureLink, item.EnclosureMime = &first.Href, &first.Type
		rest := article{html: a.html, enclosures: a.enclosures[1:]}
		item.Body += rest.enclosed()
	}
	return item
}
