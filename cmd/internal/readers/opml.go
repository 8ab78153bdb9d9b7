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

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
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

// A FoldersError counts the feeds of a list read without some of their folders: the
// names of all folders around each feed would be much longer than the list.
type FoldersError struct{ Feeds int }

// Error returns the number of feeds.
func (e *FoldersError) Error() string {
	return terminal.Count(e.Feeds, "feed is", "feeds are") + " too deep in folders with long names, which are left out"
}

// ReadOPML returns the feeds of an OPML document, at any depth, each address once,
// with all its folders. It skips other outlines, such as links to other lists. With a
// *FoldersError, all feeds are there.
func ReadOPML(r io.Reader) ([]Outline, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostListBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > mostListBytes {
		return nil, fmt.Errorf("larger than %d MiB, the limit for a list of feeds", mostListBytes>>20)
	}
	decoder := newDecoder(data)
	list := outlineList{room: leastFolders + foldersRatio*len(data)}
	for depth, root := 0, ""; ; {
		token, err := decoder.Token()
		switch token := token.(type) {
		case nil:
			switch {
			case err != io.EOF:
				return list.feeds, err
			case root == "":
				return nil, errors.New("line 1: not OPML: it has no element")
			case list.bare > 0:
				return list.feeds, &FoldersError{list.bare}
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
func readSubscriptions(ctx context.Context, s *Source, _ string, yield func(Item) error) error {
	f, err := os.Open(s.Name)
	if err != nil {
		return err
	}
	defer f.Close()
	feeds, err := ReadOPML(f)
	for _, feed := range feeds {
		if err := cmp.Or(ctx.Err(), yield(Item{Feed: terminal.FeedName(feed.URL), Title: feed.Text, Named: feed.Text, Folders: feed.Folders})); err != nil {
			return err
		}
	}
	if folders, ok := errors.AsType[*FoldersError](err); ok {
		return yield(Item{Damage: fmt.Errorf("%s: %w", s.Name, folders)})
	}
	return err
}

// An outlineList is the feeds of a document, as far as it was read.
type outlineList struct {
	feeds []Outline
	at    map[string]int // the index of each address
	path  []string       // the folders around the next outline
	depth []int          // the depth of each folder's element
	room  int            // how long the names of further folders may be, repeated for each feed
	bare  int            // the number of feeds without room for their folders
}

// The limits for the folders of a feed, and for the names of all feeds' folders: these may have
// so many bytes, and so many times those of the list.
const (
	mostFolders    = 50
	mostFolderName = 200 // characters
	leastFolders   = 64 << 10
	foldersRatio   = 4
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
	if len(l.path) == 0 {
		return
	}
	cost := 0
	for _, name := range l.path {
		cost += len(name) + 3 // as it is stored
	}
	if l.room < cost {
		l.bare++
	} else {
		l.room -= cost
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

// An outlineElement is an outline as it is written: a feed, or a folder with its folders first.
type outlineElement struct {
	Type  string            `xml:"type,attr,omitempty"`
	Text  string            `xml:"text,attr"`
	Title string            `xml:"title,attr"`
	URL   string            `xml:"xmlUrl,attr,omitempty"`
	Site  string            `xml:"htmlUrl,attr,omitempty"`
	Inner []*outlineElement `xml:"outline"`
}

// in returns the folder at a path.
func (e *outlineElement) in(path []string) *outlineElement {
	for _, name := range path {
		at := 0
		for at < len(e.Inner) && e.Inner[at].URL == "" && e.Inner[at].Text != name {
			at++
		}
		if at == len(e.Inner) || e.Inner[at].URL != "" {
			e.Inner = slices.Insert(e.Inner, at, &outlineElement{Text: name, Title: name})
		}
		e = e.Inner[at]
	}
	return e
}

// WriteOPML writes a subscription list (OPML 2.0) with the time of its creation. The feeds in
// folders come at the end. An outline must have a text, so if it has none, the URL is used.
func WriteOPML(w io.Writer, now time.Time, feeds []Outline) error {
	var list struct {
		XMLName xml.Name `xml:"opml"`
		Version string   `xml:"version,attr"`
		Title   string   `xml:"head>title"`
		Created string   `xml:"head>dateCreated"`
		Body    struct {
			Inner []*outlineElement `xml:"outline"`
		} `xml:"body"`
	}
	list.Version, list.Title, list.Created = "2.0", "Feeds", now.UTC().Format(time.RFC1123Z)
	var filed outlineElement
	for _, feed := range feeds {
		text := cmp.Or(strings.Join(strings.Fields(feed.Text), " "), feed.URL)
		element := &outlineElement{Type: "rss", Text: text, Title: text, URL: feed.URL, Site: feed.Site}
		for _, path := range feed.Folders {
			folder := filed.in(path[:min(len(path), mostListDepth/2)])
			folder.Inner = append(folder.Inner, element)
		}
		if len(feed.Folders) == 0 {
			list.Body.Inner = append(list.Body.Inner, element)
		}
	}
	list.Body.Inner = append(list.Body.Inner, filed.Inner...)
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.WriteString(xml.Header) // Flush returns any error
	enc := xml.NewEncoder(out)
	enc.Indent("", "  ")
	err := enc.Encode(list)
	_, _ = out.WriteString("\n")
	return cmp.Or(err, out.Flush())
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
