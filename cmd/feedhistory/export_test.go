package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// mirrored returns a store with a feed that is served once.
func mirrored(t *testing.T, feed string) (mirror.Store, string) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(feed))
	}))
	m := &mirror.Mirror{
		Store:  &mirror.Memory{},
		Client: &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}},
	}
	defer m.Client.CloseIdle()
	_, err := m.Update(t.Context(), server.URL)
	require.NoError(t, err)
	return m.Store, server.URL
}

// A feed is exported as one document, in whatever language it is.
func TestExportFeedIsOneDocument(t *testing.T) {
	for _, n := range []int{0, 1, 500, 1007} {
		for _, format := range []feedhistory.Format{feedhistory.Atom, feedhistory.RSS} {
			t.Run(fmt.Sprintf("%v of %d", format, n), func(t *testing.T) {
				store, url := mirrored(t, manyEntries(t, format, n))
				var out bytes.Buffer
				f, err := store.Feed(t.Context(), url)
				require.NoError(t, err)
				require.NoError(t, new(exportCommand).exportFeed(t.Context(), &out, &readableEntries{Store: store}, func(yield func(*mirror.Feed, error) bool) { yield(f, nil) }, format))
				doc, err := feedhistory.Parse(&out, url)
				require.NoError(t, err)
				require.Empty(t, doc.Notes)
				require.Equal(t, feedhistory.Complete, doc.Kind())
				require.Equal(t, "Many", doc.Title)
				require.Len(t, doc.Entries, n)
				for i, e := range doc.Entries {
					require.Equal(t, fmt.Sprintf("urn:%d", n-i), e.ID)
					require.Equal(t, fmt.Sprintf("Entry <%d>", n-i), e.Title().Body)
					require.Equal(t, "text", e.Summary().Plain()+e.Content().Plain(), "Atom has the only text of an entry without a link as content")
				}
			})
		}
	}
}

// manyEntries returns a complete feed, newest first.
func manyEntries(t *testing.T, format feedhistory.Format, n int) string {
	head := &feedhistory.Document{Title: "Many", ID: "urn:many"}
	var entries []*feedhistory.Entry
	for i := n; i > 0; i-- {
		e, err := feedhistory.Draft{
			ID: fmt.Sprintf("urn:%d", i), Title: feedhistory.Text{Body: fmt.Sprintf("Entry <%d>", i)},
			Updated: time.Unix(int64(i)*3600, 0).UTC(), Published: time.Unix(int64(i)*3600, 0).UTC(), Summary: feedhistory.Text{Body: "text"},
		}.Entry()
		require.NoError(t, err)
		entries = append(entries, e)
	}
	doc := feedhistory.NewComplete(head, entries, "https://example.org/feed")
	var b strings.Builder
	require.NoError(t, feedhistory.NewWriter(&b, format, doc).Close())
	return strings.NewReplacer("<feed ", `<feed xml:lang="de" `, "<channel>", "<channel><language>de</language>").Replace(b.String())
}

// The lines of a feed can be published, whatever its text is.
func TestExportedTextCanBePublished(t *testing.T) {
	const xhtml = `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">%s</div></content>`
	for _, content := range []string{
		"", "<content>plain &amp; simple</content>", `<content type="html">&lt;p>open &lt;br> &amp;amp; </content>`,
		fmt.Sprintf(xhtml, "<p>fine <b>text</b></p>"), fmt.Sprintf(xhtml, `a <br/> line <img src="x.png"/>`),
		fmt.Sprintf(xhtml, "a & b &nbsp; c"), `<content type="image/png">aGVsbG8=</content>`, `<content type="text/x" src="a.txt"/>`,
		`<content type="application/xml"><a xmlns="urn:a"/></content>`,
		`<content type="xhtml"><h:div xmlns:h="http://www.w3.org/1999/xhtml"><h:p>prefixed</h:p></h:div></content>`,
	} {
		t.Run(content, func(t *testing.T) {
			store, url := mirrored(t, `<feed xmlns="http://www.w3.org/2005/Atom"><title>Feed</title><id>urn:feed</id><entry><id>urn:1</id>`+
				`<title type="html">&lt;b>Title</title><updated>2003-12-13T18:30:02.5+01:00</updated>`+content+`</entry></feed>`)
			record := onlyRecord(t, store, url)
			exported, err := schema.RecordOf(record)
			require.NoError(t, err)
			var line bytes.Buffer
			require.NoError(t, terminal.WriteJSON(&line, exported))
			was, err := record.Entry()
			require.NoError(t, err)
			n := 0
			for read, err := range publish.Lines(&line) {
				require.NoError(t, err)
				is, err := read.Entry()
				require.NoError(t, err)
				require.Equal(t, was.ID, is.ID)
				require.True(t, was.Updated.Equal(is.Updated))
				require.Equal(t, was.Title().Plain(), is.Title().Plain())
				require.Equal(t, was.Content().Plain(), is.Content().Plain())
				require.Equal(t, was.Content().Src, is.Content().Src)
				n++
			}
			require.Equal(t, 1, n)
		})
	}
}

func onlyRecord(t *testing.T, store mirror.Store, feed string) *mirror.Record {
	records := feedtest.All(t, store.Entries(t.Context(), mirror.Query{Feed: feed}))
	require.Len(t, records, 1)
	return records[0]
}
