package readers

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/feedhistory/feedhistory/mirror"
)

// The limits for reading a subscription list.
const (
	mostListBytes = 16 << 20
	mostListDepth = 256
)

// An Outline is a feed in a subscription list.
type Outline struct {
	Text string // the title as plain text; "" if there is none
	URL  string
	Site string // the address of the website; "" if there is none

	// Folders are the folders that have the feed, each as a path from the outermost one.
	// None means outside of all folders.
	Folders [][]string
}

// ReadOPML returns the feeds of an OPML document, at any depth, each address once,
// with all its folders. It skips other outlines, such as links to other lists.
func ReadOPML(r io.Reader) ([]Outline, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostListBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > mostListBytes {
		return nil, fmt.Errorf("larger than %d MiB, the limit for a list of feeds", mostListBytes>>20)
	}
	decoder := newDecoder(data)
	var list outlineList
	for depth, root := 0, ""; ; {
		token, err := decoder.Token()
		switch token := token.(type) {
		case nil:
			switch {
			case err != io.EOF:
				return list.feeds, err
			case root == "":
				return nil, errors.New("line 1: not OPML: it has no element")
			}
			return list.feeds, nil
		case xml.EndElement:
			depth--
			list.leave(depth)
		case xml.StartElement:
			if root == "" && !strings.EqualFold(token.Name.Local, "opml") {
				return nil, fmt.Errorf("not OPML: its root element is %s", token.Name.Local)
			}
			if root, depth = "opml", depth+1; depth > mostListDepth {
				line, _ := decoder.InputPos()
				return list.feeds, fmt.Errorf("line %d: outlines in more than %d levels", line, mostListDepth)
			}
			list.add(readOutline(token), depth)
		}
	}
}

// readSubscriptions takes the feeds of an OPML file, without entries.
func readSubscriptions(ctx context.Context, file string, take func(Found) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	feeds, err := ReadOPML(f)
	for _, feed := range feeds {
		if err := cmp.Or(ctx.Err(), take(Found{Feed: feed.URL, Title: feed.Text})); err != nil {
			return err
		}
	}
	return err
}

// An outlineList is the feeds of a document, as far as it was read.
type outlineList struct {
	feeds []Outline
	at    map[string]int // the index of each address
	path  []string       // the folders around the next outline
	depth []int          // the depth of each folder's element
}

// The limits for the folders of a feed.
const (
	mostFolders    = 50
	mostFolderName = 200 // characters
)

// add adds an outline: a feed, or a folder that begins.
func (l *outlineList) add(o Outline, depth int) {
	if o.URL == "" {
		if name := []rune(strings.Join(strings.Fields(o.Text), " ")); len(name) > 0 {
			l.path, l.depth = append(l.path, string(name[:min(len(name), mostFolderName)])), append(l.depth, depth)
		}
		return
	}
	at, known := l.at[o.URL]
	if !known {
		if l.at == nil {
			l.at = map[string]int{}
		}
		at, l.at[o.URL] = len(l.feeds), len(l.feeds)
		l.feeds = append(l.feeds, o)
	}
	if len(l.path) > 0 {
		l.feeds[at].Folders = joinFolders(l.feeds[at].Folders, [][]string{slices.Clone(l.path)})
	}
}

// joinFolders adds folders that a list does not have.
func joinFolders(folders, more [][]string) [][]string {
	for _, path := range more {
		known := slices.ContainsFunc(folders, func(other []string) bool { return slices.Equal(other, path) })
		if !known && len(folders) < mostFolders {
			folders = append(slices.Clone(folders), path)
		}
	}
	return folders
}

// leave ends the folders whose elements are deeper.
func (l *outlineList) leave(depth int) {
	for n := len(l.depth) - 1; n >= 0 && l.depth[n] > depth; n-- {
		l.path, l.depth = l.path[:n], l.depth[:n]
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

// An OPMLWriter writes a subscription list (OPML 2.0), outline by outline. Those in folders
// come at the end.
type OPMLWriter struct {
	out   *bufio.Writer
	enc   *xml.Encoder
	filed folder
}

// A folder is feeds and folders with a name.
type folder struct {
	name  string
	feeds []Outline
	inner []*folder
}

// in returns the folder at a path.
func (f *folder) in(path []string) *folder {
	for _, name := range path {
		at := slices.IndexFunc(f.inner, func(inner *folder) bool { return inner.name == name })
		if at < 0 {
			at = len(f.inner)
			f.inner = append(f.inner, &folder{name: name})
		}
		f = f.inner[at]
	}
	return f
}

// NewOPMLWriter begins a list with the time of its creation.
func NewOPMLWriter(w io.Writer, now time.Time) (*OPMLWriter, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	o := &OPMLWriter{out: out, enc: xml.NewEncoder(out)}
	o.enc.Indent("", "  ")
	_, err := out.WriteString(xml.Header)
	opml := startTag("opml", "version", "2.0")
	head := startTag("head")
	return o, cmp.Or(err,
		o.enc.EncodeToken(opml), o.enc.EncodeToken(head),
		o.enc.EncodeElement("Feeds", startTag("title")),
		o.enc.EncodeElement(now.UTC().Format(time.RFC1123Z), startTag("dateCreated")),
		o.enc.EncodeToken(head.End()), o.enc.EncodeToken(startTag("body")))
}

// Add writes a feed, or keeps it for its folders. An outline must have a text, so if
// it has none, the URL is used.
func (o *OPMLWriter) Add(feed Outline) error {
	for _, path := range feed.Folders {
		into := o.filed.in(path[:min(len(path), mostListDepth/2)])
		into.feeds = append(into.feeds, feed)
	}
	if len(feed.Folders) > 0 {
		return nil
	}
	return o.write(feed)
}

func (o *OPMLWriter) write(feed Outline) error {
	text := cmp.Or(strings.Join(strings.Fields(feed.Text), " "), feed.URL)
	element := startTag("outline", "type", "rss", "text", text, "title", text, "xmlUrl", feed.URL)
	if feed.Site != "" {
		element.Attr = append(element.Attr, xml.Attr{Name: xml.Name{Local: "htmlUrl"}, Value: feed.Site})
	}
	return cmp.Or(o.enc.EncodeToken(element), o.enc.EncodeToken(element.End()))
}

// fill writes the content of a folder.
func (o *OPMLWriter) fill(f *folder) (err error) {
	for _, inner := range f.inner {
		element := startTag("outline", "text", inner.name, "title", inner.name)
		err = cmp.Or(err, o.enc.EncodeToken(element), o.fill(inner), o.enc.EncodeToken(element.End()))
	}
	for _, feed := range f.feeds {
		err = cmp.Or(err, o.write(feed))
	}
	return err
}

// Close ends the list.
func (o *OPMLWriter) Close() error {
	err := cmp.Or(o.fill(&o.filed), o.enc.EncodeToken(startTag("body").End()), o.enc.EncodeToken(startTag("opml").End()), o.enc.Close())
	_, end := o.out.WriteString("\n")
	return cmp.Or(err, end, o.out.Flush())
}

// startTag returns a start tag with attributes, given as name, value, …
func startTag(name string, attrs ...string) xml.StartElement {
	element := xml.StartElement{Name: xml.Name{Local: name}}
	for i := 0; i+1 < len(attrs); i += 2 {
		element.Attr = append(element.Attr, xml.Attr{Name: xml.Name{Local: attrs[i]}, Value: attrs[i+1]})
	}
	return element
}

// OutlineOf returns the outline of a mirrored feed: under the subscriber's own title, or
// else a given one, in the subscriber's folders.
func OutlineOf(f *mirror.Feed, title, site string) Outline {
	// Programs that read the list cannot know that the feed has moved.
	return Outline{Text: cmp.Or(f.Named, title), URL: cmp.Or(f.Address, f.URL), Site: site, Folders: f.Folders}
}

// Apply gives a feed the title of the outline, unless it has one, and adds the folders. It
// reports whether the feed has changed.
func (o Outline) Apply(f *mirror.Feed) (changed bool) {
	title := strings.Join(strings.Fields(o.Text), " ")
	if f.Named == "" && title != "" && title != f.Title && title != f.URL {
		f.Named, changed = title, true
	}
	if all := joinFolders(f.Folders, o.Folders); len(all) > len(f.Folders) {
		f.Folders, changed = all, true
	}
	return changed
}
