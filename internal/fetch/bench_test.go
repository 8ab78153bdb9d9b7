package fetch

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
)

// Answers like those of a feed's server.
const (
	date        = "Date: Mon, 05 Jan 2026 10:00:00 GMT\r\nEtag: \"1\"\r\nCache-Control: max-age=300\r\n"
	notModified = "HTTP/1.1 304 Not Modified\r\n" + date + "\r\n"
)

// canned answers every request with the same bytes. It allocates nothing and does hardly any
// work, so that the benchmark measures the client.
func canned(b *testing.B, answer string) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	text := []byte(answer)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go repeat(conn, text)
		}
	}()
	return "http://" + l.Addr().String() + "/feed.xml"
}

func repeat(conn net.Conn, text []byte) {
	defer conn.Close()
	buf, n := make([]byte, 4096), 0
	for {
		m, err := conn.Read(buf[n:])
		if err != nil {
			return
		}
		if n += m; bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
			n = 0
			conn.Write(text)
		}
	}
}

// bare is a conditional request with nothing but net/http.
func bare(b *testing.B, client *http.Client, url string, status int) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("User-Agent", fallbackAgent)
	r.Header.Set("Accept", "*/*")
	r.Header.Set("If-None-Match", `"1"`)
	resp, err := client.Do(r)
	if err != nil || resp.StatusCode != status {
		b.Fatal(resp, err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// full is the same with this package.
func full(b *testing.B, client *Client, url string, status int) {
	resp, err := client.Do(context.Background(), Request{URL: url, ETag: `"1"`})
	if err != nil || resp.Status != status {
		b.Fatal(resp, err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// compare measures both with the same answer.
func compare(b *testing.B, answer string, status int) {
	url := canned(b, answer)
	b.Run("bare", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			bare(b, client, url, status)
		}
	})
	b.Run("fetch", func(b *testing.B) {
		client := &Client{AllowPrivate: true}
		defer client.CloseIdle()
		b.ReportAllocs()
		for b.Loop() {
			full(b, client, url, status)
		}
	})
}

// BenchmarkUnchanged compares a poll that finds nothing new with what net/http
// needs for the same: the price of safety and politeness.
func BenchmarkUnchanged(b *testing.B) { compare(b, notModified, http.StatusNotModified) }

// BenchmarkTransfer compares the transfer of a document of 200 KB, without compression.
func BenchmarkTransfer(b *testing.B) {
	compare(b, ok(string(noise(200<<10)), date[:len(date)-2]), http.StatusOK)
}

// BenchmarkTransferGzip lets net/http decompress.
func BenchmarkTransferGzip(b *testing.B) {
	text := bytes.Repeat([]byte("<entry><title>An entry</title></entry>"), 200<<10/38)
	compare(b, ok(gzipOf(text), date+"Content-Encoding: gzip"), http.StatusOK)
}
