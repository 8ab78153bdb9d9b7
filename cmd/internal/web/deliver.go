package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Pages are sent with an ETag, compressed for clients accepting it, and not at all to
// clients that have them.

// leastGzip is the size below which compression gains nothing.
const leastGzip = 200

// deliver answers with data made for this request.
func deliver(w http.ResponseWriter, r *http.Request, status int, data []byte) {
	deliverZipped(w, r, status, data, func() []byte { return zipped(data) })
}

// deliverZipped answers with data whose compressed form a function returns.
func deliverZipped(w http.ResponseWriter, r *http.Request, status int, data []byte, compressed func() []byte) {
	h := w.Header()
	sum := sha256.Sum256(data)
	tag := hex.EncodeToString(sum[:10])
	zip := len(data) >= leastGzip && acceptsGzip(r)
	h.Add("Vary", "Accept-Encoding")
	if zip {
		tag += "-gzip"
		h.Set("Content-Encoding", "gzip")
	}
	if tag = `"` + tag + `"`; status == http.StatusOK {
		h.Set("Etag", tag)
		if has(r, tag) {
			notModified(w)
			return
		}
	}
	if zip {
		data = compressed()
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}

// notModified answers with a 304.
func notModified(w http.ResponseWriter) {
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Length", "Content-Disposition"} {
		w.Header().Del(name)
	}
	w.WriteHeader(http.StatusNotModified)
}

// has reports whether the client has the version with a tag (RFC 9110 §13.1.2).
func has(r *http.Request, tag string) bool {
	for other := range strings.SplitSeq(strings.Join(r.Header["If-None-Match"], ","), ",") {
		if other = strings.TrimPrefix(strings.TrimSpace(other), "W/"); other == tag || other == "*" {
			return true
		}
	}
	return false
}

// acceptsGzip reports whether the client accepts gzip, with whatever weight above
// zero (RFC 9110 §12.5.3).
func acceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(strings.Join(r.Header["Accept-Encoding"], ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		_, q, ok := strings.Cut(weight, "=")
		value, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !ok || err == nil && value > 0
	}
	return false
}

// zippers are reused, because each has a megabyte of tables.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, 5) // a valid level
	return z
}}

func zipped(data []byte) []byte {
	var b bytes.Buffer
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}
