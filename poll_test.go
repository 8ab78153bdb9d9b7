package feedhistory

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/fetch"
)

func clientOf(s *feedtest.Sites) *Client {
	return &Client{Transport: &feedtest.Line{Serve: s.Answer}, Policy: Policy{PerHost: 1}, Retry: Retry{Tries: 1}}
}

// feed returns a document with one entry, after the given elements.
func feed(id, head string) string {
	return `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">` + head +
		"<entry><id>" + id + "</id></entry></feed>"
}

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

const feedURL = "http://a.example/feed"

func TestPoll(t *testing.T) {
	text, broken := feed("urn:1", ""), "<feed><entry>"
	tests := []struct {
		name  string
		known Known
		reply feedtest.Reply
		want  string // "unchanged", "document", or the reason of the error
	}{
		{"304", Known{ETag: `"1"`}, feedtest.Reply{Status: 304}, "unchanged"},
		{"304, by date", Known{LastModified: "yesterday"}, feedtest.Reply{Status: 304}, "unchanged"},
		{"304 that nobody asked for", Known{}, feedtest.Reply{Status: 304}, "status"},
		{"304 though only a digest was known", Known{Digest: fetch.Digest(text)}, feedtest.Reply{Status: 304}, "status"},
		{"the same bytes", Known{Digest: fetch.Digest(text)}, feedtest.Reply{Body: text}, "unchanged"},
		{"the same bytes, in spite of validators", Known{ETag: `"1"`, Digest: fetch.Digest(text)}, feedtest.Reply{Body: text}, "unchanged"},
		{"the same bytes, compressed", Known{Digest: fetch.Digest(text)},
			feedtest.Reply{Header: []string{"Content-Encoding: gzip"}, Body: gzipped(text)}, "unchanged"},
		{"the same bytes, which are not parsed again", Known{Digest: fetch.Digest(broken)}, feedtest.Reply{Body: broken}, "unchanged"},
		{"the same bytes, but cut short", Known{Digest: fetch.Digest(text[:40])},
			feedtest.Reply{Header: []string{"Content-Length: " + strconv.Itoa(len(text))}, Body: text[:40]}, "truncated"},
		{"other bytes", Known{Digest: fetch.Digest(text)}, feedtest.Reply{Body: text + " "}, "document"},
		{"the same length", Known{Digest: fetch.Digest(text)}, feedtest.Reply{Body: feed("urn:2", "")}, "document"},
		{"nothing, again", Known{Digest: fetch.Digest("")}, feedtest.Reply{}, "unchanged"},
		{"nothing known", Known{}, feedtest.Reply{Body: text}, "document"},
		{"other bytes, broken", Known{Digest: fetch.Digest(text)}, feedtest.Reply{Body: broken}, "truncated"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &feedtest.Sites{Replies: map[string]feedtest.Reply{feedURL: test.reply}}
			doc, err := clientOf(s).Poll(t.Context(), feedURL, test.known)
			switch test.want {
			case "document":
				require.NoError(t, err)
				require.Equal(t, fetch.Digest(test.reply.Body), doc.Response.Digest)
				require.Equal(t, doc.Response.Digest, doc.Known().Digest)
			case "unchanged":
				require.Nil(t, doc)
				unchanged := feedtest.ErrorAs[*Unchanged](t, err)
				require.Equal(t, test.known, unchanged.Known)
				require.Equal(t, feedURL, unchanged.Response.Requested)
				require.False(t, unchanged.Response.Received.IsZero())
				require.Contains(t, err.Error(), feedURL)
			default:
				require.Error(t, err)
				require.Equal(t, test.want, reasonOf(err).String(), "%v", err)
			}
		})
	}
}

// A document's Known makes the next poll conditional, whatever the validators look like.
func TestPollValidators(t *testing.T) {
	for _, etag := range []string{
		``, `"1"`, `W/"1"`, `w/"1"`, `1`, `"`, `""`, `""1""`, `"1", "2"`, `W/"1-gzip"`, `"1;gzip"`, `'1'`, "\"\xe9t\xe9\"", `"été"`, `*`,
		`"` + strings.Repeat("x", 4000) + `"`,
	} {
		for _, date := range []string{
			``, "Sat, 1 Jan 2000 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:00 GMT", "Saturday, 01-Jan-00 00:00:00 GMT",
			"2000-01-01T00:00:00Z", "0", "yesterday", "Sat, 01 Jan 2000 00:00:00 +0100",
		} {
			header, conditions := []string(nil), ""
			if etag != "" {
				header, conditions = append(header, "Etag: "+etag), " If-None-Match: "+etag
			}
			if date != "" {
				header, conditions = append(header, "Last-Modified: "+date), conditions+" If-Modified-Since: "+date
			}
			s := &feedtest.Sites{Replies: map[string]feedtest.Reply{feedURL: {Header: header, Body: feed("urn:1", "")}}}
			client := clientOf(s)
			doc, err := client.Get(t.Context(), feedURL)
			require.NoError(t, err)
			require.Equal(t, []string{feedURL}, s.Took())
			known := doc.Known()
			require.Equal(t, etag, known.ETag)
			require.Equal(t, date, known.LastModified)
			s.Replies[feedURL] = feedtest.Reply{Status: 304, Body: ""}
			if conditions == "" {
				s.Replies[feedURL] = feedtest.Reply{Body: feed("urn:1", "")}
			}
			_, err = client.Poll(t.Context(), feedURL, known)
			unchanged := feedtest.ErrorAs[*Unchanged](t, err)
			require.Equal(t, []string{feedURL + conditions}, s.Took())
			require.Equal(t, etag, unchanged.Response.ETag, "those that a 304 does not repeat stay in force")
			require.Equal(t, date, unchanged.Response.LastModified)
		}
	}
}

// A 304 may give newer validators.
func TestPollNewValidators(t *testing.T) {
	s := &feedtest.Sites{Replies: map[string]feedtest.Reply{feedURL: {Status: 304, Header: []string{`Etag: W/"2"`, "Cache-Control: max-age=60"}}}}
	_, err := clientOf(s).Poll(t.Context(), feedURL, Known{ETag: `"1"`, LastModified: "then"})
	unchanged := feedtest.ErrorAs[*Unchanged](t, err)
	require.Equal(t, `"1"`, unchanged.Known.ETag)
	require.Equal(t, `W/"2"`, unchanged.Response.ETag)
	require.Equal(t, "then", unchanged.Response.LastModified)
	require.Equal(t, time.Minute, unchanged.Response.Fresh.Sub(unchanged.Response.Received))
}

// Validators are sent only to the origin that they came from, in any hop.
func TestPollValidatorsOfAnOrigin(t *testing.T) {
	const other = "http://b.example/feed"
	tests := []struct {
		name  string
		from  string // Known.URL
		other string // where it redirects to
		want  []string
	}{
		{"of where it leads", other, other, []string{feedURL, other + ` If-None-Match: "1"`}},
		{"of where it came from", feedURL, other, []string{feedURL + ` If-None-Match: "1"`, other}},
		{"of the URL itself, if it does not say", "", other, []string{feedURL + ` If-None-Match: "1"`, other}},
		{"of somewhere else", "http://c.example/feed", other, []string{feedURL, other}},
		{"of another port", "http://a.example:8080/feed", other, []string{feedURL, other}},
		{"of another scheme", "https://a.example/feed", other, []string{feedURL, other}},
		{"of the same port, written out", "http://a.example:80/feed", other, []string{feedURL + ` If-None-Match: "1"`, other}},
		{"of the same host", "http://A.example/other", "http://a.example/2",
			[]string{feedURL + ` If-None-Match: "1"`, `http://a.example/2 If-None-Match: "1"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &feedtest.Sites{Replies: map[string]feedtest.Reply{
				feedURL: feedtest.Redirect(302, test.other), test.other: {Body: feed("urn:1", "")},
			}}
			doc, err := clientOf(s).Poll(t.Context(), feedURL, Known{URL: test.from, ETag: `"1"`})
			require.NoError(t, err)
			require.Equal(t, test.want, s.Took())
			require.Equal(t, test.other, doc.Known().URL)
			require.Equal(t, feedURL, doc.Response.Requested)
		})
	}
}

// What a document says about itself is known when it has not changed.
func TestKnown(t *testing.T) {
	s := &feedtest.Sites{Replies: map[string]feedtest.Reply{feedURL: {
		Header: []string{`Etag: "1"`}, Body: feed("urn:1", `<link rel="prev-archive" href="archive"/>`),
	}}}
	doc, err := clientOf(s).Get(t.Context(), feedURL)
	require.NoError(t, err)
	require.Equal(t, Known{
		URL: feedURL, ETag: `"1"`, Digest: doc.Response.Digest, Kind: Archived, Older: "http://a.example/archive",
	}, doc.Known())

	parsed, err := Parse(strings.NewReader(feed("urn:1", "")), feedURL)
	require.NoError(t, err)
	require.Equal(t, Known{URL: feedURL}, parsed.Known())
	require.Zero(t, parsed.Response)
	require.True(t, parsed.NextPoll().IsZero())
}

func TestPermanent(t *testing.T) {
	tests := []struct {
		statuses []int // of the redirects, one after the other
		want     int   // how many of them are to be remembered
	}{
		{nil, 0}, {[]int{301}, 1}, {[]int{308}, 1}, {[]int{302}, 0}, {[]int{303}, 0}, {[]int{307}, 0},
		{[]int{301, 308}, 2}, {[]int{301, 302}, 1}, {[]int{302, 301}, 0}, {[]int{301, 307, 301}, 1},
	}
	for _, test := range tests {
		for _, final := range []feedtest.Reply{{Body: feed("urn:1", "")}, {Status: 304}} {
			s := &feedtest.Sites{Replies: map[string]feedtest.Reply{}}
			url := func(i int) string { return "http://a.example/" + strconv.Itoa(i) }
			for i, status := range test.statuses {
				s.Replies[url(i)] = feedtest.Redirect(status, url(i+1))
			}
			s.Replies[url(len(test.statuses))] = final
			want := ""
			if test.want > 0 {
				want = url(test.want)
			}
			doc, err := clientOf(s).Poll(t.Context(), url(0), Known{ETag: `"1"`})
			if final.Status == 304 {
				unchanged := feedtest.ErrorAs[*Unchanged](t, err)
				require.Equal(t, want, unchanged.Response.Permanent, "%v", test.statuses)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, doc.Response.Permanent, "%v", test.statuses)
			require.Equal(t, url(len(test.statuses)), doc.URL)
		}
	}
}

// 410 is the end of a feed, unless a temporary redirect led there.
func TestGone(t *testing.T) {
	for status, want := range map[int]bool{0: true, 301: true, 308: true, 302: false, 307: false} {
		s := &feedtest.Sites{Replies: map[string]feedtest.Reply{feedURL: {Status: 410}}}
		if status > 0 {
			s.Replies = map[string]feedtest.Reply{feedURL: feedtest.Redirect(status, "/gone"), "http://a.example/gone": {Status: 410}}
		}
		for _, poll := range []func(*Client) error{
			func(c *Client) error {
				_, err := c.Poll(t.Context(), feedURL, Known{ETag: `"1"`})
				return err
			},
			func(c *Client) error {
				_, err := c.Fetch(t.Context(), feedURL)
				return err
			},
		} {
			gone := feedtest.ErrorAs[*StatusError](t, poll(clientOf(s)))
			require.Equal(t, want, gone.Gone, "%d", status)
		}
	}
	s := &feedtest.Sites{Replies: map[string]feedtest.Reply{feedURL: {Status: 404}}}
	_, err := clientOf(s).Get(t.Context(), feedURL)
	status := feedtest.ErrorAs[*StatusError](t, err)
	require.False(t, status.Gone)
}

// A client does not wait for a Retry-After longer than MaxWait: the error says when to ask
// again. Until then no client asks the host.
func TestRetryAfterBeyondMaxWait(t *testing.T) {
	for _, header := range []string{"Retry-After: 3600", "Retry-After: Sat, 01 Jan 2000 01:00:00 GMT"} {
		for _, code := range []int{429, 503} {
			synctest.Test(t, func(t *testing.T) {
				s := &feedtest.Sites{Replies: map[string]feedtest.Reply{feedURL: {Status: code, Header: []string{header}}}}
				client := clientOf(s)
				client.Retry = Retry{}
				start := time.Now()
				_, err := client.Get(t.Context(), feedURL)
				status := feedtest.ErrorAs[*StatusError](t, err)
				require.Equal(t, time.Hour, status.RetryAfter)
				require.True(t, start.Add(time.Hour).Equal(status.At))
				require.False(t, status.Remembered)
				require.Equal(t, []string{feedURL}, s.Took())

				time.Sleep(time.Hour - time.Minute)
				_, err = client.Fetch(t.Context(), "http://a.example/other")
				require.ErrorAs(t, err, &status)
				require.True(t, status.Remembered)
				require.Equal(t, code, status.Status)
				require.True(t, start.Add(time.Hour).Equal(status.At))
				require.Empty(t, s.Took(), "the host is left alone")

				time.Sleep(time.Minute)
				s.Replies[feedURL] = feedtest.Reply{Body: feed("urn:1", "")}
				_, err = client.Get(t.Context(), feedURL)
				require.NoError(t, err)
				require.True(t, start.Add(time.Hour).Equal(time.Now()))
			})
		}
	}
}

// An archive that must be requested later is a gap that says when; a short wait is not.
func TestRetryAfterOfAnArchive(t *testing.T) {
	for _, perHost := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			const archive = "http://a.example/archive"
			s := &feedtest.Sites{Replies: map[string]feedtest.Reply{
				feedURL: {Body: feed("urn:2", `<link rel="prev-archive" href="/archive"/>`)},
				archive: {Status: 429, Header: []string{"Retry-After: 3600"}},
			}}
			client := clientOf(s)
			client.Policy.PerHost, client.Retry = perHost, Retry{}
			h, err := client.Fetch(t.Context(), feedURL)
			require.NoError(t, err)
			require.Len(t, h.Gaps, 1)
			require.Equal(t, ReasonStatus, h.Gaps[0].Reason)
			status := feedtest.ErrorAs[*StatusError](t, h.Gaps[0])
			require.Equal(t, time.Hour, time.Until(status.At))
			require.Equal(t, []string{feedURL, archive}, s.Took())

			time.Sleep(time.Hour)
			started, asked := time.Now(), 0
			client.Transport.(*feedtest.Line).Serve = func(r *http.Request) feedtest.Reply {
				if asked++; asked == 2 {
					return feedtest.Reply{Status: 503, Header: []string{"Retry-After: 10"}}
				}
				return feedtest.Reply{Body: map[string]string{
					feedURL: s.Replies[feedURL].Body, archive: feed("urn:1", "<fh:archive/>"),
				}[r.URL.String()]}
			}
			h, err = client.Fetch(t.Context(), feedURL)
			require.NoError(t, err)
			require.Equal(t, Whole, h.Verdict())
			require.Equal(t, 10*time.Second, time.Since(started))
		})
	}
}
