package feedhistory

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

const coverageHead = `<m:mirror xmlns:m="` + vocab.Coverage + `" of="http://example.org/feed" kind="archived" verdict="partial">` +
	`<m:gap reason="status" href="http://example.org/2003.atom"/><m:gap reason="eaten by the dog"/></m:mirror>`

// A document's Coverage is written again as it was read, in either format; and by a
// subscription document, not by archives.
func TestCoverageIsHandedOn(t *testing.T) {
	doc, err := Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title>`+coverageHead+`</feed>`), "http://example.net/feed")
	require.NoError(t, err)
	require.Equal(t, Partial, doc.Coverage.Verdict)
	for _, write := range []func(io.Writer, *Document) error{WriteAtom, WriteRSS} {
		text := written(t, write, doc)
		require.Contains(t, text, coverageHead)
		require.Equal(t, 1, strings.Count(text, "<m:mirror"), "once")
		require.Contains(t, written(t, write, NewSubscription(doc, nil, "http://example.com/", "")), coverageHead)
		require.NotContains(t, written(t, write, NewArchive(doc, nil, DocumentLinks{Self: "http://example.com/1"})), "m:mirror")
	}
}

func written(t *testing.T, write func(io.Writer, *Document) error, d *Document) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, write(&b, d))
	return b.String()
}

// A history that is written as one document declares what is missing, whether that was
// found here or declared by the publisher.
func TestHistoryCoverage(t *testing.T) {
	doc, err := Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title>`+coverageHead+`</feed>`), "http://example.net/feed")
	require.NoError(t, err)
	own := &Gap{URL: "http://example.net/1", Reason: ReasonStatus, Err: errors.New("404")}
	h, err := Merge(func(yield func(*Document, error) bool) { _ = yield(doc, nil) && yield(nil, own) })
	require.NoError(t, err)
	require.Len(t, h.Gaps, 3)

	again, err := Parse(strings.NewReader(written(t, WriteAtom, h.Document())), "http://example.com/")
	require.NoError(t, err)
	require.Equal(t, Partial, again.Coverage.Verdict)
	require.Equal(t, "http://example.net/feed", again.Coverage.Of)
	require.Len(t, again.Declared(), 3)
	require.ErrorContains(t, again.Declared()[1], "eaten by the dog")

	doc.Coverage = nil
	h, err = Merge(feedtest.Values(doc))
	require.NoError(t, err)
	require.Nil(t, h.Document().Coverage, "a window needs no words of ours")
}

// If the chain has moved, the second reading of a subscription document may declare
// something else: the worse verdict counts.
func TestCoverageOfASecondReading(t *testing.T) {
	first, second := &Document{URL: "http://example.net/feed", Archive: true}, &Document{URL: "http://example.net/feed", reread: true}
	second.Coverage = &Coverage{Verdict: Partial, Gaps: []*Gap{{URL: "http://example.org/1", Err: declaredGap("status")}}}
	h, err := Merge(feedtest.Values(first, second))
	require.NoError(t, err)
	require.Equal(t, Partial, h.Verdict())
	require.Len(t, h.Gaps, 1)
}

// Gaps are the same if they concern the same document for the same reason, whatever their
// errors say.
func TestCoverageJoin(t *testing.T) {
	const url = "http://example.org/1"
	first := &Coverage{Gaps: []*Gap{
		{URL: url, Reason: ReasonStatus, Err: &StatusError{URL: url, Status: 503, At: time.Unix(1, 0)}},
		{URL: url, Reason: ReasonDeclared, Err: declaredGap("eaten by the dog")},
	}}
	second := &Coverage{Gaps: []*Gap{
		{URL: url, Reason: ReasonStatus, Err: &StatusError{URL: url, Status: 503, At: time.Unix(2, 0)}},
		{URL: url, Reason: ReasonLoop, Err: first.Gaps[0].Err},
		{URL: url, Reason: ReasonDeclared, Err: declaredGap("eaten by the dog")},
		{URL: url, Reason: ReasonDeclared, Err: declaredGap("lost")},
		{URL: url, Reason: ReasonDeclared},
	}}
	var words []string
	for _, g := range first.join(second).Gaps {
		words = append(words, g.word())
	}
	require.Equal(t, []string{"status", "eaten by the dog", "loop", "lost", "declared"}, words)
}

// Two gaps of one document with different words of the publisher both count.
func TestDeclaredWords(t *testing.T) {
	doc, err := Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><m:mirror xmlns:m="`+vocab.Coverage+
		`" verdict="partial"><m:gap reason="burnt"/><m:gap reason="lost"/><m:gap reason="lost"/></m:mirror></feed>`), "http://example.net/feed")
	require.NoError(t, err)
	h, err := Merge(feedtest.Values(doc))
	require.NoError(t, err)
	require.Len(t, h.Gaps, 2)
}
