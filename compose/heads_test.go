package compose_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
)

// The head section of a feed survives the way through the other format: each of its elements
// is there again.
func TestHeadsThroughTheOtherFormat(t *testing.T) {
	const entry, item = `<entry><id>urn:1</id><title>T</title><updated>2003-12-13T18:30:02Z</updated><link href="http://a.example/1"/></entry>`,
		`<item><guid isPermaLink="false">urn:1</guid><title>T</title></item>`
	for _, test := range []struct {
		head     string
		elements []string
		through  func(io.Writer, *Document) error
		back     func(io.Writer, *Document) error
	}{
		{`<rss version="2.0"><channel><title>F</title><link>http://a.example/</link><description>D</description>%</channel></rss>`, []string{
			"<language>en-us</language>", "<copyright>(c) 2003 A</copyright>", "<managingEditor>a@a.example (A)</managingEditor>",
			"<webMaster>b@a.example (B)</webMaster>", "<generator>G 1</generator>", "<docs>http://a.example/docs</docs>",
			`<category domain="http://a.example/c">C</category>`, "<category>D</category>",
			"<image><url>http://a.example/i.png</url>", "<title>I</title>", "<textInput><title>Search</title>",
		}, compose.WriteAtom, compose.WriteRSS},
		{`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title><updated>2003-12-13T18:30:02Z</updated>%</feed>`, []string{
			"<author>", "<name>Ann</name>", "<uri>http://a.example/ann</uri>", "<email>ann@a.example</email>",
			">(c) 2003 A</rights>", ">Bob</name>", `term="c"`, `scheme="http://a.example/c"`, `label="C"`, `uri="http://a.example/g"`, ">http://a.example/l.png</logo>",
		}, compose.WriteRSS, compose.WriteAtom},
	} {
		body := strings.Join(test.elements, "") + "<link>http://a.example/</link></image><description>S</description><name>q</name><link>http://a.example/q</link></textInput>"
		body = strings.Replace(body, "<textInput>", "<link>http://a.example/</link></image><textInput>", 1)
		body = strings.Replace(body, "<link>http://a.example/</link></image><description>", "<description>", 1) + item
		if strings.HasPrefix(test.head, "<feed") {
			body = `<author><name>Ann</name><uri>http://a.example/ann</uri><email>ann@a.example</email></author><rights>(c) 2003 A</rights>` +
				`<contributor><name>Bob</name></contributor><category term="c" scheme="http://a.example/c" label="C"/>` +
				`<generator uri="http://a.example/g" version="1">G</generator><logo>http://a.example/l.png</logo>` + entry
		}
		doc, err := Parse(strings.NewReader(strings.Replace(test.head, "%", body, 1)), "http://a.example/feed")
		require.NoError(t, err)
		other, err := Parse(strings.NewReader(written(t, test.through, doc)), "http://a.example/feed")
		require.NoError(t, err)
		require.NotEqual(t, doc.Format, other.Format)
		text := written(t, test.back, other)
		for _, element := range test.elements {
			require.Contains(t, strings.ReplaceAll(text, ` xml:base="http://a.example/feed"`, ""), element)
		}
		again, err := Parse(strings.NewReader(text), "http://a.example/feed")
		require.NoError(t, err)
		require.Equal(t, doc.Language, again.Language)
		require.Equal(t, doc.Authors, again.Authors)
	}
}

// Id, language, authors and icon of a feed of Atom are those of the copy in RSS, and of the copy of that.
func TestHeadThroughRSS(t *testing.T) {
	original, err := parse(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xml:lang="de"><id>urn:f</id><title>F</title>
		<author><name>A</name><email>a@example.org</email></author><icon>http://example.org/i.png</icon><itunes:image href="http://example.org/large.png"/>
		<entry><id>urn:1</id><title>T</title><updated>2024-01-01T00:00:00Z</updated></entry></feed>`, "http://example.org/feed")
	require.NoError(t, err)
	d := original
	for _, write := range []func(io.Writer, *Document) error{compose.WriteRSS, compose.WriteAtom, compose.WriteRSS} {
		var b bytes.Buffer
		require.NoError(t, write(&b, d))
		require.LessOrEqual(t, strings.Count(b.String(), "<icon"), 1, b.String())
		d, err = parse(b.String(), "http://example.org/feed")
		require.NoError(t, err)
		require.Equal(t, original.ID, d.ID, b.String())
		require.Equal(t, original.Language, d.Language, b.String())
		require.Equal(t, original.Authors, d.Authors, b.String())
		require.Equal(t, original.Icon, d.Icon, b.String())
	}
}
