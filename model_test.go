package feedhistory_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
)

// The documents of testdata/rich say the same things, each in its format's own elements.
func rich(t *testing.T, name string) *Document {
	t.Helper()
	text, err := os.ReadFile("testdata/rich/feed." + name)
	require.NoError(t, err)
	return readRich(t, string(text))
}

func readRich(t *testing.T, text string) *Document {
	t.Helper()
	doc, err := Parse(strings.NewReader(text), "http://a.example/feed")
	require.NoError(t, err)
	return doc
}

// The head of a feed has what each format says about the feed as a whole.
func TestHeadsOfRichDocuments(t *testing.T) {
	doc := rich(t, "atom")
	require.Equal(t, []Person{{Name: "Ann", URI: "http://a.example/ann", Email: "ann@a.example"}}, doc.Authors)
	require.Equal(t, []Person{{Name: "Bob"}}, doc.Contributors)
	require.Equal(t, []Category{{Term: "c", Scheme: "http://a.example/c", Label: "C"}, {Term: "d"}}, doc.Categories)
	require.Equal(t, "<b>(c)</b> A", doc.Rights.HTML())
	require.Equal(t, Generator{Name: "G", URI: "http://a.example/g", Version: "1"}, doc.Generator)
	require.Equal(t, "http://a.example/i.png", doc.Icon)
	require.Equal(t, "http://a.example/l.png", doc.Logo)
	require.Equal(t, "de", doc.Language)

	doc = rich(t, "rss")
	require.Equal(t, []Person{{Name: "Ann", Email: "ann@a.example"}}, doc.Authors)
	require.Empty(t, doc.Contributors)
	require.Equal(t, []Category{{Term: "c", Scheme: "http://a.example/c"}, {Term: "d"}}, doc.Categories)
	require.Equal(t, "(c) A", doc.Rights.Body)
	require.Equal(t, Generator{Name: "G 1"}, doc.Generator)
	require.Equal(t, "http://a.example/l.png", doc.Icon, "there is no smaller one")
	require.Equal(t, "http://a.example/l.png", doc.Logo)
	require.Equal(t, "de", doc.Language)
	require.Equal(t, time.Hour, doc.Schedule.Every)
	require.Equal(t, []string{`<webMaster xmlns="http://backend.userland.com/rss2">w@a.example</webMaster>`}, grep(doc.Extensions(), "webMaster"))

	doc = rich(t, "json")
	require.Equal(t, []Person{{Name: "Ann", URI: "http://a.example/ann"}}, doc.Authors)
	require.Equal(t, "http://a.example/i.png", doc.Icon)
	require.Equal(t, "de", doc.Language)
}

// An entry has what each format says about it, and what it inherits.
func TestEntriesOfRichDocuments(t *testing.T) {
	ann := Person{Name: "Ann", URI: "http://a.example/ann", Email: "ann@a.example", Inherited: true}
	for _, test := range []struct {
		format                 string     // the end of its name
		authors                [][]Person // of the entries
		contributors           []Person   // of the first one
		categories             []Category
		rights, comments, page string
		source                 *Document
		enclosure              Enclosure
		image                  string
	}{
		{
			"atom",
			[][]Person{{{Name: "Nils"}}, {ann}, {{Name: "Eve", Inherited: true}}},
			[]Person{{Name: "Ida", URI: "http://a.example/ida"}},
			[]Category{{Term: "c", Label: "C"}},
			"(c) N", "http://a.example/1/replies", "http://a.example/1",
			&Document{Format: FormatAtom, ID: "urn:s", Title: "S", Links: Links{{Rel: "self", Href: "http://a.example/s.atom"}}},
			Enclosure{URL: "http://a.example/1.mp3", Type: "audio/mpeg", Length: 1000, Title: "Sound"}, "",
		},
		{
			"rss",
			[][]Person{{{Name: "Nils", Email: "nils@a.example"}, {Name: "Ida"}}, nil, {{Name: "The Show"}}},
			[]Person{{Name: "Bob"}},
			[]Category{{Term: "c", Scheme: "http://a.example/c"}, {Term: "c2"}},
			"(c) N", "http://a.example/1#c", "http://a.example/1",
			&Document{Format: FormatRSS, Title: "S", Links: Links{{Rel: "self", Href: "http://s.example/rss"}}},
			Enclosure{URL: "http://a.example/1.mp3", Type: "audio/mpeg", Length: 1000, Duration: 3723 * time.Second}, "http://a.example/1.jpg",
		},
		{
			"json",
			[][]Person{{{Name: "Nils"}}, {{Name: "Ann", URI: "http://a.example/ann", Inherited: true}}},
			nil, []Category{{Term: "c"}, {Term: "d"}}, "", "", "http://a.example/1", nil,
			Enclosure{URL: "http://a.example/1.mp3", Type: "audio/mpeg", Length: 1000, Duration: 3723 * time.Second, Title: "Sound"}, "http://a.example/1.jpg",
		},
	} {
		t.Run(test.format, func(t *testing.T) {
			doc := rich(t, test.format)
			require.Len(t, doc.Entries, len(test.authors))
			for i, want := range test.authors {
				require.Equal(t, want, doc.Entries[i].Authors(), i)
			}
			e := doc.Entries[0]
			require.Equal(t, test.contributors, e.Contributors())
			require.Equal(t, test.categories, e.Categories())
			require.Equal(t, test.rights, e.Rights().Plain())
			require.Equal(t, test.comments, e.Comments())
			page, _ := e.Links.Rel("alternate")
			require.Equal(t, test.page, page.Href)
			require.Equal(t, "fr", e.Language())
			require.Equal(t, "de", doc.Entries[1].Language(), "its feed's")
			require.Equal(t, []Enclosure{test.enclosure}, e.Enclosures())
			require.Equal(t, test.image, e.Image())
			require.Nil(t, doc.Entries[1].Source())
			if source := e.Source(); test.source == nil {
				require.Nil(t, source)
			} else {
				require.Equal(t, test.source.Format, source.Format)
				require.Equal(t, test.source.ID, source.ID)
				require.Equal(t, test.source.Title, source.Title)
				require.Equal(t, test.source.Links, source.Links)
			}
			again := Entry{ID: "urn:x"}
			require.Empty(t, again.Authors())
			require.Empty(t, again.Enclosures())
			require.Nil(t, again.Source())
			require.Empty(t, again.Language())
		})
	}
}

// A file is there once, whatever names it; of several versions, the default one is.
func TestEnclosures(t *testing.T) {
	for name, test := range map[string]struct{ item, want string }{
		"of a group":              {`<media:group><media:content url="/b.mp4" type="video/mp4"/><media:content url="/a.mp4" type="video/mp4" fileSize="4" duration="61" isDefault="true"/></media:group>`, "/a.mp4 video/mp4 4 1m1s"},
		"of no default":           {`<media:group><media:content url="/b.mp4" type="video/mp4"/><media:content url="/a.mp4" type="video/mp4"/></media:group>`, "/b.mp4 video/mp4 0 0s"},
		"of an enclosure":         {`<media:group><media:content url="/b.mp4" type="video/mp4"/><media:content url="/a.mp4"/></media:group><media:content url="/a.mp4" duration="61"/><enclosure url="/a.mp4" type="video/mp4" length="4"/>`, "/a.mp4 video/mp4 4 1m1s"},
		"several":                 {`<media:content url="/b.mp4" type="video/mp4"/><media:content url="/a.mp3" medium="audio"><media:title>A</media:title></media:content>`, "/b.mp4 video/mp4 0 0s, /a.mp3  0 0s A"},
		"pictures":                {`<media:content url="/a" medium="image"/><media:content url="/b.jpg"/><media:thumbnail url="/c"/><media:content url="/d" type="image/png"/>`, ""},
		"alternate alone":         {`<podcast:alternateEnclosure type="audio/opus" length="3"><podcast:source uri="ipfs://x"/><podcast:source uri="http://a.example/a.opus"/></podcast:alternateEnclosure>`, "/a.opus audio/opus 3 0s"},
		"alternate":               {`<podcast:alternateEnclosure type="audio/opus"><podcast:source uri="http://a.example/a.opus"/></podcast:alternateEnclosure><enclosure url="/a.mp3" type="audio/mpeg" length="4"/>`, "/a.mp3 audio/mpeg 4 0s"},
		"twice":                   {`<enclosure url="/a.mp3" type="audio/mpeg" length="4"/><enclosure url="/a.mp3" type="audio/mpeg" length="4"/>`, "/a.mp3 audio/mpeg 4 0s"},
		"for sale":                {`<atom:link rel="http://opds-spec.org/acquisition" href="/a.epub" type="application/epub+zip"/><atom:link rel="http://opds-spec.org/acquisition/buy" href="/buy"/>`, "/a.epub application/epub+zip 0 0s"},
		"duration of no duration": {`<enclosure url="/a.mp3" type="audio/mpeg" length="-4"/><itunes:duration>about an hour</itunes:duration>`, "/a.mp3 audio/mpeg 0 0s"},
		"duration of the sound":   {`<enclosure url="/a.pdf" type="application/pdf" length="1"/><enclosure url="/a.mp3" type="audio/mpeg" length="4"/><itunes:duration>90</itunes:duration>`, "/a.pdf application/pdf 1 0s, /a.mp3 audio/mpeg 4 1m30s"},
	} {
		doc := readRich(t, `<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/" xmlns:podcast="https://podcastindex.org/namespace/1.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><item><guid>x</guid>`+test.item+`</item></channel></rss>`)
		var all []string
		for _, f := range doc.Entries[0].Enclosures() {
			all = append(all, strings.TrimSpace(strings.Join([]string{strings.TrimPrefix(f.URL, "http://a.example"), f.Type, itoa(f.Length), f.Duration.String(), f.Title}, " ")))
		}
		require.Equal(t, test.want, strings.Join(all, ", "), name)
	}
}

// The page for people comes before a link for programs, in Rel only: the order of the links and an ID
// made of the first one stay.
func TestPageForPeople(t *testing.T) {
	doc := readRich(t, `<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>T</title>
<link rel="alternate" type="application/nostr+json" href="nostr:naddr1"/><link rel="alternate" type="text/html" href="1"/><link href="2"/></entry></feed>`)
	e := doc.Entries[0]
	page, _ := e.Links.Rel("alternate")
	require.Equal(t, "http://a.example/1", page.Href)
	require.Equal(t, "nostr:naddr1", e.Links[0].Href)
	require.Equal(t, "nostr:naddr1", e.ID)
	only := Links{{Rel: "alternate", Href: "nostr:naddr1"}}
	page, ok := only.Rel("alternate")
	require.True(t, ok)
	require.Equal(t, only[0], page)
}

func grep(all []string, word string) (found []string) {
	for _, s := range all {
		if strings.Contains(s, word) {
			found = append(found, s)
		}
	}
	return found
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
