package feedhistory

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// rssHead writes the beginning of an RSS document.
func (w *xmlWriter) rssHead(d *Document, updated time.Time) {
	w.b.WriteString("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\"")
	xmlscan.WriteAttr(&w.b.Builder, "xmlns:atom", vocab.Atom)
	w.b.WriteString("><channel>\n")
	w.b.Element("title", d.Title)
	home, _ := d.Links.Rel(RelAlternate)
	w.b.Element("link", cmp.Or(iri.URI(cmp.Or(home.Href, d.URL)), iri.Writable(cmp.Or(home.Href, d.URL))))
	w.b.Element("description", cmp.Or(d.Subtitle, d.Title))
	if updated.After(epoch) {
		second := updated.Add(time.Second - 1).Truncate(time.Second) // so no entry is newer (5005#21)
		w.b.Element("lastBuildDate", second.UTC().Format(http.TimeFormat))
	}
	for _, l := range d.Links {
		if l != home {
			w.link("atom:link", l)
		}
	}
	w.flags(d)
	w.headAs(d, RSS)
}

// rssItem writes an entry of another format.
func (w *xmlWriter) rssItem(e *Entry) {
	item := w.decode(e)
	others := e.extensions()
	w.b.WriteString("<item" + others.attrs + ">\n")
	w.b.Element("title", e.Title().Plain())
	w.b.Element(`guid isPermaLink="false"`, e.ID)
	if !e.Published.IsZero() {
		w.b.Element("pubDate", e.Published.Format(time.RFC1123Z))
	}
	if !e.Updated.IsZero() {
		w.b.Element("atom:updated", e.Updated.Format(time.RFC3339Nano))
	}
	w.rssLinks(e.Links)
	for _, person := range item.Authors {
		w.b.Element(`dc:creator xmlns:dc="`+vocab.DC+`"`, cmp.Or(person.Name, person.Email))
	}
	for _, category := range item.Categories {
		w.b.Element("category", category)
	}
	summary := e.Summary()
	if summary.Body != "" {
		w.b.Element("description", summary.html())
	}
	switch content := e.Content(); {
	case content.Body+content.Src == "":
	case summary == Text{} && content.Src == "" && !vocab.IsMedia(content.Type):
		w.b.Element("description", content.html()) // readers expect the only text here
	case content.Src != "", vocab.IsMedia(content.Type) && !strings.HasPrefix(content.Type, "text/"):
		w.media("atom:content", content) // RSS has no element for it
	default:
		w.b.Element(`content:encoded xmlns:content="`+vocab.Content+`"`, content.html())
	}
	w.b.WriteString(others.elements + "</item>\n")
}

// rssLinks writes links. RSS has elements of its own for the first alternate and for
// enclosures.
func (w *xmlWriter) rssLinks(links Links) {
	home, _ := links.Rel(RelAlternate)
	for _, l := range links {
		switch {
		case l == home:
			w.b.Element("link", iri.Writable(l.Href))
		case l.Rel == RelEnclosure:
			w.b.Enclosure(xmlscan.Link(l))
		default:
			w.link("atom:link", l)
		}
	}
}
