// Package opml reads and writes subscription lists: OPML, as far as feeds go.
package opml

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// What a subscription list may cost to read.
const (
	mostBytes = 16 << 20
	mostDepth = 256
)

// An Outline is a feed in a subscription list.
type Outline struct {
	Text string // its title, as plain characters; "" if none is given
	URL  string
	Site string // the website's address; "" if none is given
}

// Read returns the feeds of an OPML document, however deep they are nested,
// each address once. What is no feed, such as a folder or a link to another
// list, is passed over.
func Read(r io.Reader) ([]Outline, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > mostBytes {
		return nil, fmt.Errorf("larger than the %d MiB that a list of feeds may have", mostBytes>>20)
	}
	text, _, err := xmlscan.Decode(string(data), "")
	if err != nil {
		return nil, err
	}
	s := xmlscan.New(text, xmlscan.Limits{Depth: mostDepth})
	if s.Child(0) && !strings.EqualFold(s.Local(), "opml") {
		return nil, fmt.Errorf("not OPML: its root element is %s", s.Local())
	}
	var feeds []Outline
	seen := map[string]bool{}
	for token := s.Next(); token != xmlscan.Stop; token = s.Next() {
		if token != xmlscan.Start || !strings.EqualFold(s.Local(), "outline") {
			continue
		}
		if feed := readOutline(s); feed.URL != "" && !seen[feed.URL] {
			seen[feed.URL] = true
			feeds = append(feeds, feed)
		}
	}
	return feeds, s.Err()
}

// readOutline reads an outline's attributes, whose names have come in any case.
func readOutline(s *xmlscan.Scanner) Outline {
	values := map[string]string{}
	for _, a := range s.Attrs() {
		name := strings.ToLower(a.Local)
		if _, ok := values[name]; !ok {
			values[name] = strings.TrimSpace(a.Value())
		}
	}
	feed := Outline{Text: values["text"], URL: values["xmlurl"], Site: values["htmlurl"]}
	if feed.Text == "" {
		feed.Text = values["title"]
	}
	return feed
}

// A Writer writes a subscription list (OPML 2.0), outline by outline.
type Writer struct {
	out *bufio.Writer
	enc *xml.Encoder
}

// NewWriter begins a list that was made at a time.
func NewWriter(w io.Writer, now time.Time) (*Writer, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	o := &Writer{out: out, enc: xml.NewEncoder(out)}
	o.enc.Indent("", "  ")
	_, err := out.WriteString(xml.Header)
	opml := start("opml", "version", "2.0")
	head := start("head")
	return o, errors.Join(err,
		o.enc.EncodeToken(opml), o.enc.EncodeToken(head),
		o.enc.EncodeElement("Feeds", start("title")),
		o.enc.EncodeElement(now.UTC().Format(time.RFC1123Z), start("dateCreated")),
		o.enc.EncodeToken(head.End()), o.enc.EncodeToken(start("body")))
}

// Add writes a feed. An outline must have a text: if it has none, that is the
// URL.
func (o *Writer) Add(feed Outline) error {
	text := strings.Join(strings.Fields(feed.Text), " ")
	if text == "" {
		text = feed.URL
	}
	element := start("outline", "type", "rss", "text", text, "title", text, "xmlUrl", feed.URL)
	if feed.Site != "" {
		element.Attr = append(element.Attr, xml.Attr{Name: xml.Name{Local: "htmlUrl"}, Value: feed.Site})
	}
	return errors.Join(o.enc.EncodeToken(element), o.enc.EncodeToken(element.End()))
}

// Close ends the list.
func (o *Writer) Close() error {
	err := errors.Join(o.enc.EncodeToken(start("body").End()), o.enc.EncodeToken(start("opml").End()), o.enc.Close())
	_, end := o.out.WriteString("\n")
	return errors.Join(err, end, o.out.Flush())
}

// start returns a start tag with attributes, names and values in turn.
func start(name string, attrs ...string) xml.StartElement {
	element := xml.StartElement{Name: xml.Name{Local: name}}
	for i := 0; i+1 < len(attrs); i += 2 {
		element.Attr = append(element.Attr, xml.Attr{Name: xml.Name{Local: attrs[i]}, Value: attrs[i+1]})
	}
	return element
}
