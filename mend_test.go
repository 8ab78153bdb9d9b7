package feedhistory

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

func TestStrict(t *testing.T) {
	const text = `<rss><channel><item><guid>1</guid></item><item><guid>2</guid><br></item></channel></rss>`
	doc, err := Parser{Strict: true}.Parse(strings.NewReader(text), "")
	parse := feedtest.ErrorAs[*ParseError](t, err)
	require.Equal(t, ReasonMalformed, parse.Reason)
	require.Len(t, doc.Entries, 1)
	doc, err = Parse(strings.NewReader(text), "")
	require.NoError(t, err)
	require.Len(t, doc.Entries, 2)
}

// The texts of a mended entry are those of a well-formed one.
func TestMendedTexts(t *testing.T) {
	for _, tt := range []struct{ content, want string }{
		{`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>1 < 2<br>3<p>4 &nbsp;<b class=x>5</div></content>`,
			"<p>1 &lt; 2<br>3</p><p>4 \u00a0<b class=\"x\">5</b></p>"},
		{`<content type="application/xml"><x y=1>1<z></x></content>`, `<x y="1">1<z></z></x>`},
		{`<content type="html">1 < 2 &lt;br></content><br>`, "1 < 2 <br>"},
		{`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>1</Content>`, "<p>1</p>"},
	} {
		doc, err := Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id>`+tt.content+`</entry></feed>`), "")
		require.NoError(t, err)
		require.Len(t, doc.Entries, 1)
		require.Equal(t, tt.want, doc.Entries[0].Content().Body)
		d := xml.NewDecoder(strings.NewReader(string(doc.Entries[0].XML())))
		for err = nil; err == nil; {
			_, err = d.Token()
		}
		require.ErrorIs(t, err, io.EOF)
	}
}

// An entry that another document repeats is the same, wherever the damage is.
func TestMendedEntriesAreTheSame(t *testing.T) {
	read := func(text string) []*Entry {
		doc, err := Parse(strings.NewReader(text), "http://example.org/")
		require.NoError(t, err)
		return doc.Entries
	}
	const item = "<item><guid>1</guid><title>A & B</title></item>"
	sound := read("<rss><channel>" + item + "</channel></rss>")
	damaged := read("<rss><channel><br>" + item + "\n<item>2\n<item>3\n</channel></rss>")
	require.Len(t, damaged, 3)
	require.Equal(t, sound[0].Digest(), damaged[0].Digest())
	alone := read("<rss><channel><item>2</channel></rss>")
	require.Equal(t, alone[0].Digest(), damaged[1].Digest(), "what stands between entries is no part of them")
}

// What damage may have lost, although the document was read to its end, is reported: an
// entry that is no longer one, and an id that nobody wrote.
func TestWhatDamageCosts(t *testing.T) {
	const link = `<link rel="prev-archive" href="1"/>`
	feed := func(s string) string { return `<feed xmlns="` + vocab.Atom + `">` + link + s + `</feed>` }
	const sound = `<entry><id>0</id></entry>`
	for _, tt := range []struct {
		name, text string
		ids        []string
		want       string
	}{
		{"nothing", feed(sound + `<entry><br><id>1</id></entry>`), []string{"0", "1"}, ""},
		{"a stray end tag", feed(sound + `</entry>` + sound), []string{"0", "0"}, ""},
		{"an id twice", feed(sound + `<entry><id>1</id><id>1</id><br></entry>`), []string{"0", "1"}, ""},
		{"two ids in a sound document", feed(sound + `<entry><id>1</id><id>2</id></entry>`), []string{"0", "1"}, ""},
		{"two entries in one", feed(sound + `<entry><id>1</id><title>a<id>2</id></title></title><id>3</id></entry>`), []string{"0", "1"}, "two ids"},
		{"an entry without its start tag", feed(sound + `<id>1</id><summary/></entry>` + sound), []string{"0", "0"}, "is outside all entries"},
		{"an id without its start tag", feed(sound + `<entry>id>1</id><link href="x"/></entry>`), []string{"0"}, "id is damaged"},
		{"an id that became another element", feed(sound + `<entry><idtag:1</id ><link href="x"/></entry>`), []string{"0"}, "id is damaged"},
		{"two items without ids in one", `<rss><channel>` + link + `<item><link>1</link></item><item><link>2</link><title>a</title></title><link>3</link></item></channel></rss>`,
			[]string{"http://h/1", "http://h/2"}, "two links"},
		{"an item's", `<rss><channel>` + link + `<item><guid>0</guid></item><item><foo>1</guid><link>x</link></item></channel></rss>`, []string{"0"}, "id is damaged"},
		{"a part of an item", `<rss><channel>` + link + `<item><guid>0</guid></item><guid>1</guid></item></channel></rss>`, []string{"0"}, "is outside all entries"},
		{"an entry in a comment that only lacks an end", feed(`<entry><id>0</id><!-- </entry><entry><id>1</id><!-- x --></entry>` + sound),
			[]string{"0", "0"}, "inside another element"},
		{"entries in a comment", feed(`<entry><id>0</id></entry><!-- <entry><id>1</id></entry> -- <entry/> -->` + sound), []string{"0", "0"}, ""},
		{"an end that HTML allows", feed(`<entry><id>0</id><!-- </entry><entry><id>1</id> --!></entry>` + sound), []string{"0", "0"}, "inside another element"},
		{"an entry in a comment", feed(`<entry><id>0</id><br><!-- </entry><entry><id>1</id></entry><entry><!-- x --><id>2</id></entry>` + sound),
			[]string{"0", "0"}, "inside another element"},
	} {
		doc, err := Parse(strings.NewReader(tt.text), "http://h/feed")
		if err == nil && doc.Damage(Archived) != nil {
			err = doc.Damage(Archived)
		}
		if tt.want == "" {
			require.NoError(t, err, tt.name)
		} else {
			require.ErrorContains(t, err, tt.want, tt.name)
		}
		var ids []string
		for _, e := range doc.Entries {
			ids = append(ids, e.ID)
		}
		require.Equal(t, tt.ids, ids, tt.name)
	}
}

// A feed with HTML's DOCTYPE is still a feed, if nothing else comes before it.
func TestDoctypeOfHTML(t *testing.T) {
	const item = "<rss><channel><item><guid>1</guid><br></item></channel></rss>"
	for before, isFeed := range map[string]bool{
		"<!DOCTYPE html>":                   true,
		"<!doctype html>\n<!-- 1 < 2 -->\n": true,
		"<!doctype html><head></head>":      false,
		"<!doctype html><html>":             false,
		"<html>":                            false,
	} {
		doc, err := Parse(strings.NewReader(before+item), "http://h/feed")
		if !isFeed {
			parse := feedtest.ErrorAs[*ParseError](t, err, before)
			require.Equal(t, ReasonNotFeed, parse.Reason, before)
			continue
		}
		require.NoError(t, err, before)
		require.Len(t, doc.Entries, 1, before)
	}
}

func TestFetchGivesWhatCouldBeRead(t *testing.T) {
	doc, err := Parse(strings.NewReader(`<rss><channel><item><guid>1</guid></item><item>`), "http://example.org/")
	require.Error(t, err)
	h, merged := Merge(func(yield func(*Document, error) bool) { yield(doc, err) })
	require.Equal(t, err, merged)
	require.Equal(t, Partial, h.Verdict())
	require.Zero(t, h.Documents)
	require.Len(t, h.Entries, 1)
	require.Len(t, h.Gaps, 1)
	require.Equal(t, ReasonTruncated, h.Gaps[0].Reason)
	require.Same(t, doc, h.Gaps[0].Document)
}
