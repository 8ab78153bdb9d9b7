package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A peer is a server's end of a connection of HTTP/2 that need not obey the protocol.
type peer struct {
	conn net.Conn
	mu   sync.Mutex // for the frames
	*http2.Framer
}

// write writes a frame. It reports whether the client still listens.
func (p *peer) write(frame func(*http2.Framer) error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return frame(p.Framer) == nil
}

// flood writes a frame twenty times a second, until the client hangs up.
func (p *peer) flood(frame func(*http2.Framer) error) {
	for p.write(frame) {
		time.Sleep(50 * time.Millisecond)
	}
}

// gush writes a body as fast as it can, and reports whether the client hangs up before a
// gigabyte. It has an end, since the clock of a bubble stands still meanwhile.
func (p *peer) gush(stream uint32) bool {
	for range 1 << 16 {
		if !p.data(stream, false, block[:16<<10]) {
			return true
		}
	}
	return false
}

// headers writes the header fields of an answer, given as names and values.
func (p *peer) headers(stream uint32, end bool, fields ...string) bool {
	return p.write(func(f *http2.Framer) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: encoded(fields...), EndHeaders: true, EndStream: end})
	})
}

// unfinished writes a header block without its end.
func (p *peer) unfinished(stream uint32, fields ...string) bool {
	return p.write(func(f *http2.Framer) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: encoded(fields...)})
	})
}

func (p *peer) data(stream uint32, end bool, text string) bool {
	return p.write(func(f *http2.Framer) error { return f.WriteData(stream, end, []byte(text)) })
}

// encoded returns a header block.
func encoded(fields ...string) []byte {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true}) // in no table
	}
	return block.Bytes()
}

// serveHTTP2 returns a server that calls attack for each request, and counts the requests.
func serveHTTP2(certificate tls.Certificate, requests *atomic.Int64, attack func(p *peer, stream uint32)) func(net.Conn) {
	return func(conn net.Conn) {
		secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}})
		if _, err := io.ReadFull(secure, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		p := &peer{conn: conn, Framer: http2.NewFramer(secure, secure)}
		p.AllowIllegalWrites = true
		var attacks sync.WaitGroup
		defer attacks.Wait()
		defer conn.Close()
		if !p.write(func(f *http2.Framer) error { return f.WriteSettings() }) {
			return
		}
		for {
			f, err := p.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.HeadersFrame:
				requests.Add(1)
				stream := f.StreamID
				attacks.Go(func() { attack(p, stream) })
			case *http2.PingFrame:
				if data := f.Data; !f.IsAck() {
					attacks.Go(func() { p.write(func(f *http2.Framer) error { return f.WritePing(true, data) }) })
				}
			}
		}
	}
}

// reset is an answer by RST_STREAM.
func reset(code http2.ErrCode) func(*peer, uint32) {
	return func(p *peer, stream uint32) {
		p.write(func(f *http2.Framer) error { return f.WriteRSTStream(stream, code) })
	}
}

// goAway is an answer by GOAWAY.
func goAway(last uint32, code http2.ErrCode) func(*peer, uint32) {
	return func(p *peer, _ uint32) {
		p.write(func(f *http2.Framer) error { return f.WriteGoAway(last, code, nil) })
	}
}

// flooded is an answer with one frame again and again.
func flooded(frame func(f *http2.Framer, stream uint32) error) func(*peer, uint32) {
	return func(p *peer, stream uint32) { p.flood(func(f *http2.Framer) error { return frame(f, stream) }) }
}

// answered is an attack after the header fields of an answer and a part of its body.
func answered(attack func(*peer, uint32), fields ...string) func(*peer, uint32) {
	return func(p *peer, stream uint32) {
		if p.headers(stream, false, append([]string{":status", "200"}, fields...)...) && p.data(stream, false, "abc") {
			attack(p, stream)
		}
	}
}

var (
	pings = flooded(func(f *http2.Framer, _ uint32) error { return f.WritePing(false, [8]byte{}) })
	empty = flooded(func(f *http2.Framer, stream uint32) error { return f.WriteData(stream, false, nil) })
	many  = strings.Repeat("x", 1000)
)

// attacks are the answers of hostile servers of HTTP/2, their outcome, and the number of
// requests, of which a client makes three if each may be repeated.
var attacks = []struct {
	name     string
	attack   func(p *peer, stream uint32)
	want     string
	requests int64
}{
	// Refusals.
	{"GOAWAY", goAway(0, http2.ErrCodeNo), "do: network", 3},
	{"GOAWAY for a flood", goAway(0, http2.ErrCodeEnhanceYourCalm), "do: network", 3},
	{"GOAWAY, the stream included, and no more", goAway(1<<31-1, http2.ErrCodeNo), "do: timeout headers", 3},
	{"GOAWAY without end", flooded(func(f *http2.Framer, _ uint32) error { return f.WriteGoAway(0, http2.ErrCodeNo, nil) }), "do: network", 3},
	{"GOAWAY without end, as long as can be", flooded(func(f *http2.Framer, _ uint32) error {
		return f.WriteGoAway(1<<31-1, http2.ErrCodeNo, []byte(block[:16<<10-8]))
	}), "do: timeout headers", 3},
	{"GOAWAY in a body", answered(goAway(0, http2.ErrCodeNo)), "read: truncated", 1},
	{"REFUSED_STREAM", reset(http2.ErrCodeRefusedStream), "do: network", 3},
	{"PROTOCOL_ERROR", reset(http2.ErrCodeProtocol), "do: network", 3},
	{"CANCEL", reset(http2.ErrCodeCancel), "do: network", 3},
	{"NO_ERROR", reset(http2.ErrCodeNo), "do: network", 3},
	{"reset in a body", answered(reset(http2.ErrCodeInternal)), "read: truncated", 1},
	{"REFUSED_STREAM in a body", answered(reset(http2.ErrCodeRefusedStream)), "read: truncated", 1},
	{"resets without end", flooded(func(f *http2.Framer, stream uint32) error {
		return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
	}), "do: network", 3},
	{"hanging up", func(p *peer, _ uint32) { p.conn.Close() }, "do: network", 3},

	// Floods.
	{"nothing", func(*peer, uint32) {}, "do: timeout headers", 3},
	{"SETTINGS", flooded(func(f *http2.Framer, _ uint32) error { return f.WriteSettings() }), "do: timeout headers", 3},
	{"SETTINGS, acknowledged", flooded(func(f *http2.Framer, _ uint32) error { return f.WriteSettingsAck() }), "do: network", 3},
	{"SETTINGS of 16 KiB", flooded(func(f *http2.Framer, _ uint32) error {
		return f.WriteSettings(bytesOf(http2.Setting{ID: 0xff, Val: 1}, 16<<10/6)...)
	}), "do: timeout headers", 3},
	{"PING", pings, "do: timeout headers", 3},
	{"PING in a body", answered(pings), "read: timeout idle", 1},
	{"PRIORITY", flooded(func(f *http2.Framer, stream uint32) error { return f.WritePriority(stream, http2.PriorityParam{}) }), "do: timeout headers", 3},
	{"WINDOW_UPDATE", flooded(func(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(0, 1) }), "do: timeout headers", 3},
	{"WINDOW_UPDATE beyond the largest", flooded(func(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(0, 1<<31-1) }), "do: network", 3},
	{"unknown frames", flooded(func(f *http2.Framer, stream uint32) error {
		return f.WriteRawFrame(0xbe, 0, stream, []byte(block[:16<<10]))
	}), "do: timeout headers", 3},
	{"empty DATA", answered(empty), "read: timeout idle", 1},
	{"padding", answered(flooded(func(f *http2.Framer, stream uint32) error {
		return f.WriteDataPadded(stream, false, nil, make([]byte, 255))
	})), "read: timeout idle", 1},
	{"no stream allowed", func(p *peer, stream uint32) {
		p.write(func(f *http2.Framer) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
		})
	}, "do: timeout headers", 3},
	{"PUSH_PROMISE", flooded(func(f *http2.Framer, stream uint32) error {
		return f.WritePushPromise(http2.PushPromiseParam{StreamID: stream, PromiseID: 2, BlockFragment: encoded(":path", "/"), EndHeaders: true})
	}), "do: network", 3},
	{"a frame beyond the largest", func(p *peer, stream uint32) {
		p.write(func(f *http2.Framer) error { return f.WriteRawFrame(http2.FrameData, 0, stream, zeros(1<<24-1)) })
	}, "do: network", 3},

	// Header fields.
	{"CONTINUATION without end", func(p *peer, stream uint32) {
		p.unfinished(stream, ":status", "200")
		p.flood(func(f *http2.Framer) error { return f.WriteContinuation(stream, false, encoded("x", many)) })
	}, "do: network", 3},
	{"empty CONTINUATION without end", func(p *peer, stream uint32) {
		p.unfinished(stream, ":status", "200")
		p.flood(func(f *http2.Framer) error { return f.WriteContinuation(stream, false, nil) })
	}, "do: network", 3},
	{"one field without end", func(p *peer, stream uint32) {
		p.unfinished(stream, ":status", "200")
		long := append([]byte{0x10, 1, 'x', 0x7f}, 0xff, 0xff, 0xff, 0x7f) // its value has 256 MiB
		p.write(func(f *http2.Framer) error { return f.WriteContinuation(stream, false, long) })
		p.flood(func(f *http2.Framer) error { return f.WriteContinuation(stream, false, []byte(block[:16<<10])) })
	}, "do: network", 3},
	{"large fields", func(p *peer, stream uint32) {
		p.unfinished(stream, ":status", "200")
		for range 100 {
			p.write(func(f *http2.Framer) error { return f.WriteContinuation(stream, false, encoded("x", many)) })
		}
		p.write(func(f *http2.Framer) error { return f.WriteContinuation(stream, true, nil) })
	}, "do: network", 3},
	{"a large field named by one byte, often", func(p *peer, stream uint32) {
		var head bytes.Buffer
		e := hpack.NewEncoder(&head)
		_ = e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
		for range 10_000 {
			_ = e.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("x", 4000)})
		}
		p.write(func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndHeaders: true})
		})
	}, "do: limit headers", 1},
	{"early hints without end", func(p *peer, stream uint32) {
		p.flood(func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: encoded(":status", "103", "link", many), EndHeaders: true})
		})
	}, "do: network", 3},
	{"no status", func(p *peer, stream uint32) { p.headers(stream, false, "x", "y") }, "do: network", 3},
	{"a status of letters", func(p *peer, stream uint32) { p.headers(stream, false, ":status", "abc") }, "do: network", 3},
	{"header fields of no stream", func(p *peer, stream uint32) { p.headers(0, false, ":status", "200") }, "do: network", 3},

	// Bodies.
	{"beyond the window", func(p *peer, stream uint32) {
		p.headers(stream, false, ":status", "200")
		p.gush(stream)
	}, "read: (truncated|limit bytes)", 1}, // whichever is seen first
	{"longer than announced", answered(func(p *peer, stream uint32) { p.data(stream, true, "abc") }, "content-length", "4"), "read: truncated", 1},
	{"shorter than announced", answered(func(p *peer, stream uint32) { p.data(stream, true, "") }, "content-length", "4"), "read: truncated", 1},
	{"a bomb", func(p *peer, stream uint32) {
		p.headers(stream, false, ":status", "200", "content-encoding", "gzip")
		text := gzipOf(zeros(64 << 20))
		for ; text != "" && p.data(stream, false, text[:min(len(text), 4<<10)]); text = text[min(len(text), 4<<10):] {
		}
	}, "read: limit ratio", 1},
	{"large trailers", answered(func(p *peer, stream uint32) {
		p.unfinished(stream, "x", many)
		for range 100 {
			p.write(func(f *http2.Framer) error { return f.WriteContinuation(stream, false, encoded("x", many)) })
		}
	}), "read: truncated", 1},
	{"trailers without end", answered(func(p *peer, stream uint32) {
		p.flood(func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: encoded("x", "y"), EndHeaders: true})
		})
	}), "read: truncated", 1},
	{"trailers, and a body", answered(func(p *peer, stream uint32) {
		p.headers(stream, true, "x", "y")
		p.data(stream, true, "abc")
	}), "ok 200", 1},
}

// bytesOf returns n copies of a setting.
func bytesOf(s http2.Setting, n int) []http2.Setting {
	all := make([]http2.Setting, n)
	for i := range all {
		all[i] = s
	}
	return all
}

// Whatever a server of HTTP/2 does ends with a typed error, after as many requests as there may
// be tries, with little memory.
func TestHTTP2Attacks(t *testing.T) {
	borrowed := httptest.NewTLSServer(http.NotFoundHandler())
	defer borrowed.Close()
	log.SetOutput(io.Discard) // net/http logs some frames there
	defer log.SetOutput(os.Stderr)
	certificate, roots := borrowed.TLS.Certificates[0], x509.NewCertPool()
	roots.AddCert(borrowed.Certificate())
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var requests atomic.Int64
				w.serve("example.com:443", serveHTTP2(certificate, &requests, a.attack))
				c := w.client()
				c.RootCAs, c.Tries = roots, 3
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got, _ := outcome(c, Request{URL: "https://example.com/"})
				runtime.ReadMemStats(&after)
				assert.Regexp(t, "^"+a.want+"$", got)
				assert.Equal(t, a.requests, requests.Load(), "requests")
				assert.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(128), "MiB allocated, by both sides")
				synctest.Wait() // a connection may have been begun meanwhile
				assert.LessOrEqual(t, len(w.dialled), 4, "connections")
				c.CloseIdle()
				time.Sleep(time.Minute) // until the server has noticed
			})
		})
	}
}

// A server going on with an answer that is read no further is not listened to.
func TestHTTP2GivenUp(t *testing.T) {
	borrowed := httptest.NewTLSServer(http.NotFoundHandler())
	defer borrowed.Close()
	roots := x509.NewCertPool()
	roots.AddCert(borrowed.Certificate())
	read := func(body io.ReadCloser) { io.Copy(io.Discard, body) }
	for name, answer := range map[string]struct {
		fields []string
		read   func(io.ReadCloser) // nil if there is none to read
	}{
		"by a limit": {[]string{":status", "200"}, read},
		"by Close": {[]string{":status", "200"}, func(body io.ReadCloser) {
			io.ReadFull(body, make([]byte, 100))
			body.Close()
		}},
		"by its length":  {[]string{":status", "200", "content-length", "1000000000"}, nil},
		"by its coding":  {[]string{":status", "200", "content-encoding", "x-unknown"}, nil},
		"by its status":  {[]string{":status", "404"}, nil},
		"by its address": {[]string{":status", "302", "location", "http://127.0.0.1/"}, nil},
		"by its header":  {[]string{":status", "200", "x", strings.Repeat(many, 200)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var requests atomic.Int64
				var hungUp atomic.Bool
				w.serve("example.com:443", serveHTTP2(borrowed.TLS.Certificates[0], &requests, func(p *peer, stream uint32) {
					p.headers(stream, false, answer.fields...)
					hungUp.Store(p.gush(stream))
				}))
				c := w.client()
				c.RootCAs, c.Bytes = roots, 1<<20
				resp, err := c.Do(context.Background(), Request{URL: "https://example.com/"})
				if answer.read == nil {
					require.Error(t, err)
				} else {
					require.NoError(t, err)
					answer.read(resp.Body)
				}
				synctest.Wait()
				require.True(t, hungUp.Load())
			})
		})
	}
}

// A connection kept from before may be closed by the time of the next request: what is sent
// there in vain costs no try.
func TestHTTP2Kept(t *testing.T) {
	borrowed := httptest.NewTLSServer(http.NotFoundHandler())
	defer borrowed.Close()
	roots := x509.NewCertPool()
	roots.AddCert(borrowed.Certificate())
	for name, refuse := range map[string]func(*peer, uint32){"GOAWAY": goAway(1, http2.ErrCodeNo), "hanging up": goAway(1, http2.ErrCodeProtocol)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var requests atomic.Int64
				w.serve("example.com:443", serveHTTP2(borrowed.TLS.Certificates[0], &requests, func(p *peer, stream uint32) {
					if stream > 1 {
						refuse(p, stream)
						return
					}
					p.headers(stream, true, ":status", "200")
				}))
				c := w.client()
				c.RootCAs = roots
				for i := range 4 {
					resp, err := c.Do(context.Background(), Request{URL: fmt.Sprint("https://example.com/", i)})
					require.NoError(t, err)
					require.NoError(t, resp.Body.Close())
				}
				require.EqualValues(t, 4+3, requests.Load())
				c.CloseIdle()
				time.Sleep(time.Minute)
			})
		})
	}
}
