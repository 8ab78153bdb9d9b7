package feedhistory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

// Members of JSON Feed are read by their exact names.
// An item of a JSON Feed with an image alone shows it.
func TestPictureOfJSON(t *testing.T) {
	for item, want := range map[string]string{
		`{"id":"1","image":"a&b.png"}`:                     `<img src="a&amp;b.png">`,
		`{"id":"1","image":"a.png","summary":"s"}`:         "",
		`{"id":"1","image":"a.png","content_text":"text"}`: "text",
		`{"id":"1"}`: "",
	} {
		e, err := feedhistory.ReadEntry(feedhistory.FormatJSONFeed, item, "http://h/")
		require.NoError(t, err)
		require.Equal(t, want, e.Content().Body, item)
	}
}

func TestJSONNames(t *testing.T) {
	const feed = `{"version":"https://jsonfeed.org/version/1.1","items":[%s]}`
	for item, want := range map[string]string{
		`{"id":"right","ID":"wrong"}`:                                            "right",
		`{"ID":"wrong","id":"right"}`:                                            "right",
		`{"Id":"wrong","id":7.50}`:                                               "7.50",
		`{"\u0069d":"right"}`:                                                    "right",
		`{"ID":"wrong","url":"http://h/1","URL":"http://h/2"}`:                   "http://h/1",
		`{"id":"right","_x":{"a":"\"ID\":","b":["\\"]},"\u0049D":"wrong"}`:       "right",
		`{"id":"right","attachments":[{"URL":"http://h/x","url":"http://h/y"}]}`: "right",
	} {
		doc, err := feedhistory.Parse(strings.NewReader(fmt.Sprintf(feed, item)), "")
		require.NoError(t, err, item)
		require.Equal(t, want, doc.Entries[0].ID, item)
		again, err := feedhistory.ReadEntry(feedhistory.FormatJSONFeed, string(doc.Entries[0].JSON()), "")
		require.NoError(t, err)
		require.Equal(t, want, again.ID)
		for _, l := range again.Links {
			require.NotContains(t, []string{"http://h/2", "http://h/x"}, l.Href)
		}
	}
}

// Items without a guid that share a link are separate entries; the oldest keeps the ID that
// it would have alone.
func TestItemsThatShareALink(t *testing.T) {
	item := func(title, date string) string {
		return "<item><title>" + title + "</title><link>http://h/news</link>" + date + "</item>"
	}
	const day1, day2 = "<pubDate>Mon, 01 Dec 2003 00:00:00 GMT</pubDate>", "<pubDate>Tue, 02 Dec 2003 00:00:00 GMT</pubDate>"
	ids := func(items ...string) (ids []string) {
		doc, err := feedhistory.Parse(strings.NewReader("<rss><channel>"+strings.Join(items, "")+"</channel></rss>"), "")
		require.NoError(t, err)
		for _, e := range doc.Entries {
			require.True(t, e.WeakID)
			ids = append(ids, e.ID)
		}
		return ids
	}
	alone := ids(item("a", day1))
	require.Equal(t, []string{"http://h/news"}, alone)

	newestFirst, oldestFirst := ids(item("b", day2), item("a", day1)), ids(item("a", day1), item("b", day2))
	require.Equal(t, "http://h/news", newestFirst[1])
	require.Equal(t, "http://h/news", oldestFirst[0])
	require.Equal(t, newestFirst[0], oldestFirst[1], "the order makes no difference")
	require.True(t, strings.HasPrefix(newestFirst[0], "urn:sha256:"))

	undated := ids(item("b", ""), item("a", ""))
	require.Equal(t, "http://h/news", undated[1], "the newest come first")
	require.Equal(t, undated[0], ids(item("c", ""), item("b", ""), item("a", ""))[1], "a later one changes nothing")
	twice := ids(item("b", day2), item("b", day2), item("a", day1))
	require.Equal(t, twice[0], twice[1], "the same twice is one entry")
}

// testReadAgain checks that an entry says the same when read again from the results of XML
// and JSON.
func testReadAgain(t *testing.T, e *feedhistory.Entry, base string) {
	t.Helper()
	data := string(e.XML())
	if e.Head.Format == feedhistory.FormatJSONFeed {
		data = string(e.JSON())
	}
	twin, err := feedhistory.ReadEntry(e.Head.Format, data, base)
	require.NoError(t, err, data)
	require.Equal(t, flat(e.Links), flat(twin.Links), data)
	require.Equal(t, []feedhistory.Text{e.Title(), e.Summary(), e.Content()}, []feedhistory.Text{twin.Title(), twin.Summary(), twin.Content()}, data)
	require.Equal(t, e.Updated.UTC(), twin.Updated.UTC(), data)
	require.Equal(t, e.Published.UTC(), twin.Published.UTC(), data)
	if e.WeakID { // alone, one of several with a guid has that
		require.True(t, twin.WeakID || twin.ID != e.ID, data)
		return
	}
	require.False(t, twin.WeakID, data)
	require.Equal(t, e.ID, twin.ID, data)
}

func TestReadEntryRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":         "",
		"another element": "<id>a</id>",
		"two entries":     "<entry><id>a</id></entry><entry><id>b</id></entry>",
		"a broken one":    "<entry><id>a</id>",
	} {
		_, err := feedhistory.ReadEntry(feedhistory.FormatAtom, data, "http://example.org/feed")
		parse := feedtest.ErrorAs[*feedhistory.ParseError](t, err, name)
		require.Equal(t, "http://example.org/feed", parse.URL, name)
	}
}

func TestDigestIsOfWhatStoodThere(t *testing.T) {
	const first = `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><entry><id>a</id></entry></feed>`
	const second = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:x="urn:x"><entry><id>a</id></entry><entry><id>a</id> </entry></feed>`
	a, b := entriesOf(t, first)[0], entriesOf(t, second)
	require.NotEqual(t, a.XML(), b[0].XML())
	require.Equal(t, a.Digest(), b[0].Digest())
	require.NotEqual(t, a.Digest(), b[1].Digest())
}

func entriesOf(t *testing.T, document string) []*feedhistory.Entry {
	t.Helper()
	doc, err := feedhistory.Parse(strings.NewReader(document), "")
	require.NoError(t, err)
	return doc.Entries
}

// A gap without a reason, or with one of a later version, is one nevertheless.
func TestGapWithoutReason(t *testing.T) {
	for reason, want := range map[feedhistory.Reason]string{"": "unknown", feedhistory.ReasonUnknown: "unknown", feedhistory.ReasonLoop: "loop", "of-tomorrow": "of-tomorrow"} {
		gap := &feedhistory.Gap{URL: "http://example.org/", Reason: reason, Err: errors.New("it is missing")}
		require.Equal(t, want+": http://example.org/: it is missing", gap.Error())
		require.NotEmpty(t, reason.Advice())
		require.Equal(t, feedhistory.VerdictPartial, (&feedhistory.History{Head: &feedhistory.Document{}, Kind: feedhistory.KindComplete, Gaps: []*feedhistory.Gap{gap}}).Verdict())
	}
	for _, kind := range []feedhistory.Kind{"", feedhistory.KindUnknown, "of-tomorrow"} {
		require.Equal(t, feedhistory.VerdictUnknown, (&feedhistory.History{Head: &feedhistory.Document{}, Kind: kind}).Verdict())
	}
}

func TestEntryTimes(t *testing.T) {
	published, updated := time.Date(2003, 12, 13, 0, 0, 0, 0, time.UTC), time.Date(2020, 2, 3, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		e             feedhistory.Entry
		time, changed time.Time
	}{
		{feedhistory.Entry{Published: published, Updated: updated}, published, updated},
		{feedhistory.Entry{Published: published}, published, published},
		{feedhistory.Entry{Updated: updated}, updated, updated},
		{feedhistory.Entry{}, time.Time{}, time.Time{}},
	} {
		require.Equal(t, tc.time, tc.e.Time())
		require.Equal(t, tc.changed, tc.e.Changed())
	}
}
