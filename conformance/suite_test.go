package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/conformance"
	"github.com/feedhistory/feedhistory/mirror"
)

func cases(t testing.TB) []*conformance.Case {
	t.Helper()
	cases, err := conformance.Cases()
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	return cases
}

// client returns the client for the tests: the default one, except for the time
// between two tries.
func client() *feedhistory.Client {
	return &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}, Retry: feedhistory.Retry{Tries: 2, Base: time.Millisecond}}
}

// walked is the library without a mirror.
func walked(ctx context.Context, url, _ string) (*conformance.Result, error) {
	h, err := client().Fetch(ctx, url)
	if h == nil {
		return &conformance.Result{Failed: err != nil}, nil
	}
	r := &conformance.Result{Verdict: h.Verdict().String(), Gaps: gaps(h.Gaps), Deleted: []string{}}
	for _, e := range h.Entries {
		r.Entries = append(r.Entries, conformance.Entry{ID: e.ID, Title: e.Title().Plain()})
	}
	for _, d := range h.Deleted {
		r.Deleted = append(r.Deleted, d.Ref)
	}
	return r, nil
}

// mirrors is the library with a mirror for each state.
func mirrors() conformance.Reader {
	var kept sync.Map
	return func(ctx context.Context, url, state string) (*conformance.Result, error) {
		m, _ := kept.LoadOrStore(state, &mirror.Mirror{Store: &mirror.Memory{}, Client: client()})
		return mirrored(ctx, m.(*mirror.Mirror), url)
	}
}

func mirrored(ctx context.Context, m *mirror.Mirror, url string) (*conformance.Result, error) {
	changes, err := m.Update(ctx, url)
	if changes == nil {
		return nil, errors.Join(errors.New("no changes"), err)
	}
	r := &conformance.Result{Verdict: changes.Verdict.String(), Gaps: gaps(changes.Gaps)}
	for record, err := range m.Store.Entries(ctx, mirror.Query{}) {
		if err != nil {
			return nil, err
		}
		e, err := record.Entry()
		if err != nil {
			return nil, err
		}
		r.Entries = append(r.Entries, conformance.Entry{ID: e.ID, Title: e.Title().Plain()})
	}
	if cmp.Or(err, changes.Failure) != nil {
		r.Failed, r.Gaps = len(r.Entries) == 0, append(r.Gaps, url)
	}
	return r, nil
}

func gaps(gaps []*feedhistory.Gap) []string {
	urls := []string{}
	for _, g := range gaps {
		urls = append(urls, g.URL)
	}
	return urls
}

// polled returns the cases with several polls, and the others.
func polled(t testing.TB) (polled, once []*conformance.Case) {
	for _, c := range cases(t) {
		if len(c.Polls) > 0 {
			polled = append(polled, c)
		} else {
			once = append(once, c)
		}
	}
	return polled, once
}

// patience is how long a poll may take on however busy a machine.
const patience = 5 * time.Minute

// said returns what is wrong as text.
func said(t testing.TB, r *conformance.Report, warnings bool) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WriteText(&b, warnings))
	return b.String()
}

// This library meets all requirements, at all levels, and reports everything.
func TestOurs(t *testing.T) {
	t.Parallel()
	polled, once := polled(t)
	for _, test := range []struct {
		reader conformance.Reader
		cases  []*conformance.Case
		silent int // a feed that does not exist has no gaps
	}{{walked, once, 1}, {mirrors(), polled, 0}} {
		report, err := conformance.Run(t.Context(), test.reader, test.cases, &conformance.Options{Timeout: patience})
		require.NoError(t, err)
		silent := 0
		for _, level := range conformance.Levels {
			s := report.Scores[level]
			require.Equal(t, s.MustAll, s.Must, said(t, report, true))
			require.Equal(t, s.ShouldAll, s.Should, said(t, report, true))
			silent += s.Silent
		}
		require.LessOrEqual(t, silent, test.silent, said(t, report, true))
	}
}

// A mirror that polls once also meets every must.
func TestOursMirrored(t *testing.T) {
	t.Parallel()
	_, once := polled(t)
	report, err := conformance.Run(t.Context(), mirrors(), once, &conformance.Options{Timeout: patience})
	require.NoError(t, err)
	require.False(t, report.Failed(), said(t, report, false))
}

// stricts returns a reader with the given faults for each state.
func stricts(f faults) conformance.Reader {
	var kept sync.Map
	return func(_ context.Context, url, state string) (*conformance.Result, error) {
		s, _ := kept.LoadOrStore(state, &strict{faults: f})
		return s.(*strict).read(url), nil
	}
}

// The suite does not fail a reader that reads only well-formed documents, and
// stops at the first error.
func TestStrict(t *testing.T) {
	t.Parallel()
	report, err := conformance.Run(t.Context(), stricts(faults{}), cases(t), &conformance.Options{Timeout: patience})
	require.NoError(t, err)
	require.False(t, report.Failed(), said(t, report, false))
}

// Wrong readers are found out, at the level of their fault.
func TestWrong(t *testing.T) {
	for _, test := range []struct {
		name   string
		faults faults
		level  conformance.Level
		worst  conformance.Outcome
		at     string // a case that shows it
	}{
		{"reads one document", faults{oneDocument: true}, conformance.Entries, conformance.Failed, "walk/archived"},
		{"leaves out the last archive", faults{skipsLast: true}, conformance.Entries, conformance.Failed, "walk/archived"},
		{"keeps every copy", faults{keepsAll: true}, conformance.Entries, conformance.Warned, "walk/duplicate-newer-in-the-feed"},
		{"keeps the oldest copy", faults{keepsOldest: true}, conformance.Entries, conformance.Warned, "walk/duplicate-newer-in-the-feed"},
		{"ignores deletions", faults{ignoresDeletions: true}, conformance.Entries, conformance.Warned, "walk/tombstone"},
		{"resolves against the feed", faults{baseIsFeed: true}, conformance.Entries, conformance.Failed, "walk/base-after-a-redirect"},
		{"normalises ids", faults{lowerCase: true}, conformance.Entries, conformance.Failed, "walk/ids-that-nearly-match"},
		{"always says whole", faults{alwaysWhole: true}, conformance.Verdict, conformance.Failed, "walk/archive-404"},
		{"never says whole", faults{alwaysPartial: true}, conformance.Verdict, conformance.Failed, "walk/archived"},
		{"hides what is missing", faults{noGaps: true}, conformance.Verdict, conformance.Failed, "walk/archive-404"},
		{"follows loops", faults{loops: true}, conformance.Requests, conformance.Failed, "walk/cycle-of-three-archives"},
		{"forgets", faults{forgets: true}, conformance.State, conformance.Failed, "polls/plain"},
		{"has the last poll only", faults{deletes: true}, conformance.State, conformance.Failed, "polls/archived"},
		{"asks for all again", faults{asksAllAlways: true}, conformance.State, conformance.Warned, "polls/archived"},
		{"keeps what a complete feed drops", faults{followsComplete: true}, conformance.State, conformance.Warned, "polls/complete"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			shown, err := conformance.Match(cases(t), test.at)
			require.NoError(t, err)
			report, err := conformance.Run(t.Context(), stricts(test.faults), shown, &conformance.Options{Timeout: patience})
			require.NoError(t, err)
			found := false
			for _, f := range report.Trials[0].Findings {
				found = found || f.Level == test.level && f.Outcome == test.worst
			}
			require.True(t, found, said(t, report, true))
			right, err := conformance.Run(t.Context(), stricts(faults{}), shown, &conformance.Options{Timeout: patience})
			require.NoError(t, err)
			require.Equal(t, conformance.Passed, right.Trials[0].Outcome, said(t, right, true))
		})
	}
}
