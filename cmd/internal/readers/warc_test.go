package readers_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// warcOf returns a record of a WARC file.
func warcOf(kind, target, date, block string) string {
	return fmt.Sprintf("WARC/1.0\r\nWARC-Type: %s\r\nWARC-Target-URI: %s\r\nWARC-Date: %s\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", kind, target, date, len(block), block)
}

// answerOf returns an HTTP answer.
func answerOf(status, fields, body string) string {
	return "HTTP/1.1 " + status + "\r\nContent-Type: application/atom+xml\r\n" + fields + "\r\n" + body
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

func chunked(text string) string {
	half := len(text) / 2
	return fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", half, text[:half], len(text)-half, text[half:])
}

func writeWARC(t *testing.T, name, text string) string {
	name = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

const crawled = "2023-11-14T22:13:20Z"

// Answers are found among other records, however they are stored.
func TestWARC(t *testing.T) {
	const feed = "http://a.example/feed"
	records := []string{
		warcOf("warcinfo", "", crawled, "software: x"),
		warcOf("request", feed, crawled, "GET /feed HTTP/1.1\r\n\r\n"),
		warcOf("response", "<"+feed+">", crawled, answerOf("200 OK", "", document(feed, 9, 2))),
		warcOf("response", feed, crawled, answerOf("200 OK", "Transfer-Encoding: chunked\r\n", chunked(document(feed, 7, 2)))),
		warcOf("response", feed, crawled, answerOf("200 OK", "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", chunked(zipped(document(feed, 5, 2))))),
		warcOf("response", feed, crawled, answerOf("200 OK", "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n", document(feed, 3, 2))),
		warcOf("response", feed, crawled, answerOf("404 Not Found", "", document(feed, 20, 2))),
		warcOf("revisit", feed, crawled, answerOf("200 OK", "", document(feed, 20, 2))),
		warcOf("response", "http://a.example/page", crawled, answerOf("200 OK", "", "<html>a page, not a <feed></html>")),
		warcOf("response", "dns:a.example", crawled, document(feed, 20, 2)),
		warcOf("response", "http://a.example/x.png", crawled, "HTTP/1.1 200 OK\r\n\r\n\x89PNG"),
		warcOf("response", "http://b.example/other", crawled, answerOf("200 OK", "", document("http://b.example/other", 30, 1))),
		warcOf("response", "http://evil.example/feed", crawled, answerOf("200 OK", "", document(feed, 40, 1))),
		warcOf("metadata", feed, crawled, "x"),
	}
	plain, each := strings.Join(records, ""), ""
	for _, record := range records {
		each += zipped(record)
	}
	for name, text := range map[string]string{"a.warc": plain, "each.warc.gz": each, "all.warc.gz": zipped(plain)} {
		file := writeWARC(t, name, text)
		r := imported(t, source(t, "warc", file, feed), nil, "")
		require.NoError(t, r.err, name)
		require.Empty(t, r.damaged, name)
		require.Len(t, r.entries, 8, name)
		require.Equal(t, "warc", r.entries["Entry 2"].Copy.Source)
		require.Len(t, imported(t, source(t, "warc", file), nil, "").entries, 10, "of all feeds, each its own")
		r = imported(t, source(t, "warc", file, file, "http://b.example/other"), nil, "")
		require.Len(t, r.entries, 1, "two files, one feed")
	}
}

// The documents of an archived or paged feed belong to it, whatever their order, and so do the
// pages of software that declares none. The newest copy counts.
func TestWARCDocuments(t *testing.T) {
	page := func(at, head, entry, updated string) string {
		return warcOf("response", at, crawled, answerOf("200 OK", "Last-Modified: "+updated+"\r\n",
			`<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom"><channel><title>A</title>`+head+`<item><guid>`+entry+`</guid><title>`+entry+` `+updated+`</title></item></channel></rss>`))
	}
	const older, newer = "Mon, 02 Jan 2006 15:04:05 GMT", "Tue, 03 Jan 2006 15:04:05 GMT"
	file := writeWARC(t, "a.warc", page("http://a.example/archive/1", `<a:link rel="current" href="http://a.example/feed"/>`, "one", newer)+
		page("http://a.example/feed?paged=2", `<a:link rel="self" href="http://a.example/feed?paged=2"/>`, "two", newer)+
		page("http://a.example/feed", `<a:link rel="prev-archive" href="http://cdn.example/2"/>`, "three", newer)+
		page("http://cdn.example/2", "", "four", newer)+
		page("https://a.example/feed/", "", "three", older))
	for _, feeds := range [][]string{nil, {"http://a.example/feed"}} {
		r := imported(t, source(t, "warc", append([]string{file}, feeds...)...), nil, "")
		require.NoError(t, r.err)
		f, err := r.store.Feed(t.Context(), "http://a.example/feed")
		require.NoError(t, err)
		require.Equal(t, int64(3+len(feeds)), f.Entries, "an archive at another host belongs to a given feed only")
		require.Contains(t, r.entries, "three "+newer)
	}
}

// What is before damage is kept, and the place of the damage is said.
func TestWARCDamage(t *testing.T) {
	const feed = "http://a.example/feed"
	good := warcOf("response", feed, crawled, answerOf("200 OK", "", document(feed, 9, 2)))
	for text, want := range map[string]string{
		good + good[:len(good)/2]:                                        fmt.Sprintf("record 2, which begins at byte %d: the file ends within it", len(good)),
		good + good[:30]:                                                 "record 2, which begins at byte .*: the file ends within it",
		good + "nonsense\r\n\r\n":                                        "record 2, .*: this is not the beginning of a record",
		good + "WARC/1.0\r\n\r\n":                                        `record 2, .*: its length is ""`,
		good + "WARC/1.0\r\nContent-Length: -1\r\n\r\n":                  `record 2, .*: its length is "-1"`,
		good + "WARC/1.0\r\n" + strings.Repeat("X: y\r\n", 20_000):       "record 2, .*: its header has more than 65536 bytes",
		good + "WARC/1.0\r\nX: " + strings.Repeat("y", 100_000) + "\r\n": "record 2, .*: its header has more than 65536 bytes",
		zipped(good) + zipped(good)[:100]:                                "record 2, .*: the file ends within it",
		zipped(good) + "\x1f\x8bnonsense":                                "record [12], .*",
		good + warcOf("response", feed, crawled, answerOf("200 OK", "", document(feed, 8, 2)[:300])):        "record 2: .*(truncated|ends)",
		good + warcOf("response", feed, crawled, answerOf("200 OK", "", zipped(document(feed, 8, 2))[:40])): "record 2: unexpected EOF",
	} {
		name := "a.warc"
		if strings.HasPrefix(text, "\x1f") {
			name += ".gz"
		}
		r := imported(t, source(t, "warc", writeWARC(t, name, text), feed), nil, "")
		require.NoError(t, r.err)
		require.Contains(t, r.entries, "Entry 9", want)
		require.NotEmpty(t, r.damaged, want)
		require.Regexp(t, `a\.warc(\.gz)?: `+want, r.damaged[len(r.damaged)-1])
	}
	s, err := readers.NewSource("warc", []string{writeWARC(t, "a.warc", ""), feed})
	require.NoError(t, err)
	r := imported(t, s, nil, "")
	require.NoError(t, r.err)
	require.Empty(t, r.entries)
}

// A real file, of wget.
func TestWARCOfWget(t *testing.T) {
	wget, err := exec.LookPath("wget")
	if err != nil {
		t.Skip("wget is not installed")
	}
	var feed string
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := document(feed, 5, 3)
		if r.URL.Path == "/2" {
			text = document(feed, 2, 3)
		} else {
			text = strings.Replace(text, "<updated>", `<link rel="prev-archive" href="/2"/><updated>`, 1)
		}
		w.Header().Set("Content-Type", "application/atom+xml")
		if r.URL.RawQuery == "zip" {
			w.Header().Set("Content-Encoding", "gzip")
			text = zipped(text)
		}
		_, _ = w.Write([]byte(text[:10]))
		w.(http.Flusher).Flush() // in chunks
		_, _ = w.Write([]byte(text[10:]))
	}))
	feed = server.URL + "/feed"
	for _, args := range [][]string{{"--no-warc-compression"}, {}, {"--compression=gzip"}} {
		dir := t.TempDir()
		out, err := exec.Command(wget, append(args, "-q", "--no-config", "--warc-file="+filepath.Join(dir, "it"), "-O", os.DevNull, feed, server.URL+"/2?zip")...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		files, _ := filepath.Glob(filepath.Join(dir, "it.warc*"))
		require.Len(t, files, 1)
		r := imported(t, source(t, "warc", files[0], feed), nil, "")
		require.NoError(t, r.err)
		require.Empty(t, r.damaged)
		require.Len(t, r.entries, 6)
	}
}

func FuzzWARC(f *testing.F) {
	const feed = "http://a.example/feed"
	for _, block := range []string{
		answerOf("200 OK", "", document(feed, 3, 2)),
		answerOf("200 OK", "Transfer-Encoding: chunked\r\n", chunked(zipped(document(feed, 3, 2)))),
		"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\n\r\n\x1f\x8b",
	} {
		record := warcOf("response", feed, crawled, block)
		f.Add([]byte(record + record))
		f.Add([]byte(zipped(record) + zipped(record)))
		f.Add([]byte(record[:len(record)/2]))
	}
	f.Add([]byte("WARC/1.0\r\nContent-Length: 9223372036854775807\r\n\r\nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "a.warc")
		require.NoError(t, os.WriteFile(name, data, 0o600))
		s, err := readers.NewSource("warc", []string{name})
		require.NoError(t, err)
		documents := 0
		err = s.Read(t.Context(), nil, "", func(found readers.Item) error {
			if found.Document != nil {
				documents++
			}
			require.True(t, found.Document == nil || found.Feed != "", "a document has a feed")
			return nil
		})
		require.NoError(t, err)
		require.LessOrEqual(t, documents, len(data)/10)
	})
}
