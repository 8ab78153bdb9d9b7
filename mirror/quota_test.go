package mirror_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A usage is the part of its Quota a feed has used, as it is stored.
type usage struct{ Contents, Tombstones, Refs, Documents int64 }

func usageOf(t require.TestingT, f *mirror.Feed) usage {
	text, err := json.Marshal(f.Ledger)
	require.NoError(t, err)
	var stored struct{ Usage usage }
	require.NoError(t, json.Unmarshal(text, &stored))
	return stored.Usage
}

// documentSize returns the size of the texts in a document's record.
func documentSize(d *mirror.DocumentRecord) (n int64) {
	for _, text := range append([]string{d.URL, d.Digest, d.Known.URL, d.Known.ETag, d.Known.LastModified, d.Known.Digest, d.Known.Older}, d.Names...) {
		n += int64(len(text))
	}
	return n
}

// testUsage checks the usage of the quota in a feed's state.
func testUsage(t *testing.T, store mirror.Store, url string, story string) {
	t.Helper()
	feed := feedOf(t, store, url)
	want := usage{}
	for r, err := range store.Entries(t.Context(), mirror.Query{Feed: url, States: mirror.Current | mirror.Former}) {
		require.NoError(t, err)
		require.NotZero(t, r.Content.Size)
		want.Contents += r.Content.Size
		for _, v := range feedtest.All(t, store.Versions(t.Context(), url, r.ID)) {
			want.Contents += v.Content.Size
		}
	}
	for _, d := range feedtest.All(t, store.Documents(t.Context(), url)) {
		want.Documents += documentSize(d)
	}
	var ids []string // the IDs that the model may use
	for n := range 1000 {
		ids = append(ids, fmt.Sprint("urn:x:", n))
	}
	records, err := store.Records(t.Context(), url, ids)
	require.NoError(t, err)
	for id, r := range records {
		if r.State == mirror.Unseen {
			want.Tombstones++
			want.Refs += int64(len(id))
		}
	}
	require.Equal(t, want, usageOf(t, feed), story)
	require.Equal(t, want.Contents+want.Refs+want.Documents, feed.Size(), story)
}

// A feed that brings new entries, tombstones, archives or edits at each poll
// does not exceed its quota, and the mirror says so once.
func TestQuotaIsKept(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, head := range map[string]func(n int) string{
		"entries":    func(n int) string { return fmt.Sprintf(`<entry><id>urn:%d</id><title>%s</title></entry>`, n, long) },
		"tombstones": func(n int) string { return fmt.Sprintf(`<t:deleted-entry ref="urn:%d:%s"/>`, n, long) },
		"archives":   func(n int) string { return prev(fmt.Sprintf("/archive/%d/%s", n, long)) },
		"edits": func(n int) string {
			return fmt.Sprintf(`<entry><id>urn:1</id><title>%s</title></entry>`, strings.Repeat(fmt.Sprint(n), 100*n))
		},
		"versions": func(n int) string {
			return fmt.Sprintf(`<entry><id>urn:1</id><title>%d</title></entry><entry><id>urn:1</id><title>%d%s</title></entry>`, n, n, long)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, n := mirror.NewMemory(), 0
				m := newMirror(store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:t="http://purl.org/atompub/tombstones/1.0">%s`+
						`<entry><id>known</id><title>%d</title></entry></feed>`, map[bool]string{true: head(n)}[r.URL.Path == "/feed"], n)
				}))
				m.Quota = mirror.Quota{Bytes: 20_000, Entries: 50}
				for range 100 {
					n++
					time.Sleep(time.Hour)
					_, err := m.Update(t.Context(), aURL)
					require.NoError(t, err)
				}
				f := feedOf(t, store, aURL)
				require.Less(t, f.Size(), int64(40_001))
				require.LessOrEqual(t, f.Entries+f.Deleted+usageOf(t, f).Tombstones+f.Documents, int64(50))
				require.Equal(t, "100", held(t, store, aURL)["known"], "what is known goes on being updated")
				if name == "versions" { // they are dropped, as are those that exceed Versions
					require.Less(t, f.Size(), int64(20_001))
					return
				}
				require.Equal(t, feedhistory.VerdictPartial, f.Verdict)
				limits := 0
				for _, g := range f.Ledger.Gaps() {
					if g.Reason == feedhistory.ReasonLimit {
						require.ErrorIs(t, g.Err, mirror.ErrQuota)
						limits++
					}
				}
				require.Equal(t, 1, limits)
			})
		})
	}
}

// With a larger quota, the mirror reads the rest of a history that did not fit.
// Until then the rest costs no requests, and the verdict is partial.
func TestLargerQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h := mirror.NewMemory(), archives()
		update := func(entries int64) (*mirror.Report, []string) {
			t.Helper()
			time.Sleep(time.Hour)
			m := newMirror(store, h)
			m.Quota.Entries = entries
			changes := polled(t, m, aURL)
			return changes, h.requests()
		}
		changes, _ := update(3) // the quota has room for two entries and an archive
		require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
		require.Len(t, changes.Feed.Ledger.Gaps(), 1)
		require.Equal(t, feedhistory.ReasonLimit, changes.Feed.Ledger.Gaps()[0].Reason)
		require.Equal(t, "http://a.example/2", changes.Feed.Ledger.Gaps()[0].URL)
		require.Len(t, held(t, store, aURL), 2)
		for _, quota := range []int64{3, 2, 3} { // a smaller quota does not help
			changes, asked := update(quota)
			require.Equal(t, []string{aURL}, asked)
			require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
			require.Len(t, changes.Feed.Ledger.Gaps(), 1)
		}
		changes, asked := update(5)
		require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
		require.Equal(t, []string{aURL, "http://a.example/2", "http://a.example/1"}, asked)
		require.Len(t, held(t, store, aURL), 3)
		changes, _ = update(0)
		require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
		require.Empty(t, changes.Feed.Ledger.Gaps())
		require.Len(t, held(t, store, aURL), 4)
		f := feedOf(t, store, aURL)
		text, err := json.Marshal(f.Ledger)
		require.NoError(t, err)
		require.NotContains(t, string(text), `"full"`)
		testUsage(t, store, aURL, "")
	})
}

// Entries of a subscription document that did not fit are read again even if it
// has not changed. Those that have gone meanwhile are a gap.
func TestLargerQuotaForAWindow(t *testing.T) {
	for _, moved := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store, h := mirror.NewMemory(), &host{answer: map[string]http.HandlerFunc{aURL: document("", "3", "2", "1")}}
			update := func(entries int64) *mirror.Report {
				t.Helper()
				time.Sleep(time.Hour)
				m := newMirror(store, h)
				m.Quota.Entries = entries
				changes := polled(t, m, aURL)
				return changes
			}
			update(3)
			h.answer[aURL] = document("", "6", "5", "4", "3")
			changes := update(4)
			require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
			require.Len(t, held(t, store, aURL), 3, "all or nothing")
			if moved {
				h.answer[aURL] = document("", "8", "7", "6", "5")
				require.Equal(t, feedhistory.VerdictPartial, update(4).Feed.Verdict)
			}
			changes = update(0)
			if moved {
				require.Equal(t, feedhistory.ReasonMissedWindow, changes.Feed.Ledger.Gaps()[0].Reason)
				require.Len(t, changes.Feed.Ledger.Gaps(), 1)
				require.Len(t, held(t, store, aURL), 7)
				return
			}
			require.Equal(t, feedhistory.VerdictWindow, changes.Feed.Verdict)
			require.Len(t, held(t, store, aURL), 6)
		})
	}
}

// A known archive that was altered does not count as read while its new entries
// do not fit.
func TestQuotaAndAnAlteredArchive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h := mirror.NewMemory(), archives()
		update := func(entries int64) *mirror.Report {
			t.Helper()
			time.Sleep(time.Hour)
			m := newMirror(store, h)
			m.Quota.Entries, m.Revalidate = entries, true
			changes := polled(t, m, aURL)
			return changes
		}
		require.Equal(t, feedhistory.VerdictWhole, update(0).Feed.Verdict)
		h.answer["http://a.example/2"] = document(prev("/1"), "2", "2b")
		changes := update(7)
		require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
		require.Equal(t, "http://a.example/2", changes.Feed.Ledger.Gaps()[0].URL)
		m := newMirror(store, h)
		changes = polled(t, m, aURL)
		require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
		require.Contains(t, held(t, store, aURL), "2b")
		testUsage(t, store, aURL, "")
	})
}

// What a source brings must fit, too. Until it does, its mark is not stored.
func TestQuotaOfASource(t *testing.T) {
	store := mirror.NewMemory()
	merge := func(entries int64) *mirror.Report {
		t.Helper()
		m := newMirror(store, archives())
		m.Quota.Entries = entries
		doc := func(ids ...string) *feedhistory.Document {
			var b strings.Builder
			for _, id := range ids {
				fmt.Fprintf(&b, `<entry><id>%s</id><updated>2005-01-01T00:00:00Z</updated></entry>`, id)
			}
			doc, err := feedhistory.Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom">`+b.String()+`</feed>`), aURL)
			require.NoError(t, err)
			return doc
		}
		changes, err := m.Keep(t.Context(), aURL, mirror.Source{
			Name:     "test",
			Readings: feedhistory.Readings(doc("3"), doc("2", "1"), doc("0")),
			End:      func() (json.RawMessage, bool, time.Time) { return json.RawMessage(`"done"`), true, time.Time{} },
		})
		require.NoError(t, err)
		return changes
	}
	for range 2 {
		changes := merge(2)
		require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
		require.Len(t, changes.Feed.Ledger.Gaps(), 1)
		require.ErrorIs(t, changes.Feed.Ledger.Gaps()[0].Err, mirror.ErrQuota)
		require.Len(t, held(t, store, aURL), 1)
		require.Empty(t, feedOf(t, store, aURL).Mark)
	}
	changes := merge(0)
	require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
	require.Len(t, held(t, store, aURL), 4)
	require.NotEmpty(t, feedOf(t, store, aURL).Mark)
}

// A negative quota sets no limit.
func TestNoQuota(t *testing.T) {
	store := mirror.NewMemory()
	m := newMirror(store, archives())
	m.Quota = mirror.Quota{Bytes: -1, Entries: -1}
	changes := polled(t, m, aURL)
	require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
}

// Links to documents that do not exist do not pile up without limit.
func TestPendingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, n := mirror.NewMemory(), new(atomic.Int64)
		h := &host{answer: map[string]http.HandlerFunc{aURL: func(w http.ResponseWriter, r *http.Request) {
			document(prev(fmt.Sprintf("/%d", n.Add(1))), "1")(w, r)
		}}}
		f := &mirror.Feed{URL: aURL}
		var debts []any
		for n := range 999 {
			debts = append(debts, map[string]any{
				"kind": "document", "url": fmt.Sprintf("http://a.example/old/%d", n), "message": "old", "tries": 9, "missing": true, "retry": time.Now().Add(7 * 24 * time.Hour),
			})
		}
		text, err := json.Marshal(map[string]any{"debts": debts})
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &f.Ledger))
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f}))
		for range 5 {
			time.Sleep(time.Hour)
			changes := polled(t, newMirror(store, h), aURL)
			require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
		}
		require.Equal(t, 1000, feedOf(t, store, aURL).Ledger.Pending())
	})
}
