package fetch

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	head    = "HTTP/1.1 200 OK\r\n"
	chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
	gzipped = head + "Content-Encoding: gzip\r\n\r\n"
	zstded  = head + "Content-Encoding: zstd\r\n\r\n"
)

// faults are what a server can do to a client, the outcome, and the longest time until that: the
// exact time if a timeout ends it.
var faults = []struct {
	name  string
	serve func(net.Conn)
	want  string
	took  time.Duration
}{
	// Time.
	{"first byte late but in time", late(19*time.Second, ok("x")), "ok 200", 19 * time.Second},
	{"first byte too late", late(time.Hour, ok("x")), "do: timeout headers", 20 * time.Second},
	{"headers dripped", drip("", ok("x"), time.Second), "do: timeout headers", 20 * time.Second},
	{"body dripped", drip(head+"\r\n", block[:1000], 10*time.Second), "read: timeout body", 60 * time.Second},
	{"gzip dripped", drip(gzipped, gzipOf(noise(1000)), 10*time.Second), "read: timeout body", 60 * time.Second},
	{"body stalls at once", stall(ok("x")[:len(ok("x"))-1]), "read: timeout idle", 15 * time.Second},
	{"body stalls midway", stall(ok("0123456789")[:len(ok("0123456789"))-5]), "read: timeout idle", 15 * time.Second},
	{"chunk stalls", stall(chunked + "5\r\nab"), "read: timeout idle", 15 * time.Second},
	{"gzip header stalls", stall(gzipped + "\x1f\x8b"), "read: timeout idle", 15 * time.Second},
	{"zstd header stalls", stall(zstded + "\x28\xb5"), "read: timeout idle", 15 * time.Second},
	{"error body stalls", stall("HTTP/1.1 404 Not Found\r\n\r\nx"), "do: status 404", time.Second},

	// Broken off.
	{"closed at once", func(net.Conn) {}, "do: network", 0},
	{"closed in the headers", says(head + "Content-Le"), "do: network", 0},
	{"closed before the body", says(head + "Content-Length: 5\r\n\r\n"), "read: truncated", 0},
	{"closed in the body", says(head + "Content-Length: 5\r\n\r\nabc"), "read: truncated", 0},
	// Nothing in HTTP tells this one from a whole body: the parser has to.
	{"closed in a body of unknown length", says(head + "\r\nabc"), "ok 200", 0},
	{"closed in a chunk", says(chunked + "5\r\nabc"), "read: truncated", 0},
	{"closed between chunks", says(chunked + "3\r\nabc\r\n"), "read: truncated", 0},
	{"closed before the last line", says(chunked + "3\r\nabc\r\n0\r\n"), "read: truncated", 0},

	// Malformed.
	{"not HTTP", says("SSH-2.0-OpenSSH_9.9\r\n"), "do: network", 0},
	{"chunk size no number", says(chunked + "x\r\nabc\r\n0\r\n\r\n"), "read: truncated", 0},
	{"chunk size negative", says(chunked + "-1\r\nabc\r\n0\r\n\r\n"), "read: truncated", 0},
	{"chunk size huge", says(chunked + "fffffffffffffffff\r\nabc\r\n0\r\n\r\n"), "read: truncated", 0},
	{"chunk without its end", says(chunked + "3\r\nabcdef\r\n0\r\n\r\n"), "read: truncated", 0},
	{"length too long", says(head + "Content-Length: 9\r\n\r\nabc"), "read: truncated", 0},
	{"length too short", says(head + "Content-Length: 2\r\n\r\nabc"), "ok 200", 0},
	{"length no number", says(head + "Content-Length: two\r\n\r\nabc"), "do: network", 0},
	{"lengths that differ", says(head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc"), "do: network", 0},

	// Endless.
	{"endless header lines", forever(head, "X: y\r\n"), "do: limit headers", 0},
	{"endless header line", forever(head+"X: ", "yyyyyyyyyyyyyyyyyyyy"), "do: limit headers", 0},
	{"endless status line", forever("HTTP/1.1 200 ", "yyyyyyyyyyyyyyyyyyyy"), "do: limit headers", 0},
	{"endless early hints", forever("", "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"), "do: limit headers", 0},
	{"endless body", forever(head+"\r\n", block), "read: limit bytes", 0},
	{"endless chunks", forever(chunked, "1000\r\n"+block[:0x1000]+"\r\n"), "read: limit bytes", 0},
	{"endless small chunks", forever(chunked, strings.Repeat("20\r\n"+block[:32]+"\r\n", 1000)), "read: limit bytes", 0},
	{"endless chunk extension", forever(chunked+"1;", "xxxxxxxxxxxxxxxx"), "read: truncated", 0},
	{"endless trailer", forever(chunked+"0\r\n", "X: y\r\n"), "read: truncated", 0},
	{"endless error body", forever("HTTP/1.1 500 No\r\n\r\n", block), "do: status 500", 0},
	{"announced too large", says(head + "Content-Length: 99999999\r\n\r\n"), "do: limit bytes", 0},

	// Encodings.
	{"gzip bomb", says(gzipped + gzipOf(zeros(64<<20))), "read: limit ratio", 0},
	{"zstd bomb", says(zstded + zstdOf(zeros(64<<20))), "read: limit ratio", 0},
	{"gzip of the largest size", says(gzipped + gzipOf(noise(16<<20))), "ok 200", 0},
	{"gzip one byte larger", says(gzipped + gzipOf(noise(16<<20+1))), "read: limit bytes", 0},
	{"zstd of the largest size", says(zstded + zstdOf(noise(16<<20))), "ok 200", 0},
	{"zstd one byte larger", says(zstded + zstdOf(noise(16<<20+1))), "read: limit bytes", 0},
	{"zstd window too large", says(zstded + "\x28\xb5\x2f\xfd\x00\xa8" + "\x01\x00\x00"), "read: limit window", 0},
	{"endless empty gzip members", forever(gzipped, member), "read: limit wire", 0},
	{"endless skippable zstd frames", forever(zstded, skippable), "read: limit wire", 0},
	{"gzip twice in a row", says(gzipped + gzipOf([]byte("a")) + gzipOf([]byte("b"))), "ok 200", 0},
	{"gzip cut", says(gzipped + gzipOf(noise(1000))[:500]), "read: truncated", 0},
	{"gzip cut in its checksum", says(gzipped + strings.TrimSuffix(gzipOf([]byte("abc")), "\x00")), "read: truncated", 0},
	{"gzip empty", says(gzipped), "read: truncated", 0},
	{"gzip that is not", says(gzipped + "<feed/> and more than ten bytes"), "read: corrupt gzip", 0},
	{"gzip with a wrong checksum", says(gzipped + flip(gzipOf([]byte("abc")), -8)), "read: corrupt gzip", 0},
	{"gzip corrupt", says(gzipped + flip(gzipOf(bytes.Repeat([]byte("abc"), 9)), 10)), "read: corrupt gzip", 0},
	{"gzip, then zeros", says(gzipped + gzipOf([]byte("abc")) + "\x00\x00\x00"), "ok 200", 0},
	{"gzip, then a page", says(gzipped + gzipOf([]byte("abc")) + "<!-- 0.1 s -->"), "ok 200", 0},
	{"gzip, then garbage without end", forever(gzipped+gzipOf([]byte("abc")), block), "ok 200", 0},
	{"gzip twice, then zeros", says(gzipped + gzipOf([]byte("a")) + gzipOf([]byte("b")) + "\x00"), "ok 200", 0},
	{"gzip, then a member that is cut", says(gzipped + gzipOf([]byte("abc")) + "\x1f\x8b"), "read: truncated", 0},
	{"gzip, then a member that is corrupt", says(gzipped + gzipOf([]byte("abc")) + flip(gzipOf([]byte("abc")), -8)), "read: corrupt gzip", 0},
	{"gzip with a wrong checksum, then zeros", says(gzipped + flip(gzipOf([]byte("abc")), -8) + "\x00\x00"), "read: corrupt gzip", 0},
	{"gzip cut, then nothing of what was announced", says(head + "Content-Encoding: gzip\r\nContent-Length: 99\r\n\r\n" + gzipOf([]byte("abc"))), "read: truncated", 0},
	{"zstd, then zeros", says(zstded + zstdOf([]byte("abc")) + "\x00\x00\x00\x00"), "ok 200", 0},
	{"zstd twice", says(zstded + zstdOf([]byte("a")) + zstdOf([]byte("b"))), "ok 200", 0},
	{"zstd cut", says(zstded + zstdOf(noise(1000))[:500]), "read: truncated", 0},
	{"zstd that is not", says(zstded + "<feed/> and more than ten bytes"), "read: corrupt zstd", 0},
	{"zstd with a wrong checksum", says(zstded + flip(zstdOf(noise(100)), -1)), "read: corrupt zstd", 0},
	{"x-gzip", says(ok(gzipOf([]byte("a")), "Content-Encoding: X-GZip")), "ok 200", 0},
	{"identity", says(ok("a", "Content-Encoding: identity")), "ok 200", 0},
	{"gzip of gzip", says(ok(gzipOf([]byte(gzipOf([]byte("a")))), "Content-Encoding: gzip, gzip")), "ok 200", 0},
	{"gzip of gzip, cut", says(ok(gzipOf([]byte(gzipOf(noise(1000))[:500])), "Content-Encoding: gzip, gzip")), "read: truncated", 0},
	{"gzip of gzip bomb", says(ok(gzipOf([]byte(gzipOf(zeros(64<<20)))), "Content-Encoding: gzip, gzip")), "read: limit ratio", 0},
	{"gzip three times", says(ok("a", "Content-Encoding: gzip, gzip, gzip")), "do: encoding gzip, gzip, gzip", 0},
	{"gzip undeclared", says(ok(gzipOf([]byte("a")))), "ok 200", 0},
	{"gzip undeclared, cut", says(ok(gzipOf(noise(1000))[:500])), "read: truncated", 0},
	{"gzip undeclared bomb", says(ok(gzipOf(zeros(64 << 20)))), "read: limit ratio", 0},
	{"deflate", says(ok("\x78\x9c\x4b\x04\x00\x00\x62\x00\x62", "Content-Encoding: deflate")), "ok 200", 0},
	{"deflate, cut", says(ok("\x78\x9c\x4b\x04", "Content-Encoding: deflate")), "read: truncated", 0},
	{"deflate without zlib", says(ok("\x4b\x04\x00", "Content-Encoding: deflate")), "ok 200", 0},
	{"a charset", says(ok("a", "Content-Encoding: UTF-8")), "ok 200", 0},
	{"none", says(ok("a", "Content-Encoding: none")), "ok 200", 0},
	{"binary, and gzip", says(ok(gzipOf([]byte("a")), "Content-Encoding: binary, gzip")), "ok 200", 0},
	{"stacked in two lines", says(ok("a", "Content-Encoding: gzip", "Content-Encoding: zstd")), "do: encoding gzip, zstd", 0},
	{"unknown", says(ok("a", "Content-Encoding: br")), "do: encoding br", 0},

	// Statuses.
	{"no content", says("HTTP/1.1 204 No Content\r\n\r\n"), "ok 204", 0},
	{"a part nobody asked for", says("HTTP/1.1 206 Partial Content\r\nContent-Length: 1\r\n\r\nx"), "do: status 206", 0},
	{"other protocol", says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), "do: status 101", 0},
	{"304 to an unconditional request", says(status(304)), "do: status 304", 0},
	{"300", says(status(300, "Location: /b")), "do: status 300", 0},
	{"305", says(status(305, "Location: /b")), "do: status 305", 0},
	{"gone", says(status(410)), "do: status 410", 0},
	{"too many requests", says(status(429)), "do: status 429", 0},
	{"unavailable", says(status(503)), "do: status 503", 0},
	{"status of three nines", says("HTTP/1.1 999 Go Away\r\n\r\n"), "do: status 999", 0},
}

// TestFaults checks that the outcome of each fault has a type, comes in time, and needs little
// memory.
func TestFaults(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.serve("example.org", fault.serve)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				got, _ := outcome(w.client(), Request{URL: "http://example.org/"})
				assert.Equal(t, fault.want, got)
				assert.Equal(t, fault.took, time.Since(start))
				runtime.ReadMemStats(&after)
				assert.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(32), "MiB allocated")
			})
		})
	}
}

// TestCutAnywhere cuts answers after each byte: none that says where it ends passes as complete.
func TestCutAnywhere(t *testing.T) {
	doc := strings.Repeat("<entry>content</entry>", 4)
	whole := map[string]string{
		"length":  ok(doc),
		"chunked": chunked + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(doc), doc),
		"gzip":    gzipped + gzipOf([]byte(doc)),
		"zstd":    zstded + zstdOf([]byte(doc)),
	}
	for name, text := range whole {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				for cut := range len(text) {
					w.serve("example.org", says(text[:cut]))
					got, n := outcome(w.client(), Request{URL: "http://example.org/"})
					body := cut >= strings.Index(text, "\r\n\r\n")+4
					require.Equal(t, body, got == "read: truncated", "cut at %d: %s", cut, got)
					require.Equal(t, !body, got == "do: network", "cut at %d: %s", cut, got)
					require.LessOrEqual(t, n, int64(len(doc)))
				}
				w.serve("example.org", says(text))
				got, n := outcome(w.client(), Request{URL: "http://example.org/"})
				assert.Equal(t, "ok 200", got)
				assert.EqualValues(t, len(doc), n)
			})
		})
	}
}

// TestReset uses a real connection, because a pipe cannot be reset.
func TestReset(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "network",
		head + "Content-Le":                   "network",
		head + "Content-Length: 9\r\n\r\nabc": "truncated",
		head + "\r\nabc":                      "truncated", // unlike a close
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		read := make(chan struct{}) // a reset overtakes what has not been read
		go func() {
			if conn, err := l.Accept(); err == nil {
				says(text)(conn)
				if want == "truncated" {
					<-read
				}
				conn.(*net.TCPConn).SetLinger(0)
				conn.Close()
			}
		}()
		c := &Client{AllowPrivate: true, Tries: 1}
		resp, err := c.Do(t.Context(), Request{URL: "http://" + l.Addr().String()})
		close(read)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		assert.Equal(t, want, describe(err), "%q", text)
		c.CloseIdle()
		l.Close()
	}
}

// TestHangingDial covers the steps before the request is sent.
func TestHangingDial(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.serve("example.org:443", func(conn net.Conn) { io.Copy(io.Discard, conn) })
		start := time.Now()
		got, _ := outcome(w.client(), Request{URL: "https://example.org/"})
		assert.Equal(t, "do: timeout tls", got)
		assert.Equal(t, 10*time.Second, time.Since(start))

		c := w.client()
		c.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		start = time.Now()
		got, _ = outcome(c, Request{URL: "https://example.org/"})
		assert.Equal(t, "do: timeout connect", got)
		assert.Equal(t, 5*time.Second, time.Since(start))
	})
}

// late reads a request and answers after some time.
func late(d time.Duration, text string) func(net.Conn) {
	return func(conn net.Conn) {
		says("")(conn)
		pause(conn, d)
		io.WriteString(conn, text)
	}
}

// drip writes the head at once and the rest byte by byte.
func drip(head, rest string, each time.Duration) func(net.Conn) {
	return func(conn net.Conn) {
		says(head)(conn)
		for i := range len(rest) {
			if _, err := io.WriteString(conn, rest[i:i+1]); err != nil {
				return
			}
			pause(conn, each)
		}
	}
}

// stall writes a text and then nothing until the client hangs up.
func stall(text string) func(net.Conn) {
	return func(conn net.Conn) {
		says(text)(conn)
		io.Copy(io.Discard, conn)
	}
}

// pause waits, unless the client hangs up.
func pause(conn net.Conn, d time.Duration) {
	conn.SetReadDeadline(time.Now().Add(d))
	io.Copy(io.Discard, conn)
	conn.SetReadDeadline(time.Time{})
}

var (
	block     = strings.Repeat("x", 64<<10)
	member    = "\x1f\x8b\x08\x10\x00\x00\x00\x00\x00\x00" + block[:400] + "\x00" + gzipOf(nil)[10:]
	skippable = "\x50\x2a\x4d\x18" + string(binary.LittleEndian.AppendUint32(nil, 4096)) + block[:4096]
)

func zeros(n int) []byte { return make([]byte, n) }

// noise returns bytes that hardly compress.
func noise(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func gzipOf(b []byte) string {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	z.Write(b)
	z.Close()
	return buf.String()
}

func zstdOf(b []byte) string {
	z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	return string(z.EncodeAll(b, nil))
}

// flip inverts one byte, counted from the end if i is negative.
func flip(s string, i int) string {
	b := []byte(s)
	b[(i+len(b))%len(b)] ^= 0xff
	return string(b)
}

// TestTrailing reads the whole of each stream, whatever follows it, in steps of any size.
func TestTrailing(t *testing.T) {
	a, b := noise(3000), noise(2000)
	want := append(append([]byte(nil), a...), b...)
	for name, encoded := range map[string]string{
		"gzip":                 gzipped + gzipOf(a) + gzipOf(b),
		"gzip, empty member":   gzipped + gzipOf(a) + gzipOf(nil) + gzipOf(b),
		"gzip, zeros":          gzipped + gzipOf(a) + gzipOf(b) + string(zeros(5000)),
		"gzip, one byte":       gzipped + gzipOf(a) + gzipOf(b) + "\n",
		"gzip, zeros, a third": gzipped + gzipOf(a) + gzipOf(b) + "\x00" + gzipOf(a),
		"zstd, garbage":        zstded + zstdOf(a) + zstdOf(b) + "garbage",
	} {
		for _, step := range []int{1, 7, 3000, 5000, 10000} {
			bubble(t, func(t *testing.T, w *world) {
				w.serve("a", says(encoded))
				c := w.client()
				for range 2 { // the second time with the decoder of the first
					resp, err := c.Do(context.Background(), Request{URL: "http://a/"})
					require.NoError(t, err)
					got, err := io.ReadAll(inSteps(resp.Body, step))
					require.NoError(t, err, name)
					require.True(t, bytes.Equal(want, got), "%s in steps of %d: %d bytes", name, step, len(got))
					require.NoError(t, resp.Body.Close())
				}
			})
		}
	}
}

// inSteps is a reader that returns at most step bytes at once.
func inSteps(r io.Reader, step int) io.Reader {
	return readerFunc(func(p []byte) (int, error) { return r.Read(p[:min(len(p), step)]) })
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
