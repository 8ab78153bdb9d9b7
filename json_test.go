package feedhistory_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// saidBy returns everything an entry says, apart from the form of its elements.
func saidBy(e *Entry) []any {
	authors := e.Authors()
	for i := range authors {
		authors[i].Inherited = false // an entry in JSON stands alone
	}
	source := []any{}
	if s := e.Source(); s != nil {
		self, _ := s.Links.Rel("self")
		source = []any{s.ID, s.Title, self.Href, s.Authors}
	}
	links := slices.Clone(e.Links)
	for i := range links {
		links[i].Href = strings.ReplaceAll(links[i].Href, "<", "%3C") // no element can have it
	}
	return []any{
		e.ID, e.WeakID, e.KeptBy, e.Updated.UTC(), e.Published.UTC(), links, e.Title().Plain(), e.Summary().HTML(), e.Content().HTML(), authors,
		e.Contributors(), e.Categories(), e.Rights().Plain(), source, e.Comments(), e.Language(), e.Enclosures(), e.Image(), len(e.Extensions()),
	}
}

// An entry in JSON, and a document, say the same when they are read back, and once more.
func TestJSON(t *testing.T) {
	for _, pattern := range []string{"testdata/rich/*", "testdata/decode/*", "testdata/parse/*.atom", "testdata/parse/*.rss"} {
		for _, file := range feedtest.Glob(t, pattern) {
			t.Run(filepath.Base(file), func(t *testing.T) {
				doc, _ := Parse(strings.NewReader(string(feedtest.ReadFile(t, file))), "http://a.example/feed")
				if doc == nil {
					t.Skip("it cannot be read")
				}
				doc.Response.Received = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
				data, err := json.Marshal(doc)
				require.NoError(t, err)
				var again Document
				require.NoError(t, json.Unmarshal(data, &again), "%s", data)
				twice, err := json.Marshal(&again)
				require.NoError(t, err)
				var third Document // a text without a language has its entry's now
				require.NoError(t, json.Unmarshal(twice, &third))
				thrice, err := json.Marshal(third)
				require.NoError(t, err)
				require.JSONEq(t, string(twice), string(thrice))
				require.Equal(t, doc.Extensions(), again.Extensions())
				require.Equal(t, doc.Authors, again.Authors)
				require.Equal(t, len(doc.Missing(doc.Kind())), len(again.Missing(again.Kind())))
				require.Len(t, again.Entries, len(doc.Entries))
				for i, e := range doc.Entries {
					want, got := saidBy(e), saidBy(again.Entries[i])
					require.Equal(t, want, got)
				}
			})
		}
	}
}

// A history in JSON has its entries, deletions and gaps, and the same verdict.
func TestHistoryJSON(t *testing.T) {
	doc := rich(t, "atom")
	gap := NewGap("http://a.example/2", errors.New("it is gone"))
	h, err := Merge(feedtest.Values(&Reading{Document: doc, Gaps: []*Gap{gap}}))
	require.NoError(t, err)
	data, err := json.Marshal(h)
	require.NoError(t, err)
	var again History
	require.NoError(t, json.Unmarshal(data, &again))
	require.Equal(t, h.Verdict(), again.Verdict())
	require.Equal(t, h.Kind, again.Kind)
	require.Equal(t, h.Documents, again.Documents)
	require.Equal(t, h.Head.Title, again.Head.Title)
	require.Len(t, again.Gaps, 1)
	require.Equal(t, h.Gaps[0].Error(), again.Gaps[0].Error())
	require.Len(t, again.Entries, len(h.Entries))
	for i, e := range h.Entries {
		require.Equal(t, saidBy(e), saidBy(again.Entries[i]))
	}
	require.Error(t, json.Unmarshal([]byte(`{"title":"no id"}`), new(Entry)))
	require.Error(t, json.Unmarshal([]byte(`{"id":"urn:1","updated":"yesterday"}`), new(Entry)))
}
