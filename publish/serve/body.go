package serve

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// A Body is a document held in memory, such as a page. It is compressed once, for clients
// that accept gzip.
type Body struct {
	data   []byte
	tag    string
	zipped func() []byte
}

// NewBody returns a Body with content nobody changes any more.
func NewBody(data []byte) *Body {
	return &Body{data, TagOf(data), sync.OnceValue(func() []byte {
		var b bytes.Buffer
		z := newZipper(&b)
		defer z.free()
		_, _ = z.Write(data)
		_ = z.Close()
		return b.Bytes()
	})}
}

// TagOf returns a Tag for content: a digest of it.
func TagOf(data []byte) string {
	sum := sha256.Sum256(data)
	return TagOfSum(sum[:])
}

// TagOfSum returns the Tag for content with this digest, by SHA-256.
func TagOfSum(sum []byte) string {
	return base64.RawURLEncoding.EncodeToString(sum[:min(16, len(sum))])
}

// leastGzip is the size below which compression gains nothing.
const leastGzip = 200

// Serve answers with the content. With another status than 200 it has no ETag, and
// conditions do not apply.
func (b *Body) Serve(w http.ResponseWriter, r *http.Request, status int) {
	d := Document{Tag: b.tag, Content: bytes.NewReader(b.data), Gzip: func() (io.ReadSeeker, string, error) {
		if len(b.data) < leastGzip {
			return nil, "", nil
		}
		return &lateReader{read: b.zipped}, b.tag + "-gzip", nil
	}}
	if status == http.StatusOK {
		_ = d.Serve(w, r) // its content has no errors
		return
	}
	h, data := w.Header(), b.data
	h.Add("Vary", "Accept-Encoding")
	if len(data) >= leastGzip && acceptsGzip(r.Header) {
		h.Set("Content-Encoding", "gzip")
		data = b.zipped()
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = (&response{ResponseWriter: w}).Write(data)
	}
}

// A lateReader is content made when it is first needed.
type lateReader struct {
	read func() []byte
	*bytes.Reader
}

// Seek implements io.Seeker, which comes before any Read.
func (l *lateReader) Seek(offset int64, whence int) (int64, error) {
	if l.Reader == nil {
		l.Reader = bytes.NewReader(l.read())
	}
	return l.Reader.Seek(offset, whence)
}

// A zipper compresses. It is reused, because it has a megabyte of tables.
type zipper struct{ *gzip.Writer }

var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, 5) // a valid level
	return &zipper{z}
}}

func newZipper(w io.Writer) *zipper {
	z := zippers.Get().(*zipper)
	z.Reset(w)
	return z
}

func (z *zipper) free() { zippers.Put(z) }
