// Package opml reads and writes subscription lists in OPML, as far as feeds are
// concerned.
package opml

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// The limits for reading a subscription list.
const (
	mostBytes = 16 << 20
	mostDepth = 256
)

// An Outline is a feed in a subscription list.
type Outline struct {
	Text string // the title as plain text; "" if there is none
	URL  string
	Site string // the address of the website; "" if there is none
}

// Read returns the feeds of an OPML document, at any depth, each address once.
// It skips other outlines, such as folders and links to other lists.
func Read(r io.Reader) ([]Outline, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > mostBytes {
		return nil, fmt.Errorf("larger than %d MiB, the limit for a list of feeds", mostBytes>>20)
	}
	decoder := newDecoder(data)
	var feeds []Outline
	seen := map[string]bool{}
	for depth, root := 0, ""; ; {
		token, err := decoder.Token()
		switch token := token.(type) {
		case nil:
			switch {
			case err != io.EOF:
				return feeds, err
			case root == "":
				return nil, errors.New("line 1: not OPML: it has no element")
			}
			return feeds, nil
		case xml.EndElement:
			depth--
		case xml.StartElement:
			if root == "" && !strings.EqualFold(token.Name.Local, "opml") {
				return nil, fmt.Errorf("not OPML: its root element is %s", token.Name.Local)
			}
			if root, depth = "opml", depth+1; depth > mostDepth {
				line, _ := decoder.InputPos()
				return feeds, fmt.Errorf("line %d: outlines in more than %d levels", line, mostDepth)
			}
			if feed := readOutline(token); feed.URL != "" && !seen[feed.URL] {
				seen[feed.URL] = true
				feeds = append(feeds, feed)
			}
		}
	}
}

// newDecoder returns a decoder for any charset, lenient about references and end tags,
// as lists are often written by hand.
func newDecoder(data []byte) *xml.Decoder {
	utf16 := bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
	decoder := xml.NewDecoder(transform.NewReader(bytes.NewReader(data), unicode.BOMOverride(transform.Nop)))
	decoder.Strict, decoder.Entity = false, xml.HTMLEntity
	decoder.CharsetReader = func(label string, input io.Reader) (io.Reader, error) {
		if utf16 { // the reader has decoded it
			return input, nil
		}
		return charset.NewReaderLabel(label, input)
	}
	return decoder
}

// readOutline reads the attributes of an outline, whose names may be in any case. It
// returns the zero value for another element.
func readOutline(element xml.StartElement) Outline {
	if !strings.EqualFold(element.Name.Local, "outline") {
		return Outline{}
	}
	values := map[string]string{}
	for _, a := range element.Attr {
		name := strings.ToLower(a.Name.Local)
		if _, ok := values[name]; !ok {
			values[name] = strings.TrimSpace(a.Value)
		}
	}
	return Outline{Text: cmp.Or(values["text"], values["title"]), URL: values["xmlurl"], Site: values["htmlurl"]}
}

// A Writer writes a subscription list (OPML 2.0), outline by outline.
type Writer struct {
	out *bufio.Writer
	enc *xml.Encoder
}

// NewWriter begins a list with the time of its creation.
func NewWriter(w io.Writer, now time.Time) (*Writer, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	o := &Writer{out: out, enc: xml.NewEncoder(out)}
	o.enc.Indent("", "  ")
	_, err := out.WriteString(xml.Header)
	opml := start("opml", "version", "2.0")
	head := start("head")
	return o, cmp.Or(err,
		o.enc.EncodeToken(opml), o.enc.EncodeToken(head),
		o.enc.EncodeElement("Feeds", start("title")),
		o.enc.EncodeElement(now.UTC().Format(time.RFC1123Z), start("dateCreated")),
		o.enc.EncodeToken(head.End()), o.enc.EncodeToken(start("body")))
}

// Add writes a feed. An outline must have a text, so if it has none, the URL is
// used.
func (o *Writer) Add(feed Outline) error {
	text := cmp.Or(strings.Join(strings.Fields(feed.Text), " "), feed.URL)
	element := start("outline", "type", "rss", "text", text, "title", text, "xmlUrl", feed.URL)
	if feed.Site != "" {
		element.Attr = append(element.Attr, xml.Attr{Name: xml.Name{Local: "htmlUrl"}, Value: feed.Site})
	}
	return cmp.Or(o.enc.EncodeToken(element), o.enc.EncodeToken(element.End()))
}

// Close ends the list.
func (o *Writer) Close() error {
	err := cmp.Or(o.enc.EncodeToken(start("body").End()), o.enc.EncodeToken(start("opml").End()), o.enc.Close())
	_, end := o.out.WriteString("\n")
	return cmp.Or(err, end, o.out.Flush())
}

// start returns a start tag with attributes, given as name, value, …
func start(name string, attrs ...string) xml.StartElement {
	element := xml.StartElement{Name: xml.Name{Local: name}}
	for i := 0; i+1 < len(attrs); i += 2 {
		element.Attr = append(element.Attr, xml.Attr{Name: xml.Name{Local: attrs[i]}, Value: attrs[i+1]})
	}
	return element
}
