package feedhistory

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"time"
)

// WriteRSS writes a document as RSS 2.0, with RFC 5005's elements as its
// Appendix B has them. Items that were read from RSS 2.0 are written with their
// own XML, others from what can be read of them.
func WriteRSS(w io.Writer, d *Document) error {
	out := &writer{w: w}
	out.b.WriteString("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\"")
	writeAttr(&out.b, "xmlns:atom", nsAtom)
	out.b.WriteString("><channel>\n")
	out.element("title", d.Title)
	home, _ := d.Links.Rel(RelAlternate)
	out.element("link", writable(cmp.Or(home.Href, d.URL)))
	out.element("description", cmp.Or(d.Subtitle, d.Title))
	out.element("lastBuildDate", d.lastChange().UTC().Format(http.TimeFormat))
	for _, l := range d.Links {
		if l != home {
			out.link("atom:link", l)
		}
	}
	out.flags(d)
	out.headAs(d, RSS)
	out.entries(d, RSS, "", out.rssItem)
	out.b.WriteString("</channel></rss>\n")
	out.flush()
	return out.err
}

// rssItem writes an entry of another format.
func (w *writer) rssItem(e *Entry) {
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
		w.element(`dc:creator xmlns:dc="`+nsDC+`"`, cmp.Or(person.Name, person.Email))
	}
	for _, category := range item.Categories {
		w.element("category", category)
	}
	summary := e.Summary()
	if summary != (Text{}) {
		w.element("description", summary.html())
	}
	switch content := e.Content(); {
	case content == Text{}:
	case summary == Text{} && content.Src == "" && !isMedia(content.Type):
		w.element("description", content.html()) // which an item has before it has more
	case content.Src != "", isMedia(content.Type) && !strings.HasPrefix(content.Type, "text/"):
		w.media("atom:content", content) // RSS has no element for it
	default:
		w.element(`content:encoded xmlns:content="`+nsContent+`"`, content.html())
	}
	w.b.WriteString(others.elements + "</item>\n")
}

// rssLinks writes links: the first alternate and enclosures have elements of
// RSS's own.
func (w *writer) rssLinks(links Links) {
	home, _ := links.Rel(RelAlternate)
	for _, l := range links {
		switch {
		case l == home:
			w.element("link", writable(l.Href))
		case l.Rel == RelEnclosure:
			w.empty("enclosure", "url", writable(l.Href), "length", cmp.Or(l.Length, "0"), "type", cmp.Or(l.Type, "application/octet-stream"))
		default:
			w.link("atom:link", l)
		}
	}
}
