package suite_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/conformance/suite"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

func cases(t testing.TB) []*suite.Case {
	t.Helper()
	cases, err := allCases()
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	return slices.Clone(cases)
}

var allCases = sync.OnceValues(suite.Cases)

// client returns the client for the tests: the default one, except for the time
// between two tries.
func client() *feedhistory.Client {
	return &feedhistory.Client{AllowPrivate: true, Tries: 2, MaxWait: time.Millisecond}
}

// walked is the library without a mirror.
func walked(ctx context.Context, url, _ string) (*suite.Result, error) {
	h, err := client().Fetch(ctx, url)
	if h == nil {
		return &suite.Result{Failed: err != nil}, nil
	}
	r := &suite.Result{Verdict: h.Verdict().String(), Gaps: gaps(h.Gaps), Deleted: []string{}}
	for _, e := range h.Entries {
		r.Entries = append(r.Entries, suite.ReaderEntry{ID: e.ID, Title: e.Title().Plain()})
	}
	for _, d := range h.Deleted {
		r.Deleted = append(r.Deleted, d.Ref)
	}
	return r, nil
}

// mirrors is the library with a mirror for each state.
func mirrors() suite.Reader {
	var kept sync.Map
	return func(ctx context.Context, url, state string) (*suite.Result, error) {
		m, _ := kept.LoadOrStore(state, &mirror.Mirror{Store: mirror.NewMemory(), Client: client()})
		return mirrored(ctx, m.(*mirror.Mirror), url)
	}
}

func mirrored(ctx context.Context, m *mirror.Mirror, url string) (*suite.Result, error) {
	feed, err := m.Store.Feed(ctx, url)
	if err == nil && !suite.Due(ctx) && !feed.Due(time.Now()) {
		return kept(ctx, m, &suite.Result{})
	}
	changes, err := m.Update(ctx, url)
	if errors.Is(err, mirror.ErrWaits) {
		return kept(ctx, m, &suite.Result{})
	}
	if changes == nil {
		return nil, errors.Join(errors.New("no changes"), err)
	}
	r := &suite.Result{Verdict: changes.Feed.Verdict.String(), Gaps: gaps(changes.Feed.Ledger.Gaps())}
	if _, err := kept(ctx, m, r); err != nil {
		return nil, err
	}
	if cmp.Or(err, changes.Failure) != nil {
		r.Failed, r.Gaps = len(r.Entries) == 0, append(r.Gaps, url)
	}
	return r, nil
}

// kept adds what a mirror has to a result.
func kept(ctx context.Context, m *mirror.Mirror, r *suite.Result) (*suite.Result, error) {
	for record, err := range m.Store.Entries(ctx, mirror.Query{}) {
		if err != nil {
			return nil, err
		}
		e, err := record.Entry()
		if err != nil {
			return nil, err
		}
		r.Entries = append(r.Entries, suite.ReaderEntry{ID: e.ID, Title: e.Title().Plain()})
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
func polled(t testing.TB) (polled, once []*suite.Case) {
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
func said(t testing.TB, r *suite.Report, warnings bool) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WriteText(&b, warnings))
	return b.String()
}

// This library meets all requirements, at all levels, except those owed, and reports everything.
//
// Duties: 5005#1, 5005#3, 5005#4, 5005#7, 5005#13, 5005#17, 5005#18, 5005#19, 5005#20, 5005#21, 5005#22,
// 5005#23, 5005#24, 5005#25, 5005#26, 5005#28.
func TestOurs(t *testing.T) {
	t.Parallel()
	polled, once := polled(t)
	var warned []string
	for _, test := range []struct {
		reader suite.Reader
		cases  []*suite.Case
		silent int // a feed that does not exist has no gaps
	}{{walked, once, 1}, {mirrors(), polled, 0}} {
		report, err := suite.Run(t.Context(), test.reader, test.cases, &suite.Options{Timeout: patience})
		require.NoError(t, err)
		silent := 0
		for _, level := range suite.Levels {
			s := report.Scores[level]
			require.Equal(t, s.MustAll, s.Must, said(t, report, true))
			silent += s.Silent
		}
		for _, trial := range report.Trials {
			for _, f := range trial.Assessments {
				if f.Outcome == suite.Warned {
					warned = append(warned, fmt.Sprintf("%s %d: %s", trial.Name, f.Poll, f.Requirement))
				}
			}
		}
		require.LessOrEqual(t, silent, test.silent, said(t, report, true))
	}
	require.Equal(t, owed, warned)
}

// owed are the requirements this library does not meet, on purpose: a known archive is asked
// again, conditionally, while one of its links leads nowhere, because it may be mended.
var owed = []string{"polls/archive-fails-for-a-while 3: should request /3.atom 0"}

// A mirror that polls once also meets every must.
func TestOursMirrored(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	_, once := polled(t)
	report, err := suite.Run(t.Context(), mirrors(), once, &suite.Options{Timeout: patience})
	require.NoError(t, err)
	require.False(t, report.Failed(), said(t, report, false))
}

// stricts returns a reader with the given faults for each state.
func stricts(f faults) suite.Reader {
	var kept sync.Map
	return func(_ context.Context, url, state string) (*suite.Result, error) {
		s, _ := kept.LoadOrStore(state, &strict{faults: f})
		return s.(*strict).read(url), nil
	}
}

// The suite does not fail a reader that reads only well-formed documents, and
// stops at the first error.
func TestStrict(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	report, err := suite.Run(t.Context(), stricts(faults{}), cases(t), &suite.Options{Timeout: patience})
	require.NoError(t, err)
	require.False(t, report.Failed(), said(t, report, false))
}

// Wrong readers are found out, at the level of their fault.
func TestWrong(t *testing.T) {
	for _, test := range []struct {
		name   string
		faults faults
		level  string
		worst  suite.Outcome
		at     string // a case that shows it
	}{
		{"reads one document", faults{oneDocument: true}, suite.LevelEntries, suite.Failed, "walk/archived"},
		{"leaves out the last archive", faults{skipsLast: true}, suite.LevelEntries, suite.Failed, "walk/archived"},
		{"keeps every copy", faults{keepsAll: true}, suite.LevelEntries, suite.Failed, "walk/duplicate-newer-in-the-feed"},
		{"keeps the oldest copy", faults{keepsOldest: true}, suite.LevelEntries, suite.Failed, "walk/duplicate-newer-in-the-feed"},
		{"keeps the copy it reads last", faults{lastCopy: true}, suite.LevelEntries, suite.Failed, "walk/duplicate-same-time"},
		{"compares times as text", faults{textTimes: true}, suite.LevelEntries, suite.Failed, "walk/duplicate-zones"},
		{"ignores zones", faults{ignoresZones: true}, suite.LevelEntries, suite.Failed, "walk/duplicate-zones"},
		{"ignores the document's time", faults{ignoresDocumentTime: true}, suite.LevelEntries, suite.Failed, "walk/duplicate-same-time-newer-archive"},
		{"dates by publication", faults{usesPublished: true}, suite.LevelEntries, suite.Failed, "walk/published-does-not-date"},
		{"stops at known entries", faults{stopsAtKnown: true}, suite.LevelEntries, suite.Failed, "walk/archive-of-known-entries"},
		{"stops at known entries, polled", faults{stopsAtKnown: true}, suite.LevelState, suite.Failed, "polls/archives-appear-behind-known-entries"},
		{"identifies items by their link", faults{identifiesByLink: true}, suite.LevelEntries, suite.Failed, "walk/rss-guid-not-link"},
		{"follows the links of another feed", faults{readsAnySource: true}, suite.LevelVerdict, suite.Failed, "walk/links-in-source"},
		{"ignores deletions", faults{ignoresDeletions: true}, suite.LevelEntries, suite.Warned, "walk/tombstone"},
		{"resolves against the feed", faults{baseIsFeed: true}, suite.LevelEntries, suite.Failed, "walk/base-after-a-redirect"},
		{"normalises ids", faults{lowerCase: true}, suite.LevelEntries, suite.Failed, "walk/ids-that-nearly-match"},
		{"always says whole", faults{alwaysWhole: true}, suite.LevelVerdict, suite.Failed, "walk/archive-404"},
		{"never says whole", faults{alwaysPartial: true}, suite.LevelVerdict, suite.Failed, "walk/archived"},
		{"hides what is missing", faults{noGaps: true}, suite.LevelVerdict, suite.Failed, "walk/archive-404"},
		{"follows loops", faults{loops: true}, suite.LevelRequests, suite.Warned, "walk/cycle-of-three-archives"},
		{"forgets", faults{forgets: true}, suite.LevelState, suite.Failed, "polls/plain"},
		{"has the last poll only", faults{deletes: true}, suite.LevelState, suite.Failed, "polls/archived"},
		{"asks for all again", faults{asksAllAlways: true}, suite.LevelState, suite.Warned, "polls/archived"},
		{"keeps what a complete feed drops", faults{followsComplete: true}, suite.LevelState, suite.Failed, "polls/complete"},
		{"keeps what a complete feed of archives drops", faults{followsComplete: true}, suite.LevelState, suite.Failed, "polls/archived-then-complete"},
		{"ignores xml:base on a link", faults{ignoresBaseOnLink: true}, suite.LevelEntries, suite.Failed, "walk/base-on-the-link-itself"},
		{"does not know relations as URIs", faults{ignoresURIs: true}, suite.LevelEntries, suite.Failed, "walk/relations-as-uris"},
		{"strips the final slash of ids", faults{stripsSlash: true}, suite.LevelEntries, suite.Failed, "walk/ids-that-differ-in-a-final-slash"},
		{"resolves ids as URLs", faults{resolvesIDs: true}, suite.LevelEntries, suite.Failed, "walk/ids-that-differ-in-a-final-slash"},
		{"ignores lastBuildDate", faults{ignoresDocumentTime: true}, suite.LevelEntries, suite.Failed, "walk/lastbuilddate-as-document-time"},
		{"calls whole what its limit cut short", faults{limit: 100}, suite.LevelVerdict, suite.Failed, "walk/archived-beyond-a-limit"},
		{"calls whole the first ten documents", faults{limit: 10}, suite.LevelEntries, suite.Warned, "walk/archived-beyond-a-limit"},
		{"keeps the copy of the last page", faults{lastCopy: true}, suite.LevelEntries, suite.Failed, "walk/pages-overlap-with-an-edit"},
		{"stays at the archive that it is given", faults{staysAtArchive: true}, suite.LevelEntries, suite.Warned, "walk/archive-given-first"},
		{"ignores pages", faults{ignoresPages: true}, suite.LevelEntries, suite.Failed, "walk/paged"},
		{"calls pages whole", faults{pagesAreWhole: true}, suite.LevelVerdict, suite.Failed, "walk/paged"},
		{"calls a window whole", faults{windowIsWhole: true}, suite.LevelVerdict, suite.Failed, "walk/plain"},
		{"ignores fh:complete", faults{ignoresComplete: true}, suite.LevelVerdict, suite.Failed, "walk/complete"},
		{"reads marks of entries", faults{flagsAnywhere: true}, suite.LevelVerdict, suite.Failed, "walk/complete-flag-in-an-entry"},
		{"reads links of Atom only", faults{linksOfAtomOnly: true}, suite.LevelEntries, suite.Failed, "walk/archived-rss"},
		{"reads links before entries only", faults{linksBeforeEntries: true}, suite.LevelEntries, suite.Failed, "walk/links-after-the-entries"},
		{"stays on one host", faults{oneHost: true}, suite.LevelEntries, suite.Warned, "walk/other-origin"},
		{"stops at an empty archive", faults{stopsAtEmpty: true}, suite.LevelVerdict, suite.Failed, "walk/empty-archives-in-a-row"},
		{"forgets what failed", faults{forgetsPending: true}, suite.LevelState, suite.Failed, "polls/archive-fails-for-a-while"},
		{"deletes for ever", faults{deletesForEver: true}, suite.LevelEntries, suite.Failed, "walk/tombstone-stale"},
		{"does not notice a missed window", faults{ignoresMissed: true}, suite.LevelState, suite.Warned, "polls/plain"},
		{"takes a 404 for the end", faults{absenceIsTheEnd: true}, suite.LevelVerdict, suite.Failed, "walk/archive-404"},
		{"reads the first hundred entries", faults{firstHundred: true}, suite.LevelEntries, suite.Failed, "walk/many-entries"},
		{"keeps the older copy in a document", faults{keepsOldest: true}, suite.LevelEntries, suite.Failed, "walk/duplicate-in-one-document"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			shown, err := suite.Match(cases(t), test.at)
			require.NoError(t, err)
			report, err := suite.Run(t.Context(), stricts(test.faults), shown, &suite.Options{Timeout: patience})
			require.NoError(t, err)
			found := false
			for _, f := range report.Trials[0].Assessments {
				found = found || f.Level == test.level && f.Outcome == test.worst
			}
			require.True(t, found, said(t, report, true))
			right, err := suite.Run(t.Context(), stricts(faults{}), shown, &suite.Options{Timeout: patience})
			require.NoError(t, err)
			require.Equal(t, suite.Passed, right.Trials[0].Outcome, said(t, right, true))
		})
	}
}

// A reader that asks unconditionally, whenever it is called, gets a warning for
// it; it fails nothing.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	behaviour, err := suite.Match(cases(t), "behaviour/*")
	require.NoError(t, err)
	report, err := suite.Run(t.Context(), stricts(faults{}), behaviour, &suite.Options{Timeout: patience})
	require.NoError(t, err)
	outcomes := map[string]suite.Outcome{}
	for _, trial := range report.Trials {
		outcomes[strings.TrimPrefix(trial.Name, "behaviour/")] = trial.Outcome
	}
	require.Equal(t, map[string]suite.Outcome{
		"archives-once": suite.Passed, "at-once": suite.Warned, "cookie": suite.Passed, "etag": suite.Warned,
		"etag-changes": suite.Warned, "gone": suite.Warned, "gzip": suite.Passed, "last-modified": suite.Warned,
		"max-age": suite.Warned, "rss-ttl": suite.Warned, "too-many-requests": suite.Warned, "unavailable": suite.Warned,
	}, outcomes, said(t, report, true))
}

// A program that does not work has met nothing, and the report begins with that.
func TestBroken(t *testing.T) {
	t.Parallel()
	some, err := suite.Match(cases(t), "walk/archived", "walk/feed-404", "walk/cycle-of-three", "polls/plain")
	require.NoError(t, err)
	for _, test := range []struct{ name, script, reason, stderr string }{
		{"exits", "echo no such module >&2; exit 1", "exit status 1, and no JSON was printed", "no such module"},
		{"prints nothing", "true", "no JSON was printed", ""},
		{"prints something else", "echo hello", "the output is not the expected JSON", ""},
		{"hangs", "exec sleep 60", "did not finish in time", ""},
		{"is killed", "kill -9 $$", "signal: killed", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			reader := suite.Command(nil, "sh", "-c", test.script)
			report, err := suite.Run(t.Context(), reader, some, &suite.Options{Timeout: map[bool]time.Duration{true: time.Second / 5, false: patience}[test.name == "hangs"]})
			require.NoError(t, err)
			text := said(t, report, false)
			require.Regexp(t, fmt.Sprintf(`^failed in %d of %d runs\n`, report.Runs, report.Runs), text)
			require.Positive(t, report.Runs)
			require.Equal(t, test.stderr, report.Stderr)
			require.Contains(t, text, test.stderr)
			require.True(t, report.Failed())
			for _, trial := range report.Trials {
				require.Equal(t, suite.Errored, trial.Outcome, trial.Name)
				require.Contains(t, trial.Problem, test.reason)
			}
			for _, s := range report.Scores {
				require.Zero(t, s.Must+s.Should+s.Silent)
			}
		})
	}
}

// A program may exit without a word where there is no feed, but not where there is
// one.
func TestRefused(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	some, err := suite.Match(cases(t), "walk/complete", "walk/feed-404", "walk/plain")
	require.NoError(t, err)
	reads := `case $1 in *feed.atom) curl -sf "$1" >/dev/null || exit 1;; esac; case $(curl -s "$1") in *complete*) exit 1;; esac; echo '{"entries":["urn:2","urn:1"]}'`
	report, err := suite.Run(t.Context(), suite.Command(nil, "sh", "-c", reads, "sh", "{url}"), some, &suite.Options{Timeout: patience})
	require.NoError(t, err)
	require.Equal(t, 1, report.Errors)
	require.Equal(t, 3, report.Runs)
	outcomes := map[string]suite.Outcome{}
	for _, trial := range report.Trials {
		outcomes[trial.Name] = trial.Outcome
	}
	require.Equal(t, map[string]suite.Outcome{"walk/complete": suite.Errored, "walk/feed-404": suite.Passed, "walk/plain": suite.Passed}, outcomes)
}
