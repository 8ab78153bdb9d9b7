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
	xmlscan.WriteAttr(&w.b, "xmlns:atom", vocab.Atom)
	w.b.WriteString("><channel>\n")
	w.element("title", d.Title)
	home, _ := d.Links.Rel(RelAlternate)
	w.element("link", cmp.Or(iri.URI(cmp.Or(home.Href, d.URL)), iri.Writable(cmp.Or(home.Href, d.URL))))
	w.element("description", cmp.Or(d.Subtitle, d.Title))
	w.element("lastBuildDate", updated.UTC().Format(http.TimeFormat))
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
	w.element("title", e.Title().Plain())
	w.element(`guid isPermaLink="false"`, e.ID)
	if !e.Published.IsZero() {
		w.element("pubDate", e.Published.Format(time.RFC1123Z))
	}
	if !e.Updated.IsZero() {
		w.element("atom:updated", e.Updated.Format(time.RFC3339Nano))
	}
	w.rssLinks(e.Links)
	for _, person := range item.Authors {
		w.element(`dc:creator xmlns:dc="`+vocab.DC+`"`, cmp.Or(person.Name, person.Email))
	}
	for _, category := range item.Categories {
		w.element("category", category)
	}
	summary := e.Summary()
	if summary.Body != "" {
		w.element("description", summary.html())
	}
	switch content := e.Content(); {
	case content.Body+content.Src == "":
	case summary == Text{} && content.Src == "" && !vocab.IsMedia(content.Type):
		w.element("description", content.html()) // readers expect the only text here
	case content.Src != "", vocab.IsMedia(content.Type) && !strings.HasPrefix(content.Type, "text/"):
		w.media("atom:content", content) // RSS has no element for it
	default:
		w.element(`content:encoded xmlns:content="`+vocab.Content+`"`, content.html())
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
			w.element("link", iri.Writable(l.Href))
		case l.Rel == RelEnclosure:
			w.enclosure(l)
		default:
			w.link("atom:link", l)
		}
	}
}

// enclosure writes a link as RSS's element for media, which needs all its attributes.
func (w *xmlWriter) enclosure(l Link) {
	if !isNumber(l.Length) {
		l.Length = "0"
	}
	if !vocab.IsMediaType(l.Type) {
		l.Type = "application/octet-stream"
	}
	w.empty("enclosure", "url", cmp.Or(iri.URI(l.Href), iri.Writable(l.Href)), "length", l.Length, "type", l.Type)
}
