package mirror_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

const endLine = `{"type":"end"}` + "\n"

// lines exports all feeds of a store, and returns the lines without the last, which ends them.
func lines(t *testing.T, store mirror.Store) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, mirror.Export(t.Context(), &out, store, store.Feeds(t.Context(), mirror.FeedQuery{})))
	text, ended := strings.CutSuffix(out.String(), endLine)
	require.True(t, ended)
	return text
}

// What the command printed before mirror had an Export is imported, and
// exported byte for byte, but for the memory of a search that the ledger made superfluous.
// The command escapes two characters that it shows to terminals.
func TestLinesAsBefore(t *testing.T) {
	search := regexp.MustCompile(`,"(shown|sought)":\[[^\]]*\]|,"search":"[^"]*"`)
	escaped := strings.NewReplacer("\u202e", `\u202e`, "\u0085", `\u0085`)
	for _, file := range append(feedtest.Glob(t, "testdata/raw/*.jsonl"), feedtest.Glob(t, "testdata/raw/*/*.jsonl")...) {
		t.Run(file, func(t *testing.T) {
			given, store := string(feedtest.ReadFile(t, file)), mirror.NewMemory()
			in, err := mirror.Import(t.Context(), store, strings.NewReader(given), false)
			require.NoError(t, err)
			require.Equal(t, 2, in.Feeds)
			require.Equal(t, strings.Count(given, `{"type":"entry"`), in.Entries)
			now := filepath.Join("testdata/raw", filepath.Base(file))
			if *update {
				require.NoError(t, os.WriteFile(now, []byte(escaped.Replace(lines(t, store))), 0o666))
			}
			require.Equal(t, search.ReplaceAllString(string(feedtest.ReadFile(t, now)), ""), escaped.Replace(lines(t, store)))

			again, err := mirror.Import(t.Context(), store, strings.NewReader(given), false)
			require.NoError(t, err)
			require.Equal(t, []int{0, 2}, []int{again.Feeds, again.Same})
		})
	}
}

// The lines of an export end with a record, which Import recognizes. Lines without it,
// which earlier versions wrote, are accepted.
func TestLinesEnd(t *testing.T) {
	for _, file := range feedtest.Glob(t, "testdata/raw/*.jsonl") {
		text, out := string(feedtest.ReadFile(t, file)), new(strings.Builder)
		require.NoError(t, mirror.ExportEnd(out))
		require.Equal(t, endLine, out.String())
		for lines, ended := range map[string]bool{text: false, text + out.String(): true, text + out.String() + text: false, out.String(): true, "": false} {
			in, err := mirror.Import(t.Context(), mirror.NewMemory(), strings.NewReader(lines), false)
			require.NoError(t, err)
			require.Equal(t, ended, in.Ended)
		}
	}
}

// Passwords do not get into lines, not even those that JSON escapes.
func TestLinesWithoutPasswords(t *testing.T) {
	for _, url := range []string{"https://ann:s%2Fecret@example.org/feed", `https://ann:<secret>\"&@example.org/feed`} {
		store := mirror.NewMemory()
		f := &mirror.Feed{URL: url, Address: "https://ann:other@example.org/moved"}
		f.Ledger.Add(&feedhistory.Gap{URL: url})
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f, Documents: []*mirror.DocumentRecord{{URL: url, Names: []string{url}}}}))
		text := lines(t, store)
		require.NotContains(t, text, "ecret")
		require.NotContains(t, text, "other")
		require.Contains(t, text, `"feed":"https://example.org/feed"`)
		require.Contains(t, text, `"names":["https://example.org/feed"]`)
	}
}

// Lines of types that a later version adds are ignored, wherever they come.
func TestImportIgnoresUnknownLines(t *testing.T) {
	const text = `{"type":"end","feeds":1}
{"type":"feed","feed":"https://example.org/","version":1,"state":{"url":"https://example.org/","kind":"plain","verdict":"window","polls":1}}
{"type":"new","feed":"https://example.org/","id":7}
{"feed":"https://example.org/","id":"1"}
{"type":"end"}
`
	in, err := mirror.Import(t.Context(), mirror.NewMemory(), strings.NewReader(text), false)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{in.Feeds, in.Entries})
}

// Earlier versions wrote what somebody had read and starred, too. The feeds come as they are,
// and the report counts what was left out.
func TestImportWithoutMarks(t *testing.T) {
	store, again := mirror.NewMemory(), mirror.NewMemory()
	put(t, store, "urn:feed", false, 3)
	want := lines(t, store)
	const marks = `{"type":"marks","feed":"urn:feed","id":"urn:feed#0","read":"2026-01-02T08:00:00Z","starred":"2026-01-02T08:00:00Z","labels":["a"]}` + "\n" +
		`{"type":"marks","feed":"urn:feed","id":"to come","forward":"2026-01-02T08:00:00Z","position":60000000000}` + "\n"
	for range 2 { // the second time, the feed is there already
		in, err := mirror.Import(t.Context(), again, strings.NewReader(want+marks+endLine), false)
		require.NoError(t, err)
		require.Equal(t, 2, in.Marks)
		require.True(t, in.Ended)
		require.Equal(t, want, lines(t, again))
	}
}

func TestImportErrors(t *testing.T) {
	const feed = `{"type":"feed","feed":"https://example.org/","version":1,"state":{"url":"https://example.org/","kind":"plain","verdict":"window","polls":1}}` + "\n"
	for text, want := range map[string]string{
		feed + `{"feed":"https://example.org/","id":"1","versions":[null]}`:           "line 2: the entry 1: a version is null",
		feed + `{"feed":"https://example.org/","type":"document"}`:                    "line 2: the document has no url",
		feed + `{"feed":"https://example.org/","id":"1","mirror":{"state":"erased"}}`: "",
		`null`: "line 1: no line about its feed precedes this line",
	} {
		_, err := mirror.Import(t.Context(), mirror.NewMemory(), strings.NewReader(text), false)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

// A feed that is private in the lines alone, such as those of ExportHistory, is private once
// it is imported, and the same import again finds it there; so is one that was public here.
func TestImportPrivate(t *testing.T) {
	var out bytes.Buffer
	h := &feedhistory.History{Kind: feedhistory.KindPlain}
	require.NoError(t, mirror.ExportHistory(&out, "https://example.org/", h, feedhistory.VerdictWindow, true))
	public := strings.Replace(out.String(), `"private":true,`, "", 1)
	require.NotEqual(t, public, out.String())
	for _, first := range []string{out.String(), public} {
		store := mirror.NewMemory()
		for i, text := range []string{first, out.String(), out.String()} {
			in, err := mirror.Import(t.Context(), store, strings.NewReader(text), false)
			require.NoError(t, err)
			require.Equal(t, []int{1 - min(i, 1), min(i, 1)}, []int{in.Feeds, in.Same})
		}
		f, err := store.Feed(t.Context(), "https://example.org/")
		require.NoError(t, err)
		require.True(t, f.Private)
		require.EqualValues(t, 1, f.Commits)
		_, err = mirror.Import(t.Context(), store, strings.NewReader(public), false)
		require.ErrorIs(t, err, fs.ErrExist)
		require.EqualError(t, err, "line 1: https://example.org/ is already in the store, and differs")
	}
}
