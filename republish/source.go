package republish

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
	"github.com/feedhistory/feedhistory/mirror"
)

// A source is the target format of entries published again, and the feed they name as
// their source.
type source struct {
	format  feedhistory.Format
	element string // the source element of the feed
	private bool   // the feed is private
}

// newSource returns the source of a feed. Nothing in it changes from poll to
// poll.
func newSource(feed *mirror.Feed, head *feedhistory.Document, format feedhistory.Format) *source {
	m := &source{format: format, private: feed.Private}
	var b strings.Builder
	if format == feedhistory.RSS {
		fmt.Fprintf(&b, `<source url="%s">%s</source>`, escape(cmp.Or(addressOf(feed), hostOf(feed))), escape(Title(feed)))
	} else {
		fmt.Fprintf(&b, `<source xmlns="%s"><id>%s</id><title>%s</title>`, vocab.Atom, escape(head.ID), escape(Title(feed)))
		for _, a := range head.Authors {
			fmt.Fprintf(&b, `<author><name>%s</name></author>`, escape(a.Name))
		}
		if address := addressOf(feed); address != "" {
			fmt.Fprintf(&b, `<link rel="self" href="%s"/>`, escape(address))
		}
		if site := Site(feed); site != "" {
			fmt.Fprintf(&b, `<link rel="alternate" href="%s"/>`, escape(site))
		}
		b.WriteString("</source>")
	}
	m.element = b.String()
	return m
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// entry returns an entry as it was published, with a source, and with elements required
// by the format, if it lacks them.
func (m *source) entry(r *mirror.Record) (*feedhistory.Entry, error) {
	if m.private {
		r = r.Redacted()
	}
	e, err := r.Entry()
	if err != nil {
		return nil, err
	}
	element := string(e.XML())
	if !m.isNative(element) {
		if e.Changed().IsZero() {
			e.Updated = r.Time() // when the mirror first saw it
		}
		if element, err = m.converted(e); err != nil {
			return nil, err
		}
	}
	return m.with(element, m.lacking(element, r), r.ID)
}

// with returns an entry with additional elements.
func (m *source) with(element, more, id string) (*feedhistory.Entry, error) {
	end := strings.LastIndex(element, "</")
	if end < 0 {
		return nil, fmt.Errorf("entry %q is empty", id)
	}
	return feedhistory.ReadEntry(m.format, element[:end]+more+element[end:], "")
}

// isNative reports whether an element can be used in the format unchanged.
func (m *source) isNative(element string) bool {
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	if !s.Child(0) {
		return false
	}
	if m.format == feedhistory.RSS {
		return s.Space() == "" && s.Local() == "item"
	}
	return s.Is(vocab.Atom, "entry")
}

// converted returns an entry converted from another format.
func (m *source) converted(e *feedhistory.Entry) (string, error) {
	write := feedhistory.WriteAtom
	if m.format == feedhistory.RSS {
		write = feedhistory.WriteRSS
	}
	var b strings.Builder
	if err := write(&b, &feedhistory.Document{ID: "urn:x", Entries: []*feedhistory.Entry{e}}); err != nil {
		return "", err
	}
	doc, err := feedhistory.Parse(strings.NewReader(b.String()), "")
	if err != nil {
		return "", err
	}
	if len(doc.Entries) != 1 {
		return "", fmt.Errorf("entry %q cannot be written as %v", e.ID, m.format)
	}
	return string(doc.Entries[0].XML()), nil
}

// lacking returns the elements missing from an entry.
func (m *source) lacking(element string, r *mirror.Record) string {
	has := map[string]bool{}
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	s.Next()
	for depth := s.Depth(); s.Child(depth); s.Skip() {
		has[s.Space()+" "+s.Local()] = true
	}
	var b strings.Builder
	if m.format == feedhistory.RSS {
		if !has[" guid"] {
			b.WriteString(`<guid isPermaLink="false">` + escape(r.ID) + "</guid>")
		}
		if !has[" source"] {
			b.WriteString(m.element)
		}
		return b.String()
	}
	if !has[vocab.Atom+" id"] {
		fmt.Fprintf(&b, `<id xmlns="%s">%s</id>`, vocab.Atom, escape(r.ID))
	}
	if !has[vocab.Atom+" updated"] {
		fmt.Fprintf(&b, `<updated xmlns="%s">%s</updated>`, vocab.Atom, r.Time().UTC().Format(time.RFC3339Nano))
	}
	if !has[vocab.Atom+" source"] {
		b.WriteString(m.element)
	}
	return b.String()
}
