package fetch

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestLog reads the events of a few fetches as a person would.
func TestLog(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		packed := gzipOf([]byte("decoded"))
		d := &diary{texts: []string{
			to(301, "/b"), status(503, "Retry-After: 5"), to(301, "/b"), ok("body"),
			ok(packed, "Content-Encoding: gzip"), ok(packed+"\x00", "Content-Encoding: gzip"),
			head + "Content-Length: 9\r\n\r\nshort",
		}}
		w.serve("a", answers(func(conn net.Conn, r *http.Request) {
			d.answer(conn, r)
			if len(d.times) == len(d.texts) {
				conn.Close()
			}
		}))
		var buf bytes.Buffer
		c := w.client()
		c.Tries = 0
		c.Public = func(f *Failure) error { return fmt.Errorf("public %s", f.Kind) }
		c.Logger = slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{
			Level: slog.LevelDebug,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
					return slog.Attr{}
				}
				return a
			},
		}))
		c.Secrets = func(*url.URL) http.Header { return http.Header{"Authorization": {"Bearer SECRET"}} }
		outcome(c, Request{URL: "http://a/"})
		outcome(c, Request{URL: "http://a/c", ETag: "x"})
		outcome(c, Request{URL: "http://a/z"})
		outcome(c, Request{URL: "http://a/d"})
		outcome(c, Request{URL: "http://SECRET@a/"})
		assert.Equal(t, strings.TrimLeft(`
msg=request url=http://a/ method=GET conditional=false
msg=answer url=http://a/ status=301 duration=0s
msg=redirect url=http://a/ to=http://a/b status=301
msg=request url=http://a/b method=GET conditional=false
msg=answer url=http://a/b status=503 duration=0s
msg=retry url=http://a/ try=1 wait=5s error="public status"
msg=request url=http://a/ method=GET conditional=false
msg=answer url=http://a/ status=301 duration=0s
msg=redirect url=http://a/ to=http://a/b status=301
msg=request url=http://a/b method=GET conditional=false
msg=answer url=http://a/b status=200 duration=0s
msg=body url=http://a/b bytes=4 wire=4 duration=0s
msg=request url=http://a/c method=GET conditional=true
msg=answer url=http://a/c status=200 duration=0s
msg=body url=http://a/c bytes=7 wire=`+strconv.Itoa(len(packed))+` duration=0s
msg=request url=http://a/z method=GET conditional=false
msg=answer url=http://a/z status=200 duration=0s
msg=body url=http://a/z bytes=7 wire=`+strconv.Itoa(len(packed)+1)+` duration=0s trailing=true
msg=request url=http://a/d method=GET conditional=false
msg=answer url=http://a/d status=200 duration=0s
msg=body url=http://a/d bytes=5 wire=5 duration=0s error="public truncated"
msg=refusal url=http://a/ rule=userinfo error="public refused"
`, "\n"), buf.String())
	})
}

// TestLogWait makes a second request wait because of the answer to the first.
func TestLogWait(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &diary{texts: []string{status(429, "Retry-After: 5"), ok("x")}}
		w.serve("a", answers(d.answer))
		var buf bytes.Buffer
		c := w.client()
		c.Logger = slog.New(slog.NewTextHandler(&buf, nil))
		outcome(c, Request{URL: "http://a/"})
		outcome(c, Request{URL: "http://a/"})
		assert.Regexp(t, `(?s)^\S+ level=INFO msg=failure url=http://a/ error=.*\n\S+ level=INFO msg=wait host=a wait=5s\n$`, buf.String())
	})
}
