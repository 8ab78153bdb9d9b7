package republish

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/feedhistory/feedhistory/publish"
)

// A Body is the content of an answer, held in memory: a page of a program that mounts a
// Handler among its own. It is compressed once, for clients that accept gzip.
type Body struct {
	data   []byte
	tag    string
	zipped func() []byte
}

// NewBody returns a Body with content nobody changes any more.
func NewBody(data []byte) *Body {
	sum := sha256.Sum256(data)
	return &Body{data, hex.EncodeToString(sum[:10]), sync.OnceValue(func() []byte { return zipped(data) })}
}

// leastGzip is the size below which compression gains nothing.
const leastGzip = 200

// Serve answers with the content. With the status 200, the answer has an ETag,
// and a client that has the content gets a 304.
func (b *Body) Serve(w http.ResponseWriter, r *http.Request, status int) {
	zip := len(b.data) >= leastGzip && publish.AcceptsGzip(r.Header)
	known := describe(w, r, b.tag, zip)
	switch {
	case status != http.StatusOK:
		w.Header().Del("Etag")
	case known:
		notModified(w)
		return
	}
	data := b.data
	if zip {
		data = b.zipped()
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}

// describe sets the header fields about the version with a tag, and about its
// coding. It reports whether the client has that version (RFC 9110 §13.1.2).
func describe(w http.ResponseWriter, r *http.Request, tag string, zip bool) (known bool) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if zip {
		h.Set("Content-Encoding", "gzip")
	}
	tag = entityTag(tag, zip)
	h.Set("Etag", tag)
	return has(r, tag)
}

func entityTag(tag string, zip bool) string {
	if zip {
		tag += "-gzip"
	}
	return `"` + tag + `"`
}

// has reports whether the client has the version with an ETag.
func has(r *http.Request, tag string) bool {
	for other := range strings.SplitSeq(strings.Join(r.Header["If-None-Match"], ","), ",") {
		if other = strings.TrimPrefix(strings.TrimSpace(other), "W/"); other == tag || other == "*" {
			return true
		}
	}
	return false
}

// notModified answers with a 304.
func notModified(w http.ResponseWriter) {
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Length", "Content-Disposition"} {
		w.Header().Del(name)
	}
	w.WriteHeader(http.StatusNotModified)
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
