package handover

import (
	"cmp"
	"html"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
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
		if l.Rel == feedhistory.RelEnclosure {
			a.enclosures = append(a.enclosures, l)
		}
	}
	if a.at.IsZero() {
		a.at = r.Time()
	}
	// if there are too many extensions to decode, the item has those already decoded
	item, _ := e.Decode()
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
	case t.Type == feedhistory.TextHTML || t.Type == feedhistory.TextXHTML:
		return strings.ReplaceAll(absolute, "\x00", "")
	case t.Type == "" || t.Type == feedhistory.TextPlain || strings.HasPrefix(t.Type, "text/"):
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
	text := clean(feedhistory.Text{Type: feedhistory.TextHTML, Body: body}.Plain())
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
