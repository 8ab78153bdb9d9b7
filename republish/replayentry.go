package republish

import (
	"cmp"
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
	"github.com/feedhistory/feedhistory/mirror"
)

const (
	nsXML     = "http://www.w3.org/XML/1998/namespace"
	nsDC      = "http://purl.org/dc/elements/1.1/"
	nsContent = "http://purl.org/rss/1.0/modules/content/"
)

// released returns an entry as a replay shows it: with the time of its release,
// and its original date in its text and in its source.
func (m *source) released(r *mirror.Record, at time.Time) (*feedhistory.Entry, error) {
	e, err := m.entry(r)
	if err != nil {
		return nil, err
	}
	original := r.Content.Published
	if original.IsZero() {
		original = r.Content.Updated
	}
	x := &rewrite{m: m, e: e, element: string(e.XML()), original: original}
	x.children()
	if !x.noted {
		x.add(x.text("summary", feedhistory.Text{}))
	}
	if m.format == feedhistory.RSS {
		x.add("<pubDate>" + at.UTC().Format("Mon, 02 Jan 2006 15:04:05") + " GMT</pubDate>")
	} else {
		stamp := at.UTC().Format(time.RFC3339Nano)
		x.add(fmt.Sprintf(`<published xmlns="%s">%s</published><updated xmlns="%[1]s">%[2]s</updated>`, vocab.Atom, stamp))
	}
	x.out.WriteString(x.element[x.copied:])
	return m.with(x.out.String(), x.more, r.ID)
}

// A rewrite copies the element of an entry with some changes.
type rewrite struct {
	m        *source
	e        *feedhistory.Entry
	element  string
	original time.Time // zero if unknown
	out      strings.Builder
	copied   int    // how much of the element has been copied
	more     string // added at the end
	noted    bool   // whether the text contains the original date
}

func (x *rewrite) add(more string) { x.more += more }

// replace replaces a part of the element.
func (x *rewrite) replace(from, to int, text string) {
	x.out.WriteString(x.element[x.copied:from] + text)
	x.copied = to
}

// children processes the child elements of the entry.
func (x *rewrite) children() {
	s := xmlscan.NewFragment(x.element, nil, xmlscan.Unlimited())
	s.Next()
	for depth := s.Depth(); s.Child(depth); {
		from, space, local := s.Offset(), s.Space(), s.Local()
		base, _ := s.Attr(nsXML, "base")
		text := ""
		if isText := x.m.format == feedhistory.RSS && (space == "" && local == "description" || space == nsContent && local == "encoded"); isText {
			text = s.ElementText()
		} else {
			s.Skip()
		}
		switch to := s.End(); {
		case isDate(space, local):
			x.replace(from, to, "")
		case x.m.format == feedhistory.RSS && space == "" && local == "description":
			x.noted = true
			x.replace(from, to, "<description"+baseAttr(base)+">"+escape(x.note()+text)+"</description>")
		case x.m.format == feedhistory.RSS && space == nsContent && local == "encoded":
			x.noted = true
			x.replace(from, to, `<content:encoded xmlns:content="`+nsContent+`"`+baseAttr(base)+">"+escape(x.note()+text)+"</content:encoded>")
		case space == vocab.Atom && x.m.format == feedhistory.Atom:
			x.atomChild(local, from, to)
		}
	}
}

// isDate reports whether an element is a date of the entry.
func isDate(space, local string) bool {
	switch space {
	case vocab.Atom:
		return local == "updated" || local == "published"
	case nsDC:
		return local == "date"
	}
	return space == "" && local == "pubDate"
}

func (x *rewrite) atomChild(local string, from, to int) {
	text := feedhistory.Text{}
	switch local {
	case "content":
		if text = x.e.Content(); text.Src != "" {
			return
		}
	case "summary":
		text = x.e.Summary()
	case "source":
		if x.element[from:to] == x.m.element && !x.original.IsZero() {
			end := strings.LastIndex(x.m.element, "</")
			x.replace(from, to, x.m.element[:end]+"<updated>"+x.original.UTC().Format(time.RFC3339Nano)+"</updated>"+x.m.element[end:])
		}
		return
	default:
		return
	}
	switch cmp.Or(text.Type, feedhistory.TextPlain) {
	case feedhistory.TextPlain, feedhistory.TextHTML, feedhistory.TextXHTML:
		x.noted = true
		x.replace(from, to, x.text(local, text))
	}
}

// text returns an element with the note before its text.
func (x *rewrite) text(local string, text feedhistory.Text) string {
	body := text.Body
	if text.Type != feedhistory.TextHTML && text.Type != feedhistory.TextXHTML && body != "" {
		body = "<p>" + strings.ReplaceAll(html.EscapeString(strings.TrimSpace(body)), "\n", "<br>") + "</p>"
	}
	if x.m.format == feedhistory.RSS {
		return "<description>" + escape(x.note()+body) + "</description>"
	}
	lang := ""
	if text.Lang != "" {
		lang = ` xml:lang="` + escape(text.Lang) + `"`
	}
	return fmt.Sprintf(`<%s xmlns="%s" type="html"%s%s>%s</%[1]s>`, local, vocab.Atom, baseAttr(text.Base), lang, escape(x.note()+body))
}

func baseAttr(base string) string {
	if base == "" {
		return ""
	}
	return ` xml:base="` + escape(base) + `"`
}

// note says when the entry was first published.
func (x *rewrite) note() string {
	if x.original.IsZero() {
		return "<p><em>First published on an unknown date.</em></p>"
	}
	return "<p><em>First published on " + x.original.UTC().Format("2 January 2006") + ".</em></p>"
}
