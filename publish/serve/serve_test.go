package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Any range of a stream is the same part of it.
func TestStreamParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var whole bytes.Buffer
		chunks := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 0, 20).Draw(t, "chunks")
		for _, c := range chunks {
			whole.Write(c)
		}
		var known Cache[string, int64]
		doc := Stream{
			Tag: "t", Unchanged: func() bool { return true }, Begin: begin, Sizes: &known,
			Write: func(w io.Writer) error {
				for _, c := range chunks {
					if _, err := w.Write(c); err != nil {
						return err
					}
				}
				return nil
			},
		}
		for range 4 {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			from := rapid.IntRange(0, 900).Draw(t, "from")
			to := rapid.IntRange(from, 1000).Draw(t, "to")
			text := rapid.SampledFrom([]string{fmt.Sprintf("bytes=%d-%d", from, to), fmt.Sprintf("bytes=%d-", from), fmt.Sprintf("bytes=-%d", to), fmt.Sprintf("bytes=0-0,%d-", from), ""}).Draw(t, "range")
			if text != "" {
				r.Header.Set("Range", text)
			}
			if rapid.Bool().Draw(t, "if-range") {
				r.Header.Set("If-Range", rapid.SampledFrom([]string{`"t"`, `"u"`}).Draw(t, "tag"))
			}
			got, want := httptest.NewRecorder(), httptest.NewRecorder()
			got.Header().Set("Content-Type", "application/octet-stream")
			require.NoError(t, doc.Serve(got, r))
			want.Header().Set("Etag", `"t"`)
			want.Header().Set("Content-Type", "application/octet-stream")
			if strings.Contains(text, ",") { // a stream makes no several parts
				r.Header.Del("Range")
			}
			serveContent(want, r, whole.Bytes())
			require.Equal(t, want.Code, got.Code, text)
			require.Equal(t, want.Body.String(), got.Body.String(), text)
			require.Equal(t, want.Header().Get("Content-Range"), got.Header().Get("Content-Range"))
		}
	})
}

func serveContent(w http.ResponseWriter, r *http.Request, data []byte) {
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// A stream that breaks off, or that mixes two states of the feed, does not end
// as if it were whole.
func TestStreamBreaksOff(t *testing.T) {
	for _, header := range []string{"", "bytes=2-"} {
		for name, doc := range map[string]Stream{
			"broken":  {Tag: "t", Begin: begin, Unchanged: func() bool { return true }, Write: func(w io.Writer) error { _, _ = w.Write([]byte("abc")); return errors.New("broken") }},
			"changed": {Tag: "t", Begin: begin, Unchanged: func() bool { return false }, Write: func(w io.Writer) error { _, err := w.Write([]byte("abc")); return err }},
		} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Range", header)
			if header == "" {
				r.Header.Del("Range")
			}
			var known Cache[string, int64]
			doc.Sizes = &known
			deliver := func() { _ = doc.Serve(httptest.NewRecorder(), r) }
			if name == "changed" && header == "" {
				deliver() // a response has either state: readers can use it
			} else {
				require.PanicsWithValue(t, http.ErrAbortHandler, deliver, name+header)
			}
			_, measured := known.Get("t")
			require.False(t, measured)
		}
	}
}

func begin() (end func(), err error) { return func() {}, nil }

// deadlines counts the deadlines set for writing.
type deadlines struct {
	*httptest.ResponseRecorder
	n int
}

func (d *deadlines) SetWriteDeadline(time.Time) error {
	d.n++
	return nil
}

// TestFileDeadline counts deadlines: the first pieces of a file have one, whoever sets it, and the rest their own.
func TestFileDeadline(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		size    int
		timeout time.Duration // the server's
		set     int
	}{
		{1000, 0, 1}, {1000, time.Minute, 1}, {1000, 10 * time.Minute, 0}, {100_000, 0, 1}, {100_000, 10 * time.Minute, 0},
		{filePieces*pieceSize + 1, 0, 2}, {filePieces*pieceSize + 1, time.Minute, 2}, {filePieces*pieceSize + 1, 10 * time.Minute, 1},
	} {
		name := filepath.Join(dir, "file")
		data := bytes.Repeat([]byte("a b c d "), test.size/8+1)[:test.size]
		require.NoError(t, os.WriteFile(name, data, 0o600))
		f, err := os.Open(name)
		require.NoError(t, err)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{WriteTimeout: test.timeout}))
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		require.NoError(t, Document{Tag: "t", Content: f}.Serve(w, r))
		require.NoError(t, f.Close())
		require.Equal(t, data, w.Body.Bytes())
		require.Equal(t, test.set, w.n, "%+v", test)
	}
}
