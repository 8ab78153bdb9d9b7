package mirror_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A brings is a source of five documents with one entry each. It ends with a gap, or with
// err, if these are not nil.
type brings struct {
	from, to int
	gap      *feedhistory.Gap
	err      error
	at       int
}

func (b *brings) source(t *testing.T) mirror.Source {
	return mirror.Source{
		Name: "example",
		Readings: func(yield func(*feedhistory.Reading, error) bool) {
			for b.at = b.from; b.at < b.to; b.at++ {
				text := fmt.Sprintf(`<rss version="2.0"><channel><item><guid>%d</guid></item></channel></rss>`, b.at)
				doc, err := feedhistory.Parse(strings.NewReader(text), fmt.Sprintf("https://example.org/%d", b.at))
				require.NoError(t, err)
				doc.Response.Requested = doc.URL
				if !yield(&feedhistory.Reading{Document: doc}, nil) {
					return
				}
			}
			if b.gap != nil {
				yield(&feedhistory.Reading{Gaps: []*feedhistory.Gap{b.gap}}, nil)
			}
			if b.err != nil {
				yield(nil, b.err)
			}
		},
		Mark: func() json.RawMessage { return json.RawMessage(fmt.Sprint(b.at + 1)) },
		End:  func() (json.RawMessage, bool, time.Time) { return json.RawMessage("99"), true, time.Unix(1, 0) },
	}
}

// A source that is cut short leaves a gap, and a mark that says how far it
// came. One that goes on from there to its end leaves neither.
func TestMergeCutShort(t *testing.T) {
	const url = "https://example.org/feed"
	for name, err := range map[string]error{
		"interrupted": context.Canceled,
		"broken":      errors.New("the source's own"),
	} {
		t.Run(name, func(t *testing.T) {
			m := &mirror.Mirror{Store: mirror.NewMemory()}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b := &brings{from: 0, to: 3, err: err}
			src := b.source(t)
			src.Readings = feedtest.Watch(src.Readings, func(_ *feedhistory.Reading, err error) {
				if errors.Is(err, context.Canceled) {
					cancel()
				}
			})
			_, err := m.Keep(ctx, url, src)
			require.ErrorIs(t, err, b.err)
			feed, err := m.Store.Feed(t.Context(), url)
			require.NoError(t, err)
			require.Equal(t, feedhistory.VerdictPartial, feed.Verdict)
			require.Len(t, feed.Ledger.Debts(), 1)
			require.Equal(t, feedhistory.ReasonInterrupted, feed.Ledger.Debts()[0].Gap.Reason)
			require.GreaterOrEqual(t, feed.Entries, int64(2))
			require.Equal(t, fmt.Sprint(feed.Entries), string(feed.Mark))

			changes, err := m.Keep(t.Context(), url, (&brings{from: int(feed.Entries), to: 5}).source(t))
			require.NoError(t, err)
			require.Empty(t, changes.Feed.Ledger.Gaps())
			feed, err = m.Store.Feed(t.Context(), url)
			require.NoError(t, err)
			require.Equal(t, feedhistory.VerdictWhole, feed.Verdict)
			require.Equal(t, "99", string(feed.Mark))
			require.Equal(t, int64(5), feed.Entries)
			asOf, counted, ok := feed.Ledger.Proof()
			require.True(t, ok)
			require.Equal(t, int64(5), counted)
			require.True(t, asOf.Equal(time.Unix(1, 0)))
		})
	}
}

// A gap that a source has left is closed when its document comes, or when the
// source proves that it has brought everything. With Adds, nothing else closes
// it.
func TestMergeKeepsGaps(t *testing.T) {
	const url = "https://example.org/feed"
	missing := &feedhistory.Gap{URL: "https://example.org/1", Reason: feedhistory.ReasonStatus, Err: errors.New("500"), Found: time.Now()}
	for _, test := range []struct {
		name   string
		adds   bool
		proven bool
		from   int
		gaps   int
	}{
		{"anew", false, false, 3, 0},
		{"adds", true, false, 3, 1},
		{"adds the document", true, false, 1, 0},
		{"proven", true, true, 3, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &mirror.Mirror{Store: mirror.NewMemory()}
			changes, err := m.Keep(t.Context(), url, (&brings{from: 0, to: 1, gap: missing}).source(t))
			require.NoError(t, err)
			require.Len(t, changes.Feed.Ledger.Gaps(), 1)
			src := (&brings{from: test.from, to: 4}).source(t)
			src.Adds, src.End = test.adds, func() (json.RawMessage, bool, time.Time) { return nil, test.proven, time.Time{} }
			changes, err = m.Keep(t.Context(), url, src)
			require.NoError(t, err)
			require.Len(t, changes.Feed.Ledger.Gaps(), test.gaps, "%v", changes.Feed.Ledger.Gaps())
		})
	}
}

// Where the gap of a source is all that an archived feed lacks, the feed is whole once it is paid: no
// poll need follow.
func TestMergePays(t *testing.T) {
	m := newMirror(mirror.NewMemory(), programSite{
		"/feed": func() string { return numbered(`<link rel="prev-archive" href="/1"/>`, 3, 2) },
		"/1":    func() string { return numbered(`<fh:archive/>`, 1) },
	})
	polled(t, m, programURL)
	missing := &feedhistory.Gap{URL: "https://example.org/1", Reason: feedhistory.ReasonStatus, Err: errors.New("500"), Found: time.Now()}
	for _, gap := range []*feedhistory.Gap{missing, nil} {
		changes, err := m.Keep(t.Context(), programURL, (&brings{from: 0, to: 1, gap: gap}).source(t))
		require.NoError(t, err)
		require.Equal(t, gap == nil, changes.Feed.Verdict == feedhistory.VerdictWhole)
		require.Equal(t, gap == nil, len(changes.Feed.Ledger.Gaps()) == 0)
	}
}

// An imported history of which a part is missing, though nobody knows which, does not become whole
// by what a source brings.
func TestMergeIntoImport(t *testing.T) {
	var lines strings.Builder
	history := &feedhistory.History{Kind: feedhistory.KindArchived}
	require.NoError(t, mirror.ExportHistory(&lines, programURL, history, feedhistory.VerdictPartial, false))
	require.NoError(t, mirror.ExportEnd(&lines))
	m := newMirror(mirror.NewMemory(), programSite{})
	_, err := mirror.Import(t.Context(), m.Store, strings.NewReader(lines.String()), false)
	require.NoError(t, err)
	changes, err := m.Keep(t.Context(), programURL, (&brings{from: 0, to: 1}).source(t))
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
}
