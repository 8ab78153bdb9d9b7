package feedhistory

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// threeDocuments is an archived feed.
const threeDocuments = `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom">
  <link rel="prev-archive" href="/2.atom"/>
  <entry><id>urn:3</id></entry>
</feed>
-- /2.atom --
<feed xmlns="http://www.w3.org/2005/Atom">
  <link rel="prev-archive" href="/1.atom"/>
  <entry><id>urn:2</id></entry>
</feed>
-- /1.atom --
<feed xmlns="http://www.w3.org/2005/Atom">
  <entry><id>urn:1</id></entry>
</feed>
`

func TestWalkIsLazy(t *testing.T) {
	site := feedtest.Serve(t, threeDocuments)
	v := newVisit(t, site, "")
	walk := v.client.Walk(t.Context(), v.url, nil)
	require.Empty(t, site.Requests())
	for range 2 { // to range again starts afresh
		before := len(site.Requests())
		h, err := Merge(walk)
		require.NoError(t, err)
		require.Len(t, h.Entries, 3)
		require.Len(t, site.Requests(), before+3)
	}
}

// Leaving a walk early ends it; TestMain would notice a leak.
func TestWalkCanBeLeft(t *testing.T) {
	for leave := range 3 {
		v := newVisit(t, feedtest.Serve(t, threeDocuments), "")
		seen := 0
		for doc, err := range v.client.Walk(t.Context(), v.url, nil) {
			require.NoError(t, err)
			require.NotNil(t, doc)
			if seen++; seen > leave {
				break
			}
		}
		require.Equal(t, leave+1, seen)
	}
}

func TestWalkLeftAtAGap(t *testing.T) {
	v := newVisit(t, feedtest.Serve(t, `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/2.atom"/></feed>
`), "")
	for doc, err := range v.client.Walk(t.Context(), v.url, &WalkOptions{Pending: []string{v.site.URL + "/1.atom"}}) {
		if err == nil {
			continue
		}
		gap := feedtest.ErrorAs[*Gap](t, err)
		require.Nil(t, doc)
		require.False(t, gap.Found.IsZero())
		break
	}
}

// With a cancelled context, Fetch returns what there is, and the context's error.
func TestWalkCancelled(t *testing.T) {
	for after := range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		v := newVisit(t, feedtest.Serve(t, threeDocuments), "")
		if after == 0 {
			cancel()
		}
		seen := 0
		history, err := Merge(feedtest.Watch(v.client.Walk(ctx, v.url, nil), func(*Document, error) {
			if seen++; seen == after {
				cancel()
			}
		}))
		cancel()
		if after == 3 { // the walk was over
			require.NoError(t, err)
			require.Len(t, history.Entries, 3)
			continue
		}
		require.ErrorIs(t, err, context.Canceled)
		if after == 0 {
			require.Nil(t, history)
			continue
		}
		require.Len(t, history.Entries, after)
	}
}

// 5005#28: a hook may grant more than the budget.
func TestBudgetMore(t *testing.T) {
	for grant, want := range map[int]int{1: 1, 2: 2, 3: 3} {
		v := newVisit(t, feedtest.Serve(t, threeDocuments), "documents 1")
		asked := 0
		v.client.Budget.More = func(used Budget) (Budget, bool) {
			asked++
			require.Positive(t, used.Documents)
			require.Positive(t, used.Bytes)
			return Budget{Documents: min(used.Documents+1, grant)}, used.Documents < grant
		}
		v.walk(t.Context())
		require.NoError(t, v.err)
		require.Equal(t, want, v.history.Documents)
		require.Positive(t, asked)
		if want < 3 {
			require.Len(t, v.history.Gaps, 1)
			require.Equal(t, ReasonBudget, v.history.Gaps[0].Reason)
			continue
		}
		require.Equal(t, Whole, v.history.Verdict())
	}
}

func TestBudgetDefaults(t *testing.T) {
	require.Equal(t, Budget{Documents: 10_000, Bytes: 1 << 30, Barren: 20, Empty: 1000}, Budget{}.withDefaults())
}

func TestGet(t *testing.T) {
	v := newVisit(t, feedtest.Serve(t, threeDocuments+`
-- /cut.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><entry><id>urn:1</id></entry>{{abort}}</feed>
`), "")
	doc, err := v.client.Get(t.Context(), v.url)
	require.NoError(t, err)
	require.Len(t, doc.Entries, 1)

	doc, err = v.client.Get(t.Context(), v.site.URL+"/cut.atom")
	require.Equal(t, ReasonTruncated, reasonOf(err))
	require.Equal(t, "urn:feed", doc.ID)
	require.Len(t, doc.Entries, 1)

	doc, err = v.client.Get(t.Context(), v.site.URL+"/nowhere")
	feedtest.ErrorAs[*StatusError](t, err)
	require.Nil(t, doc)
}

// What a PseudoEntry says (5005#23).
func TestPseudoEntry(t *testing.T) {
	v := newVisit(t, feedtest.Serve(t, `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/a&amp;b.atom"/></feed>
`), "")
	v.walk(t.Context())
	require.Len(t, v.history.Gaps, 1)
	gap := v.history.Gaps[0]
	e := gap.PseudoEntry()
	require.Contains(t, e.Summary().Plain(), v.site.URL+"/a&b.atom")
	require.Contains(t, e.Summary().Plain(), "404")
	require.NotEmpty(t, e.Title().Plain())
	require.NotEmpty(t, e.ID)
	require.True(t, gap.Found.Equal(e.Updated))
	require.Equal(t, e, gap.PseudoEntry(), "the same at every call")
}

// NewsBlur reads the first hundred entries of a document.
func TestWalkManyEntries(t *testing.T) {
	v := newVisit(t, feedtest.Serve(t, `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom">
  <link rel="prev-archive" href="/1.atom"/>
  {{repeat 150 <entry><id>urn:new:%d</id></entry>}}
</feed>
-- /1.atom --
<feed xmlns="http://www.w3.org/2005/Atom">{{repeat 2000 <entry><id>urn:old:%d</id></entry>}}</feed>
`), "")
	v.walk(t.Context())
	require.NoError(t, v.err)
	require.Len(t, v.history.Entries, 2150)
}

// threePages are a paged feed.
const threePages = `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/2.atom"/><entry><id>urn:3</id></entry></feed>
-- /2.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/1.atom"/><entry><id>urn:2</id></entry></feed>
-- /1.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="previous" href="/2.atom"/><entry><id>urn:1</id></entry></feed>
`

// Last ends the pages, and nothing beyond is requested.
func TestLastEndsThePages(t *testing.T) {
	for last := 1; last <= 3; last++ {
		site := feedtest.Serve(t, threePages)
		v := newVisit(t, site, "")
		yielded := 0
		for page, err := range v.client.Walk(t.Context(), v.url, &WalkOptions{
			Last: func(page *Document) bool { return page.Entries[0].ID == "urn:"+strconv.Itoa(4-last) },
		}) {
			require.NoError(t, err)
			require.NotNil(t, page)
			yielded++
		}
		require.Equal(t, last, yielded)
		require.Len(t, site.Requests(), last)
	}
}

// Even then, a walk can continue at pages that were left out once.
func TestPendingPages(t *testing.T) {
	site := feedtest.Serve(t, threePages)
	v := newVisit(t, site, "")
	h, err := Merge(v.client.Walk(t.Context(), v.url, &WalkOptions{
		Last:         func(page *Document) bool { return page.URL == v.url },
		PendingPages: []string{site.URL + "/2.atom"},
	}))
	require.NoError(t, err)
	require.Len(t, h.Entries, 3)
	require.Len(t, site.Requests(), 3)
}
