package compose_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
)

// A document says the same after it has been written and read again.
func TestWriteRoundTrip(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *Document) error{"atom": compose.WriteAtom, "rss": compose.WriteRSS} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				d := drawDocument(t)
				var first, second bytes.Buffer
				require.NoError(t, write(&first, d))
				require.NoError(t, strictXML(first.String()))
				again, err := Parse(bytes.NewReader(first.Bytes()), d.URL)
				require.NoError(t, err)
				require.Empty(t, again.Notes, first.String())
				requireSame(t, d, again)

				require.NoError(t, write(&second, d))
				require.Equal(t, first.String(), second.String(), "not stable")
				second.Reset()
				require.NoError(t, write(&second, again))
				once, err := Parse(bytes.NewReader(second.Bytes()), d.URL)
				require.NoError(t, err)
				requireSame(t, again, once)
				for i := range once.Entries {
					require.Equal(t, string(again.Entries[i].XML()), string(once.Entries[i].XML()), "an entry that was read is written as it was")
				}
			})
		})
	}
}

func requireSame(t require.TestingT, want, got *Document) {
	require.Equal(t, want.Title, got.Title)
	require.Equal(t, want.Complete, got.Complete)
	require.Equal(t, want.Archive, got.Archive)
	require.Equal(t, want.Kind(), got.Kind())
	for _, l := range want.Links {
		require.Contains(t, got.Links, l)
	}
	require.Equal(t, stamps(want.Deleted), stamps(got.Deleted))
	require.Len(t, got.Entries, len(want.Entries))
	for i, e := range want.Entries {
		again := got.Entries[i]
		require.Equal(t, e.ID, again.ID)
		require.True(t, e.Updated.Equal(again.Updated), "%v, not %v", again.Updated, e.Updated)
		require.True(t, e.Published.Equal(again.Published), "%v, not %v", again.Published, e.Published)
		for _, l := range e.Links {
			require.True(t, slices.ContainsFunc(again.Links, func(o Link) bool { return o.Rel == l.Rel && o.Href == l.Href }), "%v lacks %v", again.Links, l)
		}
		require.Equal(t, e.Title().Plain(), again.Title().Plain())
		summary, content := e.Summary(), e.Content()
		if got.Format == FormatRSS && summary == (Text{}) {
			summary, content = content, summary // an item has a description before it has more
		}
		require.Equal(t, summary.HTML(), again.Summary().HTML())
		require.Equal(t, content.HTML(), again.Content().HTML())
	}
}

func stamps(deleted []Tombstone) (out []string) {
	for _, d := range deleted {
		out = append(out, d.Ref+" "+d.When.Format(time.RFC3339Nano))
	}
	return out
}

// strictXML reads a document with encoding/xml, to its end. Unlike encoding/xml, it
// refuses attributes that occur twice, prefixes that nobody declares, and a second root.
func strictXML(text string) error {
	d, declared, roots := xml.NewDecoder(strings.NewReader(text)), []map[string]bool{{"xml": true}}, 0
	for {
		token, err := d.RawToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%w in %s", err, text)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if len(declared) == 1 {
				roots++
			}
			if declared, err = strictStart(token, declared); err != nil {
				return fmt.Errorf("%w in %s", err, text)
			}
		case xml.EndElement:
			declared = declared[:len(declared)-1]
		}
	}
	if roots != 1 {
		return fmt.Errorf("%d roots in %s", roots, text)
	}
	for d := xml.NewDecoder(strings.NewReader(text)); ; { // unlike RawToken, Token matches tags
		switch _, err := d.Token(); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return fmt.Errorf("%w in %s", err, text)
		}
	}
}

// strictStart checks a start tag, and adds the prefixes that are declared within it.
func strictStart(e xml.StartElement, declared []map[string]bool) ([]map[string]bool, error) {
	scope, seen := maps.Clone(declared[len(declared)-1]), map[xml.Name]bool{}
	for _, a := range e.Attr {
		if seen[a.Name] {
			return nil, fmt.Errorf("the attribute %v twice", a.Name)
		}
		if seen[a.Name] = true; a.Name.Space == "xmlns" {
			scope[a.Name.Local] = true
		}
	}
	names := []xml.Name{e.Name}
	for name := range seen {
		names = append(names, name)
	}
	for _, name := range names {
		if name.Space != "" && name.Space != "xmlns" && !scope[name.Space] {
			return nil, fmt.Errorf("the prefix of %v is not declared", name)
		}
	}
	return append(declared, scope), nil
}

var (
	drawWords = rapid.StringMatching(`[a-z<>&;"'é\x{1F600} ]{0,20}[a-z]`)
	drawTime  = rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), 0).UTC()
	})
	drawText = rapid.Custom(func(t *rapid.T) Text {
		kind := rapid.SampledFrom([]string{"", "text", "html", "xhtml"}).Draw(t, "type")
		body := drawWords.Draw(t, "body")
		switch kind {
		case "":
			return Text{}
		case "html":
			body = "<p>" + strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(body) + "</p>"
		case "xhtml":
			body = "<p>" + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(body) + "</p>"
		}
		return Text{Type: kind, Body: body}
	})
)

func drawDocument(t *rapid.T) *Document {
	head := &Document{
		ID: "urn:feed", Title: strings.TrimSpace(drawWords.Draw(t, "title")), Subtitle: "About",
		Authors: []Person{{Name: "John Doe"}}, Updated: drawTime.Draw(t, "updated"),
		Links: Links{{Rel: "alternate", Href: "http://example.org/"}},
	}
	var entries []*Entry
	for i := range rapid.IntRange(0, 4).Draw(t, "entries") {
		published := time.Time{}
		if rapid.Bool().Draw(t, "has published") {
			published = drawTime.Draw(t, "published")
		}
		e, err := compose.Draft{
			ID: fmt.Sprintf("urn:%d:%s", i, strings.TrimSpace(drawWords.Draw(t, "id"))), Title: Text{Type: "text", Body: strings.TrimSpace(drawWords.Draw(t, "entry title"))},
			Updated: drawTime.Draw(t, "entry updated"), Published: published,
			Summary: drawText.Draw(t, "summary"), Content: drawText.Draw(t, "content"),
			Links: Links{
				{Rel: "alternate", Href: fmt.Sprintf("http://example.org/%d?a=1&b=2", i)},
				{Rel: "enclosure", Href: "http://example.org/1.mp3", Type: "audio/mpeg", Length: "1337"},
			},
			Authors:    []Person{{Name: drawWords.Draw(t, "author")}},
			Categories: []Category{{Term: "news"}},
		}.Entry()
		require.NoError(t, err)
		entries = append(entries, e)
	}
	var d *Document
	const self = "http://example.org/feed"
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		d = compose.Complete(head, entries, self)
	case 1:
		d = compose.Page(head, entries, compose.URLs{Self: self, Next: "http://example.org/feed?2"})
	case 2:
		d = compose.Subscription(head, entries, self, "http://example.org/1")
	default:
		d = compose.Archive(head, entries, compose.URLs{Self: self, Current: "http://example.org/current", Prev: "http://example.org/1", Next: "http://example.org/3"})
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "deleted") {
		d.Deleted = append(d.Deleted, Tombstone{Ref: fmt.Sprintf("urn:gone:%d", i), When: drawTime.Draw(t, "when")})
	}
	return d
}

func TestDraftErrors(t *testing.T) {
	now := time.Date(2003, 12, 13, 18, 30, 2, 0, time.UTC)
	for want, d := range map[string]compose.Draft{
		"the id must not be empty":   {Updated: now},
		"end with white space":       {ID: " 1", Updated: now},
		"the update time is missing": {ID: "1"},
		"content: ":                  {ID: "1", Updated: now, Content: Text{Type: "xhtml", Body: "<p>"}},
		"title: not well-formed":     {ID: "1", Updated: now, Title: Text{Type: "xhtml", Body: "a & b"}},
		"content: xml: ":             {ID: "1", Updated: now, Content: Text{Type: "application/xml", Body: ""}},
		"a text construct is text, ": {ID: "1", Updated: now, Summary: Text{Type: "image/png", Body: "x"}},
		"content: not well-formed:":  {ID: "1", Updated: now, Content: Text{Type: "image/svg+xml", Body: "<svg/><svg/>"}},
	} {
		_, err := d.Entry()
		require.ErrorContains(t, err, want)
	}
}

// dailyLog returns n entries, a day apart, oldest first.
func dailyLog(t testing.TB, n int) (log []*Entry) {
	for i := range n {
		e, err := compose.Draft{ID: fmt.Sprintf("urn:%d", i), Updated: time.Date(2003, 11, 1+i, 0, 0, 0, 0, time.UTC)}.Entry()
		require.NoError(t, err)
		log = append(log, e)
	}
	return log
}

func TestPages(t *testing.T) {
	url := func(n int) string { return fmt.Sprintf("/%d", n) }
	for n, want := range map[int]string{
		0: "self=/1 first=/1 last=/1",
		2: "self=/1 first=/1 last=/1",
		3: "self=/1 first=/1 next=/2 last=/2; self=/2 first=/1 previous=/1 last=/2",
		5: "self=/1 first=/1 next=/2 last=/3; self=/2 first=/1 previous=/1 next=/3 last=/3; self=/3 first=/1 previous=/2 last=/3",
	} {
		var got []string
		entries := 0
		for _, page := range compose.Pages(&Document{}, dailyLog(t, n), 2, url) {
			require.Equal(t, KindPaged, page.Kind())
			got = append(got, linksOf(page))
			entries += len(page.Entries)
		}
		require.Equal(t, want, strings.Join(got, "; "), "%d entries", n)
		require.Equal(t, n, entries)
	}
	require.Equal(t, "self=/x first=/x", linksOf(compose.Page(&Document{}, nil, compose.URLs{Self: "/x"})), "5005#5")
}

func linksOf(d *Document) string {
	var links []string
	for _, l := range d.Links {
		links = append(links, l.Rel+"="+l.Href)
	}
	return strings.Join(links, " ")
}
