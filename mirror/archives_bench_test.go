package mirror_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// An archiveSite has a feed of archives with a hundred entries each.
type archiveSite int

func (s archiveSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(s)
	if r.URL.Path != "/feed" {
		_, _ = fmt.Sscanf(r.URL.Path, "/archive/%d.atom", &n)
	}
	at := func(entry int) string {
		return time.Date(2000, 1, 1, 0, 17*entry, entry%60, 0, time.UTC).Format(time.RFC3339)
	}
	w.Header().Set("Last-Modified", time.Date(2000, 1, 1, 0, 1700*(n+1), n%60, 0, time.UTC).Format(http.TimeFormat))
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, n*7919))
	fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:f</id><title>F</title><updated>%s</updated>`, at(100*(n+1)))
	if r.URL.Path != "/feed" {
		fmt.Fprint(w, "<fh:archive/>")
	}
	if n > 0 {
		fmt.Fprintf(w, `<link rel="prev-archive" href="/archive/%d.atom"/>`, n-1)
	}
	for entry := 100*n + 99; entry >= 100*n; entry-- {
		fmt.Fprintf(w, `<entry><id>http://model.example/%d/%d</id><title>Entry %[2]d</title><updated>%[3]s</updated><link rel="alternate" href="http://model.example/%[1]d/%[2]d"/><content type="html">%[4]s</content></entry>`,
			2000+entry/365, entry, at(entry), strings.Repeat("&lt;p>A text of some length.&lt;/p> ", 10))
	}
	fmt.Fprint(w, "</feed>")
}

// How long a walk with a stored Ledger takes, compared with a Fetch, by the clock and by the
// processor, and how many bytes of Ledgers it writes.
func BenchmarkPollOfArchives(b *testing.B) {
	for _, test := range []struct{ archives, every int }{{200, 1}, {200, 50}, {1000, 50}, {10_000, 50}} {
		b.Run(fmt.Sprintf("%d archives, stored every %d", test.archives, test.every), func(b *testing.B) {
			var fetch, poll, fetchCPU, pollCPU time.Duration
			written, stored, last := 0, 0, 0
			for b.Loop() {
				client := &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Direct{Handler: archiveSite(test.archives)}}
				client.Budget.Documents, client.Budget.Bytes = 1<<30, 1<<40
				begun, before := time.Now(), feedtest.ProcessorTime(b)
				h, err := client.Fetch(b.Context(), modelURL)
				require.NoError(b, err)
				require.Len(b, h.Entries, 100*(test.archives+1))
				fetch += time.Since(begun)
				fetchCPU += feedtest.ProcessorTime(b) - before
				h = nil
				begun, before = time.Now(), feedtest.ProcessorTime(b)
				m := &mirror.Mirror{Client: client}
				pending, entries, last := 0, 0, mirror.Ledger{}
				store := func() {
					text, err := last.MarshalJSON()
					require.NoError(b, err)
					written += len(text)
					stored++
					pending = 0
				}
				for r, err := range m.Poll(b.Context(), modelURL, mirror.Ledger{}) {
					require.NoError(b, err)
					last = r.Ledger
					entries += len(r.Changes)
					if pending++; pending == test.every {
						store()
					}
				}
				store()
				require.Equal(b, 100*(test.archives+1), entries)
				require.Equal(b, feedhistory.VerdictWhole, last.Feed().Verdict)
				poll += time.Since(begun)
				pollCPU += feedtest.ProcessorTime(b) - before
			}
			_ = last
			b.ReportMetric(float64(poll)/float64(fetch), "times-Fetch")
			b.ReportMetric(float64(pollCPU)/float64(fetchCPU), "times-Fetch's-processor")
			b.ReportMetric(float64(written)/float64(b.N)/1e6, "MB-written")
			b.ReportMetric(float64(written)/float64(stored)/1e3, "kB-each")
		})
	}
}
