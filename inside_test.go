package feedhistory

import (
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/stretchr/testify/require"
)

// If the chain has moved, the second reading of a subscription document may declare
// something else: the worse verdict counts.
func TestCoverageOfASecondReading(t *testing.T) {
	first, second := &Document{URL: "http://example.net/feed", Archive: true}, &Document{URL: "http://example.net/feed"}
	second.Coverage = &Coverage{Verdict: Partial, Gaps: []*Gap{{URL: "http://example.org/1", Err: declaredGap("status")}}}
	h, err := Merge(feedtest.Values(&Reading{Document: first, ofWalk: true}, &Reading{Document: second, reread: true}, &Reading{End: true}))
	require.NoError(t, err)
	require.Equal(t, Partial, h.Verdict())
	require.Len(t, h.Gaps, 1)
}

// Gaps are the same if they concern the same document for the same reason, whatever their
// errors say.
func TestCoverageJoin(t *testing.T) {
	const url = "http://example.org/1"
	first := &Coverage{Gaps: []*Gap{
		{URL: url, Reason: ReasonStatus, Err: &FetchError{Reason: ReasonStatus, URL: url, Status: 503, RetryAt: time.Unix(1, 0)}},
		{URL: url, Reason: ReasonDeclared, Err: declaredGap("eaten by the dog")},
	}}
	second := &Coverage{Gaps: []*Gap{
		{URL: url, Reason: ReasonStatus, Err: &FetchError{Reason: ReasonStatus, URL: url, Status: 503, RetryAt: time.Unix(2, 0)}},
		{URL: url, Reason: ReasonLoop, Err: first.Gaps[0].Err},
		{URL: url, Reason: ReasonDeclared, Err: declaredGap("eaten by the dog")},
		{URL: url, Reason: ReasonDeclared, Err: declaredGap("lost")},
		{URL: url, Reason: ReasonDeclared},
	}}
	var words []string
	for _, g := range first.join(second).Gaps {
		words = append(words, g.Word())
	}
	require.Equal(t, []string{"status", "eaten by the dog", "loop", "lost", "declared"}, words)
}

// The places of texts that Parse has found are correct, and none is missing: an entry whose texts
// are searched for says the same.
func TestTextPlaces(t *testing.T) {
	places := 0
	for _, pattern := range []string{"testdata/parse/*", "testdata/rfc5005/*", "testdata/decode/*"} {
		for _, file := range feedtest.Glob(t, pattern) {
			data := feedtest.ReadFile(t, file)
			doc, _ := Parse(strings.NewReader(string(data)), "http://example.net/dir/feed")
			if doc == nil {
				continue
			}
			for _, e := range doc.Entries {
				twin := *e
				twin.texts = feedxml.Places{}
				if e.texts != twin.texts {
					places++
				}
				require.Equal(t, []Text{twin.Title(), twin.Summary(), twin.Content()}, []Text{e.Title(), e.Summary(), e.Content()}, file)
			}
		}
	}
	require.Greater(t, places, 100)
}
