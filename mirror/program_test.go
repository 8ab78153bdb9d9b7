package mirror_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

const programURL = "http://model.example/feed"

// programSite serves bodies by path.
type programSite map[string]func() string

func (s programSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := s[r.URL.Path]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(f()))
}

// numbered returns a feed with a head section and entries of these numbers.
func numbered(head string, ids ...int) string {
	var b strings.Builder
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:f</id><title>F</title>` + head)
	for _, i := range ids {
		fmt.Fprintf(&b, `<entry><id>urn:%d</id><title>%[1]d</title><updated>%[2]s</updated></entry>`, i, time.Date(2000, 1, 1, 0, i, 0, 0, time.UTC).Format(time.RFC3339))
	}
	return b.String() + "</feed>"
}

// down returns the numbers from one down to another, without some.
func down(from, to int, without ...int) (ids []int) {
	for i := from; i >= to; i-- {
		if !slices.Contains(without, i) {
			ids = append(ids, i)
		}
	}
	return ids
}

// An entry is withdrawn from a window of more than 10,000.
func TestProgramLargeWindow(t *testing.T) {
	docs := []string{numbered("", down(12_000, 1)...), numbered("", down(12_000, 1, 2001, 9_000)...)}
	n := 0
	site := programSite{"/feed": func() string { return docs[n] }}
	store, own := mirror.NewMemory(), newRows()
	for n = range docs {
		m := newMirror(store, site)
		r, err := m.Update(t.Context(), programURL)
		require.NoError(t, err)
		p := newMirror(nil, site)
		for x, err := range p.Poll(t.Context(), programURL, own.ledger(t)) {
			require.NoError(t, err)
			text, _ := json.Marshal(x.Ledger)
			own.text = text
		}
		require.Equal(t, fmt.Sprint(r.Feed.Ledger.Gaps()), fmt.Sprint(own.ledger(t).Gaps()), n)
	}
}

// Signatures in the addresses of an archive's entries.
func TestProgramSignedArchive(t *testing.T) {
	sig := "1"
	entry := func(id int) string {
		return fmt.Sprintf(`<entry><id>urn:%d</id><title>T</title><updated>2004-01-01T00:00:00Z</updated><link rel="enclosure" href="http://cdn.example/%[1]d.mp3?token-time=15800000%s&amp;token-hash=%[2]sbGFzaGFzaGFzaGFzaGFzaGFzaGFzaA"/></entry>`, id, sig)
	}
	site := programSite{
		"/feed": func() string {
			return `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:f</id><title>F</title><link rel="prev-archive" href="/1"/>` + entry(2) + `</feed>`
		},
		"/1": func() string {
			return `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:f</id><title>F</title><fh:archive/>` + entry(1) + `</feed>`
		},
	}
	store, own := mirror.NewMemory(), newRows()
	for _, sig = range []string{"1", "2"} {
		m := newMirror(store, site)
		m.Revalidate = true
		_, err := m.Update(t.Context(), programURL)
		require.NoError(t, err)
		p := newMirror(nil, site)
		p.Revalidate = true
		put := map[string]bool{}
		for x, err := range p.Poll(t.Context(), programURL, own.ledger(t)) {
			require.NoError(t, err)
			for _, c := range x.Changes {
				if c.Op == mirror.OpPut {
					e, _ := json.Marshal(c.Entry.Links)
					put[c.ID] = strings.Contains(string(e), "token-time=15800000"+sig)
				}
			}
			own.text, _ = json.Marshal(x.Ledger)
		}
		for r, err := range store.Entries(t.Context(), mirror.Query{}) {
			require.NoError(t, err)
			require.Contains(t, r.Content.Data, "token-time=15800000"+sig, r.ID)
			require.True(t, put[r.ID], "%s, signature %s", r.ID, sig)
		}
	}
}

// A program has no Quota, so its tombstones, which the Ledger forgets, are not counted at each poll.
func TestProgramTombstone(t *testing.T) {
	const tombstone = `<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="urn:1" when="1999-01-01T00:00:00Z"/>`
	own, n := newRows(), 0
	site := programSite{"/feed": func() string { n++; return numbered(tombstone, n+1) }}
	for range 3 {
		require.NoError(t, own.walk(t.Context(), t, newMirror(nil, site), programURL, 100))
		require.Zero(t, own.ledger(t).Feed().Size())
	}
}

// storedLedger returns a stored Ledger with the columns of a text.
func storedLedger(columns []byte) string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // its only error is that of another level
	_, _ = w.Write(columns)
	_ = w.Close()
	return `{"commits":1,"kept":"` + base64.StdEncoding.EncodeToString(b.Bytes()) + `"}`
}

// A stored Ledger that says it has a million rows takes no memory for them.
func TestProgramHostile(t *testing.T) {
	const rows = 1_000_000
	columns := append(binary.AppendVarint(nil, int64(len("{}"))), "{}"...)
	columns = append(binary.AppendVarint(columns, rows), make([]byte, rows)...)
	text, err := storedLedger(columns), error(nil)
	allocated := feedtest.Allocated(func() { err = json.Unmarshal([]byte(text), new(mirror.Ledger)) })
	require.Error(t, err)
	require.Less(t, allocated, int64(64<<20), "bytes for a text of %d", len(text))
}

// What it costs to poll a feed of many archives, of which nothing has changed.
func BenchmarkCalmPollOfArchives(b *testing.B) {
	for _, n := range []int{2_500, 10_000, 20_000} {
		site := programSite{}
		for i := range n {
			prev := ""
			if i > 0 {
				prev = fmt.Sprintf(`<link rel="prev-archive" href="/a/%06d"/>`, i-1)
			}
			text := numbered("<fh:archive/>"+prev, i+1)
			site[fmt.Sprintf("/a/%06d", i)] = func() string { return text }
		}
		text := numbered(fmt.Sprintf(`<link rel="prev-archive" href="/a/%06d"/>`, n-1), n+1)
		site["/feed"] = func() string { return text }
		m := &mirror.Mirror{Client: &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Direct{Handler: site}}}
		m.Client.Budget.Documents = 1 << 30
		var last mirror.Ledger
		poll := func() {
			for r, err := range m.Poll(b.Context(), programURL, last) {
				require.NoError(b, err)
				last = r.Ledger
			}
		}
		poll()
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				poll()
			}
		})
	}
}

// A Ledger can be marshalled while its walk goes on, and while others begin with it.
func TestProgramRace(t *testing.T) {
	model := archivedModel(1, 60)
	m := newMirror(nil, model)
	done := make(chan struct{})
	n := 0
	use := func(l mirror.Ledger) {
		n++
		go func() {
			defer func() { done <- struct{}{} }()
			for range 5 {
				_, _ = json.Marshal(l)
				_ = l.Feed().Verdict
				_ = l.Gaps()
			}
		}()
	}
	var last mirror.Ledger
	for k := range 6 {
		m.Revalidate = k%2 == 0
		for r, err := range m.Poll(t.Context(), programURL, last) {
			require.NoError(t, err)
			use(r.Ledger)
			last = r.Ledger
			if k == 3 {
				l := r.Ledger
				n++
				go func() {
					defer func() { done <- struct{}{} }()
					for x := range newMirror(nil, model).Poll(t.Context(), programURL, l) {
						_, _ = json.Marshal(x.Ledger)
					}
				}()
			}
		}
		model.Step()
		model.Step()
	}
	for range n {
		<-done
	}
}

// A stored Ledger that can be read is stored again as it was, and a walk goes on with it.
func FuzzStoredLedger(f *testing.F) {
	model := archivedModel(1, 60)
	m := newMirror(nil, model)
	for r, err := range m.Poll(f.Context(), programURL, mirror.Ledger{}) {
		require.NoError(f, err)
		text, _ := json.Marshal(r.Ledger)
		var form struct{ Kept []byte }
		_ = json.Unmarshal(text, &form)
		var b bytes.Buffer
		_, _ = b.ReadFrom(flate.NewReader(bytes.NewReader(form.Kept)))
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, kept []byte) {
		var l mirror.Ledger
		if json.Unmarshal([]byte(storedLedger(kept)), &l) != nil {
			return
		}
		out, err := json.Marshal(l)
		if err != nil {
			return
		}
		var again mirror.Ledger
		require.NoError(t, json.Unmarshal(out, &again))
		out2, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(out), string(out2))
		url := l.Feed().URL
		for r := range newMirror(nil, model).Poll(t.Context(), url, l) {
			if r != nil {
				_, _ = json.Marshal(r.Ledger)
			}
		}
	})
}
