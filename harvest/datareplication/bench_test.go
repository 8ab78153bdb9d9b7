package datareplication

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

const benchEntities = 5000

func benchBatch() (all []Entity) {
	for i := range benchEntities {
		all = append(all, Entity{ContentID: strconv.Itoa(i), Type: "application/json", Body: bytes.Repeat([]byte(`{"a":1} `), 64)})
	}
	return all
}

func perSecond(b *testing.B) {
	b.ReportMetric(float64(benchEntities)*float64(b.N)/b.Elapsed().Seconds(), "entities/s")
}

// BenchmarkConsumer reads a feed of pages of 1 MB over loopback, compared with
// a plain loop over the same pages that keeps only bodies.
func BenchmarkConsumer(b *testing.B) {
	out := newMemory()
	require.NoError(b, (&Producer{Output: out}).Append(b.Context(), benchBatch()...))
	h := &Handler{FS: out}
	server := feedtest.Server(b, h)
	h.Base = server.URL
	s, err := loadState(out)
	require.NoError(b, err)
	b.Run("harvest", func(b *testing.B) {
		c := Harvester{URL: server.URL, HTTP: &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}}}
		for b.Loop() {
			got, err := collect(c.Harvest(b.Context(), Mark{}))
			require.NoError(b, err)
			require.Len(b, got, benchEntities)
		}
		perSecond(b)
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for page := 1; page <= s.Newest.Number; page++ {
				n += plainRead(b, fmt.Sprintf("%s/%d", server.URL, page))
			}
			require.Equal(b, benchEntities, n)
		}
		perSecond(b)
	})
}

func plainRead(b *testing.B, url string) (n int) {
	resp, err := http.Get(url)
	require.NoError(b, err)
	defer resp.Body.Close()
	boundary := resp.Header.Get("Content-Type")[len("multipart/mixed; boundary="):]
	r := multipart.NewReader(resp.Body, boundary)
	for {
		part, err := r.NextRawPart()
		if err == io.EOF {
			return n
		}
		require.NoError(b, err)
		_, err = io.ReadAll(part)
		require.NoError(b, err)
		n++
	}
}

// BenchmarkProducer appends entities to pages of 1 MB in memory, a thousand at
// a time, compared with a plain loop that writes the same entities as multipart
// bodies and puts those.
func BenchmarkProducer(b *testing.B) {
	batch := benchBatch()
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			p := Producer{Output: newMemory()}
			for i := 0; i < len(batch); i += 1000 {
				require.NoError(b, p.Append(b.Context(), batch[i:i+1000]...))
			}
		}
		perSecond(b)
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			out := newMemory()
			for i := 0; i < len(batch); i += 1000 {
				var page bytes.Buffer
				w := multipart.NewWriter(&page)
				for _, e := range batch[i : i+1000] {
					part, err := w.CreatePart(textproto.MIMEHeader{
						"Content-Type": {e.Type}, "Last-Modified": {noon.Format(http.TimeFormat)}, "Content-Length": {strconv.Itoa(len(e.Body))},
						"Content-ID": {e.ContentID}, "Operation-Type": {"http-equiv=PUT"},
					})
					require.NoError(b, err)
					_, _ = part.Write(e.Body)
				}
				require.NoError(b, w.Close())
				require.NoError(b, out.Put(b.Context(), strconv.Itoa(i), page.Bytes()))
			}
		}
		perSecond(b)
	})
	b.Run("one at a time", func(b *testing.B) {
		for b.Loop() {
			p := Producer{Output: newMemory()}
			for i := range batch {
				require.NoError(b, p.Append(b.Context(), batch[i]))
			}
		}
		perSecond(b)
	})
}
