package compose_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mmcdole/gofeed"
	"github.com/mmcdole/gofeed/atom"
	"github.com/mmcdole/gofeed/rss"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/compose"
)

// gofeed is the judge of the written documents: it finds each part where it looks for it in the
// format, and not among extensions. A part is named by what Atom calls it.

// atomParts returns the parts gofeed finds in a document of Atom.
func atomParts(t *testing.T, text string) map[string]string {
	t.Helper()
	feed, err := (&atom.Parser{}).Parse(strings.NewReader(text))
	require.NoError(t, err, text)
	persons := func(all []*atom.Person) string {
		return joined(all, func(p *atom.Person) string { return p.Name + " " + p.Email + " " + p.URI })
	}
	categories := func(all []*atom.Category) string {
		return joined(all, func(c *atom.Category) string { return c.Term + " " + c.Scheme })
	}
	parts := map[string]string{
		"title": feed.Title, "subtitle": feed.Subtitle, "language": feed.Language, "rights": feed.Rights, "icon": feed.Icon, "logo": feed.Logo,
		"authors": persons(feed.Authors), "contributors": persons(feed.Contributors), "categories": categories(feed.Categories),
	}
	if feed.Generator != nil {
		parts["generator"] = feed.Generator.Value
	}
	e := feed.Entries[0]
	parts["entry id"], parts["entry title"], parts["entry rights"], parts["entry summary"] = e.ID, e.Title, e.Rights, e.Summary
	parts["entry authors"], parts["entry contributors"], parts["entry categories"] = persons(e.Authors), persons(e.Contributors), categories(e.Categories)
	if e.Content != nil {
		parts["entry content"] = e.Content.Value
	}
	for _, l := range slices.Backward(e.Links) {
		switch {
		case l.Rel == "alternate" && (l.Type == "" || l.Type == "text/html"):
			parts["entry link"] = l.Href
		case l.Rel == "replies" && l.Type == "text/html":
			parts["entry comments"] = l.Href
		case l.Rel == "enclosure":
			parts["entry enclosure"] = l.Href + " " + l.Type + " " + l.Length
		}
	}
	if s := e.Source; s != nil {
		parts["entry source"] = s.Title + " " + s.Links[0].Href
	}
	return found(parts)
}

// rssParts returns the parts gofeed finds in a document of RSS, with Dublin Core for those that RSS has not.
func rssParts(t *testing.T, text string) map[string]string {
	t.Helper()
	feed, err := (&rss.Parser{}).Parse(strings.NewReader(text))
	require.NoError(t, err, text)
	categories := func(all []*rss.Category) string {
		return joined(all, func(c *rss.Category) string { return c.Value + " " + c.Domain })
	}
	parts := map[string]string{
		"title": feed.Title, "subtitle": feed.Description, "language": feed.Language, "rights": feed.Copyright, "generator": feed.Generator,
		"authors": feed.ManagingEditor, "categories": categories(feed.Categories),
	}
	if feed.Image != nil {
		parts["logo"] = feed.Image.URL
	}
	if dc := feed.DublinCoreExt; dc != nil {
		parts["contributors"] = strings.Join(dc.Contributor, ", ")
		parts["authors"] += strings.Join(dc.Creator, ", ")
	}
	item := feed.Items[0]
	parts["entry id"], parts["entry title"], parts["entry link"], parts["entry comments"] = item.GUID.Value, item.Title, item.Link, item.Comments
	parts["entry authors"], parts["entry categories"] = item.Author, categories(item.Categories)
	parts["entry summary"], parts["entry content"] = item.Description, item.Content
	if dc := item.DublinCoreExt; dc != nil {
		if item.Author == "" {
			parts["entry authors"] = strings.Join(dc.Creator, ", ")
		}
		parts["entry contributors"], parts["entry rights"] = strings.Join(dc.Contributor, ", "), strings.Join(dc.Rights, ", ")
	}
	if item.Enclosure != nil {
		parts["entry enclosure"] = item.Enclosure.URL + " " + item.Enclosure.Type + " " + item.Enclosure.Length
	}
	if item.Source != nil {
		parts["entry source"] = item.Source.Title + " " + item.Source.URL
	}
	return found(parts)
}

func joined[T any](all []T, say func(T) string) string {
	var words []string
	for _, one := range all {
		words = append(words, strings.Join(strings.Fields(say(one)), " "))
	}
	return strings.Join(words, ", ")
}

// found returns the parts there are.
func found(parts map[string]string) map[string]string {
	for name, part := range parts {
		if part == "" {
			delete(parts, name)
		}
	}
	return parts
}

// The rich documents of all formats, written in both.
func TestRichDocumentsByGofeed(t *testing.T) {
	const enclosure = "http://a.example/1.mp3 audio/mpeg 1000"
	for name, want := range map[string]struct{ atom, rss map[string]string }{
		"atom": {
			map[string]string{
				"title": "F", "language": "de", "rights": "<b>(c)</b> A", "icon": "http://a.example/i.png", "logo": "http://a.example/l.png",
				"authors": "Ann ann@a.example http://a.example/ann", "contributors": "Bob", "categories": "c http://a.example/c, d", "generator": "G",
				"entry id": "urn:1", "entry title": "One", "entry link": "http://a.example/1", "entry rights": "(c) N", "entry authors": "Nils",
				"entry contributors": "Ida http://a.example/ida", "entry categories": "c", "entry comments": "http://a.example/1/replies",
				"entry enclosure": enclosure, "entry source": "S http://a.example/s.atom",
			},
			map[string]string{
				"title": "F", "subtitle": "F", "language": "de", "rights": "(c) A", "logo": "http://a.example/l.png",
				"authors": "ann@a.example (Ann)", "contributors": "Bob", "categories": "c http://a.example/c, d", "generator": "G 1",
				"entry id": "urn:1", "entry title": "One", "entry link": "http://a.example/1", "entry rights": "(c) N", "entry authors": "Nils",
				"entry categories": "c", "entry comments": "http://a.example/1/replies",
				"entry enclosure": enclosure, "entry source": "S http://a.example/s.atom",
			},
		},
		"atom03": {
			map[string]string{
				"title": "F", "subtitle": "D", "language": "de", "rights": "<b>(c)</b> A", "authors": "Ann ann@a.example http://a.example/ann", "contributors": "Bob",
				"generator": "G", "entry id": "urn:1", "entry title": "One", "entry link": "http://a.example/1", "entry authors": "Nils",
				"entry contributors": "Ida http://a.example/ida", "entry categories": "c", "entry summary": "S", "entry content": "<b>C</b>",
			},
			map[string]string{
				"title": "F", "subtitle": "D", "language": "de", "rights": "(c) A", "authors": "ann@a.example (Ann)", "contributors": "Bob",
				"generator": "G 1", "entry id": "urn:1", "entry title": "One", "entry link": "http://a.example/1", "entry authors": "Nils",
				"entry categories": "c", "entry summary": "S", "entry content": "<b>C</b>",
			},
		},
		"rss": {
			map[string]string{
				"title": "F", "subtitle": "D", "language": "de", "rights": "(c) A", "logo": "http://a.example/l.png",
				"authors": "Ann ann@a.example", "categories": "c http://a.example/c, d", "generator": "G 1",
				"entry id": "urn:1", "entry title": "One", "entry link": "http://a.example/1", "entry rights": "(c) N", "entry authors": "Nils nils@a.example, Ida",
				"entry contributors": "Bob", "entry categories": "c http://a.example/c, c2", "entry comments": "http://a.example/1#c",
				"entry enclosure": enclosure, "entry source": "S http://s.example/rss",
			},
			map[string]string{
				"title": "F", "subtitle": "D", "language": "de", "rights": "(c) A", "logo": "http://a.example/l.png",
				"authors": "ann@a.example (Ann)", "categories": "c http://a.example/c, d", "generator": "G 1",
				"entry id": "urn:1", "entry title": "One", "entry link": "http://a.example/1", "entry rights": "(c) N", "entry authors": "nils@a.example (Nils)",
				"entry contributors": "Bob", "entry categories": "c http://a.example/c", "entry comments": "http://a.example/1#c",
				"entry enclosure": enclosure, "entry source": "S http://s.example/rss",
			},
		},
		"rdf": {
			map[string]string{
				"title": "F", "subtitle": "D", "language": "de", "rights": "(c) A", "logo": "http://a.example/l.png",
				"authors": "Ann ann@a.example", "contributors": "Bob", "categories": "c",
				"entry id": "urn:1", "entry title": "One", "entry link": "http://a.example/1", "entry rights": "(c) N", "entry authors": "Nils",
				"entry contributors": "Ida", "entry categories": "c", "entry summary": "S", "entry content": "<b>C</b>",
			},
			map[string]string{
				"title": "F", "subtitle": "D", "language": "de", "rights": "(c) A", "logo": "http://a.example/l.png",
				"authors": "ann@a.example (Ann)", "contributors": "Bob", "categories": "c",
				"entry id": "urn:1", "entry title": "One", "entry link": "http://a.example/1", "entry rights": "(c) N", "entry authors": "Nils",
				"entry contributors": "Ida", "entry categories": "c", "entry summary": "S", "entry content": "<b>C</b>",
			},
		},
		"json": {
			map[string]string{
				"title": "F", "language": "de", "icon": "http://a.example/i.png", "authors": "Ann http://a.example/ann",
				"entry id": "urn:1", "entry title": "One", "entry link": "http://a.example/1", "entry authors": "Nils", "entry categories": "c, d",
				"entry enclosure": enclosure, "entry content": "x",
			},
			map[string]string{
				"title": "F", "subtitle": "F", "language": "de", "logo": "http://a.example/i.png", "authors": "Ann",
				"entry id": "urn:1", "entry title": "One", "entry link": "http://a.example/1", "entry authors": "Nils", "entry categories": "c, d",
				"entry enclosure": enclosure, "entry summary": "x",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../testdata/rich/feed." + name)
			require.NoError(t, err)
			doc, err := parse(string(text), "http://a.example/feed")
			require.NoError(t, err)
			inAtom, inRSS := written(t, compose.WriteAtom, doc), written(t, compose.WriteRSS, doc)
			require.Equal(t, want.atom, atomParts(t, inAtom), inAtom)
			require.Equal(t, want.rss, rssParts(t, inRSS), inRSS)
			for _, text := range []string{inAtom, inRSS} {
				feed, err := gofeed.NewParser().ParseString(text)
				require.NoError(t, err, text)
				require.NotEmpty(t, feed.Authors, text)
				require.Equal(t, "Nils", feed.Items[0].Authors[0].Name, text)
				back, err := parse(text, "http://a.example/feed")
				require.NoError(t, err)
				require.Equal(t, factsOf(doc).Head, factsOf(back).Head, text)
				require.Equal(t, factsOf(doc).Entries[0], factsOf(back).Entries[0], text)
			}
		})
	}
}
