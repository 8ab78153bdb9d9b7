package compose_test

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mmcdole/gofeed"
	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
)

// A facts has everything the model says of a feed and its entries.
type facts struct {
	Head    []any
	Entries [][]any
}

func factsOf(d *Document) (f facts) {
	f.Head = []any{d.Title, d.Language, d.Rights.HTML(), d.Categories, d.Generator, d.Contributors, d.Icon, d.Logo, d.Schedule}
	for _, e := range d.Entries {
		var source []any
		if s := e.Source(); s != nil {
			self, _ := s.Links.Rel("self")
			source = []any{s.Title, s.ID, self.Href}
		}
		authors := e.Authors()
		for i := range authors {
			authors[i].Inherited = false // RSS writes them on each item
		}
		files := e.Enclosures()
		for i := range files {
			files[i].Title = "" // RSS has none
		}
		page, _ := e.Links.Rel("alternate")
		f.Entries = append(f.Entries, []any{
			e.ID, e.Title().Body, page.Href, authors, e.Contributors(), e.Categories(), e.Rights().Body, source, e.Comments(), e.Language(), files, e.Image(),
		})
	}
	return f
}

// A rich document has each part in the other format's own element, once, and is equal on the way back.
func TestRichDocumentsInTheOtherFormat(t *testing.T) {
	for _, test := range []struct {
		name          string
		write, back   func(io.Writer, *Document) error
		has, returned []string
		carried       int // elements of the document's format alone
	}{
		{"atom", compose.WriteRSS, compose.WriteAtom, []string{
			"<language>de</language>", "<managingEditor>ann@a.example (Ann)</managingEditor>", "<copyright>(c) A</copyright>",
			`<category domain="http://a.example/c">c</category>`, "<category>d</category>", "<generator>G 1</generator>", "<image>\n<url>http://a.example/l.png</url>",
			"<comments>http://a.example/1/replies</comments>", `<source url="http://a.example/s.atom">S</source>`, ">Nils</dc:creator>", "<link>http://a.example/1</link>",
		}, []string{`xml:lang="de"`, `<generator uri="http://a.example/g" version="1">G</generator>`, `label="C"`, "<logo>http://a.example/l.png</logo>", "<icon>http://a.example/i.png</icon>"}, 0},
		{"rss", compose.WriteAtom, compose.WriteRSS, []string{
			`<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de">`, "<author><name>Ann</name>\n<email>ann@a.example</email>", "<rights>(c) A</rights>",
			`<category term="c" scheme="http://a.example/c"/>`, `<category term="d"/>`, "<generator>G 1</generator>", "<logo>http://a.example/l.png</logo>",
			`<link rel="replies" href="http://a.example/1#c" type="text/html"/>`, "<source><title>S</title>\n" + `<link rel="self" href="http://s.example/rss"/>`,
		}, []string{
			"<language>de</language>", "<managingEditor>ann@a.example (Ann)</managingEditor>", "<copyright>(c) A</copyright>", "<webMaster>w@a.example</webMaster>", "<ttl>60</ttl>",
			`<category domain="http://a.example/c">c</category>`, "<generator>G 1</generator>", "<image>\n<url>http://a.example/l.png</url>",
			"<comments>http://a.example/1#c</comments>", `<source url="http://s.example/rss">S</source>`, "<author>nils@a.example (Nils)</author>",
		}, 2},
		{"json", compose.WriteRSS, compose.WriteAtom, []string{"<language>de</language>", ">Ann</dc:creator>", "<category>c</category>"}, []string{`xml:lang="de"`, "<name>Nils</name>"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, err := os.ReadFile("../testdata/rich/feed." + test.name)
			require.NoError(t, err)
			doc, err := parse(string(text), "http://a.example/feed")
			require.NoError(t, err)
			there := written(t, test.write, doc)
			for _, element := range test.has {
				require.Contains(t, there, element)
			}
			require.Equal(t, test.carried, strings.Count(there, "http://backend.userland.com/rss2"), there)
			other, err := parse(there, "http://a.example/feed")
			require.NoError(t, err)
			require.Equal(t, factsOf(doc).Head, factsOf(other).Head, there)
			if test.name != "json" {
				require.Equal(t, doc.Authors, other.Authors)
			}
			again := written(t, test.back, other)
			for _, element := range test.returned {
				require.Contains(t, again, element)
			}
			back, err := parse(again, "http://a.example/feed")
			require.NoError(t, err)
			if test.name == "rss" { // in Atom, an item without an author has its feed's (RFC 4287 §4.2.1)
				require.Empty(t, doc.Entries[1].Authors())
				doc.Entries, back.Entries = slices.Delete(doc.Entries, 1, 2), slices.Delete(back.Entries, 1, 2)
			}
			require.Equal(t, factsOf(doc), factsOf(back), again)
		})
	}
}

// A head in its own format has its language once: feedparser takes an icon with an
// attribute for something else.
func TestRichHeadInItsOwnFormat(t *testing.T) {
	text, err := os.ReadFile("../testdata/rich/feed.atom")
	require.NoError(t, err)
	doc, err := parse(string(text), "http://a.example/feed")
	require.NoError(t, err)
	again := written(t, compose.WriteAtom, doc)
	head, _, _ := strings.Cut(again, "<entry")
	require.Equal(t, 1, strings.Count(head, `xml:lang="de"`), head)
	require.Contains(t, head, "<icon>http://a.example/i.png</icon>")
	other, err := parse(again, "http://a.example/feed")
	require.NoError(t, err)
	require.Equal(t, factsOf(doc), factsOf(other), again)
}

// The comments and the source of an item from a line are Atom's own in Atom, and
// RSS's again in RSS.
func TestRichItemThroughALine(t *testing.T) {
	text, err := os.ReadFile("../testdata/rich/feed.rss")
	require.NoError(t, err)
	doc, err := parse(string(text), "http://a.example/feed")
	require.NoError(t, err)
	for i, e := range doc.Entries {
		line := compose.NewEntryJSON(e)
		doc.Entries[i], err = line.Entry()
		require.NoError(t, err)
	}
	in := written(t, compose.WriteAtom, doc)
	require.Contains(t, in, `rel="replies" href="http://a.example/1#c" type="text/html"/>`)
	require.Contains(t, in, `<title>S</title><link rel="self" href="http://s.example/rss"/></source>`)
	require.NotContains(t, in, "<comments")
	there, err := parse(in, "http://a.example/feed")
	require.NoError(t, err)
	require.Equal(t, "http://a.example/1#c", there.Entries[0].Comments())
	require.Equal(t, "S", there.Entries[0].Source().Title)
	out := written(t, compose.WriteRSS, there)
	require.Contains(t, out, "<comments>http://a.example/1#c</comments>")
	require.Contains(t, out, `<source url="http://s.example/rss">S</source>`)
	require.NotContains(t, out, "replies")
}

// A field set by a program is written in place of the published element.
func TestSetDescription(t *testing.T) {
	text, err := os.ReadFile("../testdata/rich/feed.rss")
	require.NoError(t, err)
	doc, err := parse(string(text), "http://a.example/feed")
	require.NoError(t, err)
	require.Contains(t, written(t, compose.WriteRSS, doc), "<copyright>(c) A</copyright>")
	doc.Rights, doc.Categories, doc.Generator = Text{Body: "(c) B"}, []Category{{Term: "e"}}, Generator{Name: "H"}
	for _, write := range []func(io.Writer, *Document) error{compose.WriteRSS, compose.WriteAtom} {
		text := written(t, write, doc)
		again, err := parse(text, "http://a.example/feed")
		require.NoError(t, err)
		require.Equal(t, factsOf(doc).Head, factsOf(again).Head, text)
		require.NotContains(t, text, "(c) A")
	}
}

// An element in no namespace keeps its name, or is left out: RSS would take it for its own. The
// lines that describe its entry are read again.
func TestNoNamespace(t *testing.T) {
	const strangers = `<tide xmlns="">high</tide><item xmlns=""><guid>stranger</guid></item>`
	const inEntry = `<wind xmlns="">west</wind><link xmlns="" rel="enclosure" href="/x.mp3">/x</link><enclosure xmlns="" url="/y.mp3" type="audio/mpeg" length="3"/><guid xmlns="">stranger</guid><category xmlns="">stranger</category>`
	plain, prefixed := strings.NewReplacer(), strings.NewReplacer("</", "</a:", "<", "<a:", ` xmlns="http`, ` xmlns:a="http`)
	bare := strings.NewReplacer(` xmlns=""`, "")
	for name, doc := range map[string]string{
		"declared": plain.Replace(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title><updated>2024-01-01T00:00:00Z</updated><author><name>Ada</name></author>`) + strangers +
			`<entry><id>urn:1</id><title>One</title><updated>2024-01-01T00:00:00Z</updated>` + inEntry + `</entry></feed>`,
		"below a prefix": prefixed.Replace(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title><updated>2024-01-01T00:00:00Z</updated><author><name>Ada</name></author>`) + bare.Replace(strangers) +
			`<a:entry><a:id>urn:1</a:id><a:title>One</a:title><a:updated>2024-01-01T00:00:00Z</a:updated>` + bare.Replace(inEntry) + `</a:entry></a:feed>`,
	} {
		d, err := Parse(strings.NewReader(doc), "http://h/feed")
		require.NoError(t, err, name)
		require.Len(t, d.Entries, 1, name)
		e := d.Entries[0]
		require.Equal(t, "urn:1", e.ID)
		require.Empty(t, e.Links, name)
		require.Empty(t, e.Enclosures(), name)
		require.Empty(t, e.Categories(), name)
		require.Len(t, e.Extensions(), 5, name)
		for _, x := range e.Extensions() {
			require.Contains(t, x, ` xmlns=""`, name)
		}

		var rss, atom strings.Builder
		require.NoError(t, compose.WriteRSS(&rss, d), name)
		for _, stranger := range []string{"tide", "stranger", "wind", "enclosure", "/x"} {
			require.NotContains(t, rss.String(), stranger, name)
		}
		require.NoError(t, compose.WriteAtom(&atom, d), name)
		require.Contains(t, atom.String(), `<tide xmlns="">high</tide>`, name)

		line, err := json.Marshal(compose.NewEntryJSON(e))
		require.NoError(t, err)
		var read compose.EntryJSON
		require.NoError(t, json.Unmarshal(line, &read))
		again, err := read.Draft()
		require.NoError(t, err, "%s: %s", name, line)
		require.Equal(t, e.Extensions(), again.Extensions, name)
	}
}

// Below a root with a prefix, the feed's own elements may have it or not; the entries', too, in
// any mixture. All readers find the same in each form in which such an entry is written.
func TestPrefixes(t *testing.T) {
	const atom, atom03, rss2, rss1 = "http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#", "http://backend.userland.com/rss2", "http://purl.org/rss/1.0/"
	const id, title, updated, modified = `<id>urn:1</id>`, `<title>One</title>`, `<updated>2024-01-01T00:00:00Z</updated>`, `<modified>2024-01-01T00:00:00Z</modified>`
	const rest = `<author><name>Ann</name></author><category term="a"/><link href="http://h/1"/>`
	prefix := strings.NewReplacer("</", "</p:", "<", "<p:").Replace
	author := prefix("<author>") + "<name>Ann</name>" + prefix("</author>")
	person := strings.Replace(rest, "<author><name>Ann</name></author>", author, 1)
	const guid, link, contact, category = `<guid isPermaLink="false">urn:1</guid>`, `<link>http://h/1</link>`, `<author>ann@h.example (Ann)</author>`, `<category>a</category>`
	rdf := func(channel, item string) string {
		return `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:p="` + rss1 + `">` + channel + item + `</rdf:RDF>`
	}
	feed := func(space, head, entry string) string {
		return `<p:feed xmlns:p="` + space + `">` + head + entry + `</p:feed>`
	}
	rss := func(space, item string) string {
		return `<p:rss version="2.0" xmlns:p="` + space + `"><channel><title>F</title><link>http://h/</link>` + item + `</channel></p:rss>`
	}
	for name, doc := range map[string]string{
		"entry with a prefix":                 feed(atom, title, prefix("<entry>")+id+title+updated+rest+prefix("</entry>")),
		"entry without one":                   feed(atom, title, "<entry>"+id+title+updated+rest+"</entry>"),
		"entry without one, children with it": feed(atom, title, "<entry>"+prefix(id+title+updated+rest)+"</entry>"),
		"head with prefixes":                  feed(atom, prefix(title), prefix("<entry>")+id+title+updated+rest+prefix("</entry>")),
		"mixture":                             feed(atom, title, prefix("<entry>"+id+title+updated)+person+prefix("</entry>")),
		"mixture, head with prefixes":         feed(atom, prefix(title), prefix("<entry>")+id+prefix(title+updated)+person+prefix("</entry>")),
		"extension first":                     feed(atom, prefix(title), prefix("<entry>")+`<x:y xmlns:x="urn:x"/>`+id+title+updated+rest+prefix("</entry>")),
		"root without a namespace":            `<feed xmlns:p="` + atom + `">` + title + prefix("<entry>") + id + title + updated + rest + prefix("</entry>") + `</feed>`,
		"Atom 0.3":                            feed(atom03, title, prefix("<entry>")+id+title+modified+rest+prefix("</entry>")),
		"Atom 0.3, mixture":                   feed(atom03, title, prefix("<entry>"+id+title)+modified+person+prefix("</entry>")),
		"RSS":                                 rss(rss2, prefix("<item>")+guid+title+link+contact+category+prefix("</item>")),
		"RSS, children":                       rss(rss2, "<item>"+prefix(guid+title)+link+contact+prefix(category)+"</item>"),
		"RSS, children alone":                 `<rss version="2.0" xmlns:p="` + rss2 + `"><channel><title>F</title><item>` + prefix(guid+title+link) + contact + category + "</item></channel></rss>",
		"RSS of another namespace":            rss("urn:other", prefix("<item>"+guid)+title+link+contact+prefix(category)+prefix("</item>")),
		"RSS 1.0":                             rdf(prefix("<channel>"+title+"</channel>"), `<item rdf:about="urn:1">`+prefix(title+link)+`<dc:creator>Ann</dc:creator><dc:subject>a</dc:subject></item>`),
		"RSS 1.0, item":                       rdf("<channel>"+title+"</channel>", `<p:item rdf:about="urn:1">`+title+link+`<dc:creator>Ann</dc:creator><dc:subject>a</dc:subject></p:item>`),
	} {
		t.Run(name, func(t *testing.T) {
			d, err := parse(doc, "http://h/feed")
			require.NoError(t, err)
			forms := map[string]*Document{"as published": d}
			for form, write := range map[string]func(io.Writer, *Document) error{"Atom": compose.WriteAtom, "RSS": compose.WriteRSS} {
				text := written(t, write, d)
				forms[form], err = parse(text, "http://h/feed")
				require.NoError(t, err, text)
				feed, err := gofeed.NewParser().ParseString(text)
				require.NoError(t, err, text)
				require.Len(t, feed.Items, 1, text)
				item := feed.Items[0]
				require.Equal(t, []string{"urn:1", "One", "http://h/1", "Ann", "a"}, []string{item.GUID, item.Title, item.Link, item.Authors[0].Name, item.Categories[0]}, text)
			}
			require.Len(t, d.Entries, 1)
			alone, err := ReadEntry(d.Format, string(d.Entries[0].XML()), "")
			require.NoError(t, err)
			forms["alone"] = &Document{Entries: []*Entry{alone}}
			for form, d := range forms {
				require.Len(t, d.Entries, 1, form)
				e := d.Entries[0]
				page, _ := e.Links.Rel("alternate")
				require.Equal(t, []string{"urn:1", "One", "http://h/1"}, []string{e.ID, e.Title().Body, page.Href}, form)
				require.Len(t, e.Authors(), 1, form)
				require.Equal(t, "Ann", e.Authors()[0].Name, form)
				require.Equal(t, []Category{{Term: "a"}}, e.Categories(), form)
			}
		})
	}
}
