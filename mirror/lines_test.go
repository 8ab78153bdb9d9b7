package mirror_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// lines exports all feeds of a store.
func lines(t *testing.T, store mirror.Store) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, (&mirror.Export{Store: store}).Feeds(t.Context(), &out, store.Feeds(t.Context(), mirror.FeedQuery{})))
	return out.String()
}

// What the command printed before mirror had an Export is imported, and
// exported byte for byte, but for the memory of a search that the ledger made superfluous.
// The command escapes two characters that it shows to terminals.
func TestLinesAsBefore(t *testing.T) {
	search := regexp.MustCompile(`,"(shown|sought)":\[[^\]]*\]|,"search":"[^"]*"`)
	escaped := strings.NewReplacer("\u202e", `\u202e`, "\u0085", `\u0085`)
	for _, file := range append(feedtest.Glob(t, "testdata/raw/*.jsonl"), feedtest.Glob(t, "testdata/raw/earlier/*.jsonl")...) {
		t.Run(file, func(t *testing.T) {
			given, store := string(feedtest.ReadFile(t, file)), mirror.NewMemory()
			in := &mirror.Import{Store: store}
			require.NoError(t, in.Read(t.Context(), strings.NewReader(given)))
			require.Equal(t, 2, in.Feeds)
			require.Equal(t, strings.Count(given, `{"type":"entry"`), in.Entries)
			now := filepath.Join("testdata/raw", filepath.Base(file))
			if *update {
				require.NoError(t, os.WriteFile(now, []byte(escaped.Replace(lines(t, store))), 0o666))
			}
			require.Equal(t, search.ReplaceAllString(string(feedtest.ReadFile(t, now)), ""), escaped.Replace(lines(t, store)))

			again := &mirror.Import{Store: store}
			require.NoError(t, again.Read(t.Context(), strings.NewReader(given)))
			require.Equal(t, []int{0, 2}, []int{again.Feeds, again.Same})
		})
	}
}

// The lines of an export end with a record, which Import recognizes. Lines without it,
// which earlier versions wrote, are accepted.
func TestLinesEnd(t *testing.T) {
	for _, file := range feedtest.Glob(t, "testdata/raw/*.jsonl") {
		text, out := string(feedtest.ReadFile(t, file)), new(strings.Builder)
		require.NoError(t, new(mirror.Export).End(out))
		require.Equal(t, "{\"type\":\"end\"}\n", out.String())
		for lines, ended := range map[string]bool{text: false, text + out.String(): true, text + out.String() + text: false, out.String(): true, "": false} {
			in := &mirror.Import{Store: mirror.NewMemory()}
			require.NoError(t, in.Read(t.Context(), strings.NewReader(lines)))
			require.Equal(t, ended, in.Ended)
		}
	}
}

// Passwords do not get into lines, not even those that JSON escapes.
func TestLinesWithoutPasswords(t *testing.T) {
	for _, url := range []string{"https://ann:s%2Fecret@example.org/feed", `https://ann:<secret>\"&@example.org/feed`} {
		store := mirror.NewMemory()
		f := &mirror.Feed{URL: url, Address: "https://ann:other@example.org/moved"}
		f.Ledger.Add(mirror.Debt{URL: url})
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
	in := &mirror.Import{Store: mirror.NewMemory()}
	require.NoError(t, in.Read(t.Context(), strings.NewReader(text)))
	require.Equal(t, []int{1, 1}, []int{in.Feeds, in.Entries})
}

func TestImportErrors(t *testing.T) {
	const feed = `{"type":"feed","feed":"https://example.org/","version":1,"state":{"url":"https://example.org/","kind":"plain","verdict":"window","polls":1}}` + "\n"
	for text, want := range map[string]string{
		feed + `{"feed":"https://example.org/","id":"1","versions":[null]}`:           "line 2: the entry 1: a version is null",
		feed + `{"feed":"https://example.org/","type":"document"}`:                    "line 2: the document has no url",
		feed + `{"feed":"https://example.org/","id":"1","mirror":{"state":"erased"}}`: "",
		`null`: "line 1: no line about its feed precedes this line",
	} {
		err := (&mirror.Import{Store: mirror.NewMemory()}).Read(t.Context(), strings.NewReader(text))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*mirror.LineError))
	}
	require.EqualError(t, (&mirror.Import{}).Read(t.Context(), strings.NewReader(feed)), "mirror: Import.Store must be set")
	require.EqualError(t, (&mirror.Export{}).Feeds(context.Background(), nil, nil), "mirror: Export.Store must be set")
}
