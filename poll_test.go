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
)

// Sites are what servers in memory say, by URL; a URL that is missing gets a
// 404. They keep the requests, each as a line: the URL, then those header
// fields that are not the same in every request.
type sites struct {
	replies  map[string]reply
	requests []string
}

func (s *sites) answer(r *http.Request) reply {
	line := r.URL.String()
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "Authorization"} {
		for _, value := range r.Header[name] {
			line += " " + name + ": " + value
		}
	}
	s.requests = append(s.requests, line)
	says, ok := s.replies[r.URL.String()]
	if !ok {
		return reply{status: http.StatusNotFound}
	}
	return says
}

// took returns the requests since it was asked last.
func (s *sites) took() []string {
	requests := s.requests
	s.requests = nil
	return requests
}

func (s *sites) client() *Client {
	return &Client{HTTP: &http.Client{Transport: &line{serve: s.answer}}, Policy: Policy{PerHost: 1}, Retry: Retry{Tries: 1}}
}

func redirect(status int, to string) reply {
	return reply{status: status, header: []string{"Location: " + to}}
}

// feed is a document with one entry, and the given elements before that.
func feed(id, head string) string {
	return `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">` + head +
		"<entry><id>" + id + "</id></entry></feed>"
}

func digestOf(text string) string {
	d := newBodyDigest()
	_, _ = io.WriteString(d, text)
	return d.String()
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
		reply reply
		want  string // "unchanged", "document", or the reason of the error
	}{
		{"304", Known{ETag: `"1"`}, reply{status: 304}, "unchanged"},
		{"304, by date", Known{LastModified: "yesterday"}, reply{status: 304}, "unchanged"},
		{"304 that nobody asked for", Known{}, reply{status: 304}, "status"},
		{"304 though only a digest was known", Known{Digest: digestOf(text)}, reply{status: 304}, "status"},
		{"the same bytes", Known{Digest: digestOf(text)}, reply{body: text}, "unchanged"},
		{"the same bytes, in spite of validators", Known{ETag: `"1"`, Digest: digestOf(text)}, reply{body: text}, "unchanged"},
		{"the same bytes, compressed", Known{Digest: digestOf(text)},
			reply{header: []string{"Content-Encoding: gzip"}, body: gzipped(text)}, "unchanged"},
		{"the same bytes, which are not parsed again", Known{Digest: digestOf(broken)}, reply{body: broken}, "unchanged"},
		{"the same bytes, but cut short", Known{Digest: digestOf(text[:40])},
			reply{header: []string{"Content-Length: " + strconv.Itoa(len(text))}, body: text[:40]}, "truncated"},
		{"other bytes", Known{Digest: digestOf(text)}, reply{body: text + " "}, "document"},
		{"the same length", Known{Digest: digestOf(text)}, reply{body: feed("urn:2", "")}, "document"},
		{"nothing, again", Known{Digest: digestOf("")}, reply{}, "unchanged"},
		{"nothing known", Known{}, reply{body: text}, "document"},
		{"other bytes, broken", Known{Digest: digestOf(text)}, reply{body: broken}, "truncated"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &sites{replies: map[string]reply{feedURL: test.reply}}
			doc, err := s.client().Poll(t.Context(), feedURL, test.known)
			switch test.want {
			case "document":
				require.NoError(t, err)
				require.Equal(t, digestOf(test.reply.body), doc.Response.Digest)
				require.Equal(t, doc.Response.Digest, doc.Known().Digest)
			case "unchanged":
				require.Nil(t, doc)
				var unchanged *Unchanged
				require.ErrorAs(t, err, &unchanged)
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

// A document says what to remember of it, and that makes the next poll
// conditional, whatever the validators look like.
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
			s := &sites{replies: map[string]reply{feedURL: {header: header, body: feed("urn:1", "")}}}
			client := s.client()
			doc, err := client.Get(t.Context(), feedURL)
			require.NoError(t, err)
			require.Equal(t, []string{feedURL}, s.took())
			known := doc.Known()
			require.Equal(t, etag, known.ETag)
			require.Equal(t, date, known.LastModified)
			s.replies[feedURL] = reply{status: 304, body: ""}
			if conditions == "" {
				s.replies[feedURL] = reply{body: feed("urn:1", "")}
			}
			_, err = client.Poll(t.Context(), feedURL, known)
			var unchanged *Unchanged
			require.ErrorAs(t, err, &unchanged)
			require.Equal(t, []string{feedURL + conditions}, s.took())
			require.Equal(t, etag, unchanged.Response.ETag, "those that a 304 does not repeat stay in force")
			require.Equal(t, date, unchanged.Response.LastModified)
		}
	}
}

// A 304 may give newer validators.
func TestPollNewValidators(t *testing.T) {
	s := &sites{replies: map[string]reply{feedURL: {status: 304, header: []string{`Etag: W/"2"`, "Cache-Control: max-age=60"}}}}
	_, err := s.client().Poll(t.Context(), feedURL, Known{ETag: `"1"`, LastModified: "then"})
	var unchanged *Unchanged
	require.ErrorAs(t, err, &unchanged)
	require.Equal(t, `"1"`, unchanged.Known.ETag)
	require.Equal(t, `W/"2"`, unchanged.Response.ETag)
	require.Equal(t, "then", unchanged.Response.LastModified)
	require.Equal(t, time.Minute, unchanged.Response.Fresh.Sub(unchanged.Response.Received))
}

// Validators are for the origin that they came from, on whichever hop that is.
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
			s := &sites{replies: map[string]reply{
				feedURL: redirect(302, test.other), test.other: {body: feed("urn:1", "")},
			}}
			doc, err := s.client().Poll(t.Context(), feedURL, Known{URL: test.from, ETag: `"1"`})
			require.NoError(t, err)
			require.Equal(t, test.want, s.took())
			require.Equal(t, test.other, doc.Known().URL)
			require.Equal(t, feedURL, doc.Response.Requested)
		})
	}
}

// What a document says of itself is there when it has not changed.
func TestKnown(t *testing.T) {
	s := &sites{replies: map[string]reply{feedURL: {
		header: []string{`Etag: "1"`}, body: feed("urn:1", `<link rel="prev-archive" href="archive"/>`),
	}}}
	doc, err := s.client().Get(t.Context(), feedURL)
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
		for _, final := range []reply{{body: feed("urn:1", "")}, {status: 304}} {
			s := &sites{replies: map[string]reply{}}
			url := func(i int) string { return "http://a.example/" + strconv.Itoa(i) }
			for i, status := range test.statuses {
				s.replies[url(i)] = redirect(status, url(i+1))
			}
			s.replies[url(len(test.statuses))] = final
			want := ""
			if test.want > 0 {
				want = url(test.want)
			}
			doc, err := s.client().Poll(t.Context(), url(0), Known{ETag: `"1"`})
			if final.status == 304 {
				var unchanged *Unchanged
				require.ErrorAs(t, err, &unchanged)
				require.Equal(t, want, unchanged.Response.Permanent, "%v", test.statuses)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, doc.Response.Permanent, "%v", test.statuses)
			require.Equal(t, url(len(test.statuses)), doc.URL)
		}
	}
}

// 410 is the end of a feed, unless a redirect for the time being led there.
func TestGone(t *testing.T) {
	for status, want := range map[int]bool{0: true, 301: true, 308: true, 302: false, 307: false} {
		s := &sites{replies: map[string]reply{feedURL: {status: 410}}}
		if status > 0 {
			s.replies = map[string]reply{feedURL: redirect(status, "/gone"), "http://a.example/gone": {status: 410}}
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
			var gone *StatusError
			require.ErrorAs(t, poll(s.client()), &gone)
			require.Equal(t, want, gone.Gone, "%d", status)
		}
	}
	s := &sites{replies: map[string]reply{feedURL: {status: 404}}}
	_, err := s.client().Get(t.Context(), feedURL)
	var status *StatusError
	require.ErrorAs(t, err, &status)
	require.False(t, status.Gone)
}

// A longer Retry-After than MaxWait is not slept through: the error says when.
// Until then the host is not asked, whoever asks.
func TestRetryAfterBeyondMaxWait(t *testing.T) {
	for _, header := range []string{"Retry-After: 3600", "Retry-After: Sat, 01 Jan 2000 01:00:00 GMT"} {
		for _, code := range []int{429, 503} {
			synctest.Test(t, func(t *testing.T) {
				s := &sites{replies: map[string]reply{feedURL: {status: code, header: []string{header}}}}
				client := s.client()
				client.Retry = Retry{}
				start := time.Now()
				_, err := client.Get(t.Context(), feedURL)
				var status *StatusError
				require.ErrorAs(t, err, &status)
				require.Equal(t, time.Hour, status.RetryAfter)
				require.True(t, start.Add(time.Hour).Equal(status.At))
				require.False(t, status.Remembered)
				require.Equal(t, []string{feedURL}, s.took())

				time.Sleep(time.Hour - time.Minute)
				_, err = client.Fetch(t.Context(), "http://a.example/other")
				require.ErrorAs(t, err, &status)
				require.True(t, status.Remembered)
				require.Equal(t, code, status.Status)
				require.True(t, start.Add(time.Hour).Equal(status.At))
				require.Empty(t, s.took(), "the host is left alone")

				time.Sleep(time.Minute)
				s.replies[feedURL] = reply{body: feed("urn:1", "")}
				_, err = client.Get(t.Context(), feedURL)
				require.NoError(t, err)
				require.True(t, start.Add(time.Hour).Equal(time.Now()))
			})
		}
	}
}

// An archive that is to be asked for later is a gap that says so; a short wait
// is none.
func TestRetryAfterOfAnArchive(t *testing.T) {
	for _, perHost := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			const archive = "http://a.example/archive"
			s := &sites{replies: map[string]reply{
				feedURL: {body: feed("urn:2", `<link rel="prev-archive" href="/archive"/>`)},
				archive: {status: 429, header: []string{"Retry-After: 3600"}},
			}}
			client := s.client()
			client.Policy.PerHost, client.Retry = perHost, Retry{}
			h, err := client.Fetch(t.Context(), feedURL)
			require.NoError(t, err)
			require.Len(t, h.Gaps, 1)
			require.Equal(t, ReasonStatus, h.Gaps[0].Reason)
			var status *StatusError
			require.ErrorAs(t, h.Gaps[0], &status)
			require.Equal(t, time.Hour, time.Until(status.At))
			require.Equal(t, []string{feedURL, archive}, s.took())

			time.Sleep(time.Hour)
			started, asked := time.Now(), 0
			client.HTTP.Transport.(*line).serve = func(r *http.Request) reply {
				if asked++; asked == 2 {
					return reply{status: 503, header: []string{"Retry-After: 10"}}
				}
				return reply{body: map[string]string{
					feedURL: s.replies[feedURL].body, archive: feed("urn:1", "<fh:archive/>"),
				}[r.URL.String()]}
			}
			h, err = client.Fetch(t.Context(), feedURL)
			require.NoError(t, err)
			require.Equal(t, Whole, h.Verdict())
			require.Equal(t, 10*time.Second, time.Since(started))
		})
	}
}
