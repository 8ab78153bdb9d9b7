package feedhistory

import (
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMergeDuplicates(t *testing.T) {
	const (
		dec1 = "Mon, 01 Dec 2003 00:00:00 GMT"
		dec2 = "Tue, 02 Dec 2003 00:00:00 GMT"
		dec3 = "Wed, 03 Dec 2003 00:00:00 GMT"
	)
	rss := func(built, title, item string) string {
		if built != "" {
			built = "<lastBuildDate>" + built + "</lastBuildDate>"
		}
		return `<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/">` +
			"<channel>" + built + "<item><guid>urn:1</guid><title>" + title + "</title>" + item + "</item></channel></rss>"
	}
	atom := func(updated, title, entry string) string {
		if updated != "" {
			updated = "<updated>" + updated + "</updated>"
		}
		return `<feed xmlns="http://www.w3.org/2005/Atom">` + updated +
			"<entry><id>urn:1</id><title>" + title + "</title>" + entry + "</entry></feed>"
	}
	pubDate := func(s string) string { return "<pubDate>" + s + "</pubDate>" }
	updated := func(s string) string { return "<updated>" + s + "</updated>" }

	for _, test := range []struct {
		name string
		docs []string // newest first; the copy that is to be kept is called "this"
	}{
		{"5005#20: newer entry in the older document", []string{
			atom("2003-12-03T00:00:00Z", "that", updated("2003-12-01T00:00:00Z")),
			atom("2003-12-02T00:00:00Z", "this", updated("2003-12-02T00:00:00Z"))}},
		{"5005#20: newer entry in the newer document", []string{
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-03T00:00:00Z")),
			atom("2003-12-02T00:00:00Z", "that", updated("2003-12-02T00:00:00Z"))}},
		{"5005#20: published is not updated", []string{
			atom("2003-12-03T00:00:00Z", "this", "<published>2003-12-01T00:00:00Z</published>"),
			atom("2003-12-02T00:00:00Z", "that", "<published>2003-12-02T00:00:00Z</published>")}},
		{"5005#21: same time", []string{
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-01T00:00:00Z")),
			atom("2003-12-02T00:00:00Z", "that", updated("2003-12-01T00:00:00Z"))}},
		{"5005#21: same time, the documents' times disagree with the chain", []string{
			atom("2003-12-02T00:00:00Z", "that", updated("2003-12-01T00:00:00Z")),
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-01T00:00:00Z"))}},
		{"5005#21: same time, same document time", []string{
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-01T00:00:00Z")),
			atom("2003-12-03T00:00:00Z", "that", updated("2003-12-01T00:00:00Z"))}},
		{"5005#21: no times at all", []string{atom("", "this", ""), atom("", "that", ""), atom("", "that", "")}},
		{"5005#21: no entry times, every document of the same time", []string{
			atom("2003-12-03T00:00:00Z", "this", ""),
			atom("2003-12-03T00:00:00Z", "that", ""),
			atom("2003-12-03T00:00:00Z", "that", "")}},
		{"5005#21: same instant in two zones", []string{
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-01T00:00:00Z")),
			atom("2003-12-02T00:00:00Z", "that", updated("2003-12-01T02:00:00+02:00"))}},
		{"no time, in a document newer than the other copy", []string{
			atom("2003-12-03T00:00:00Z", "this", ""),
			atom("2003-12-02T00:00:00Z", "that", updated("2003-12-01T00:00:00Z"))}},
		{"no time, in a document older than the other copy", []string{
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-02T00:00:00Z")),
			atom("2003-12-01T00:00:00Z", "that", "")}},
		{"5005#22: older pubDate in the newer document", []string{
			rss(dec3, "this", pubDate(dec1)),
			rss(dec2, "that", pubDate(dec2))}},
		{"5005#22: older pubDate in the newer document, no lastBuildDate", []string{
			rss("", "this", pubDate(dec1)),
			rss("", "that", pubDate(dec2))}},
		{"5005#22: the same pubDate", []string{
			rss(dec3, "this", pubDate(dec1)),
			rss(dec2, "that", pubDate(dec1))}},
		{"5005#22: lastBuildDate decides against the chain", []string{
			rss(dec2, "that", pubDate(dec2)),
			rss(dec3, "this", pubDate(dec1))}},
		{"5005#22: atom:updated counts", []string{
			rss(dec3, "that", pubDate(dec3)+"<a:updated>2003-12-01T00:00:00Z</a:updated>"),
			rss(dec2, "this", pubDate(dec1)+"<a:updated>2003-12-02T00:00:00Z</a:updated>")}},
		{"5005#22: dc:date counts", []string{
			rss(dec3, "that", "<dc:date>2003-12-01T00:00:00Z</dc:date>"),
			rss(dec2, "this", "<dc:date>2003-12-02T00:00:00Z</dc:date>")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := merge(t, parsed(t, test.docs...)...)
			require.Len(t, h.Entries, 1)
			require.Equal(t, "this", h.Entries[0].Title().Plain())
		})
	}
}

// 5005#21, settled: a document without a time has that of its Last-Modified.
func TestMergeLastModified(t *testing.T) {
	older, newer := &Entry{ID: "1"}, &Entry{ID: "1"}
	h := merge(t,
		&Document{LastModified: at(1), Entries: []*Entry{older}},
		&Document{LastModified: at(2), Entries: []*Entry{newer}})
	require.Same(t, newer, h.Entries[0])

	h = merge(t, // its own time goes first
		&Document{Updated: at(3), LastModified: at(1), Entries: []*Entry{newer}},
		&Document{LastModified: at(2), Entries: []*Entry{older}})
	require.Same(t, newer, h.Entries[0])
}

func TestMergeTombstoneRules(t *testing.T) {
	entry := func(n int) *Document { return &Document{Entries: []*Entry{{ID: "1", Updated: at(n)}}} }
	stone := func(n int) *Document { return &Document{Deleted: []Tombstone{{Ref: "1", When: at(n)}}} }
	for _, test := range []struct {
		name    string
		docs    []*Document // newest first
		deleted bool
	}{
		{"newer", []*Document{stone(2), entry(1)}, true},
		{"newer, in the older document", []*Document{entry(1), stone(2)}, true},
		{"of the same time", []*Document{stone(1), entry(1)}, true},
		{"of the same time, in the older document", []*Document{entry(1), stone(1)}, true},
		{"stale", []*Document{entry(2), stone(1)}, false},
		{"stale, in the newer document", []*Document{stone(1), entry(2)}, false},
		{"older and newer", []*Document{stone(1), stone(3), entry(2)}, true},
		{"newer and older", []*Document{stone(3), stone(1), entry(2)}, true},
		{"between two copies", []*Document{entry(3), stone(2), entry(1)}, false},
		{"after two copies", []*Document{entry(1), entry(2), stone(3)}, true},
		{"entry without time, newer document", []*Document{entry(0), stone(1)}, false},
		{"entry without time, older document", []*Document{stone(1), entry(0)}, true},
		{"entry without time, between two", []*Document{stone(1), entry(0), stone(2)}, true},
		{"without time, newer document", []*Document{stone(0), entry(1)}, true},
		{"without time, older document", []*Document{entry(1), stone(0)}, false},
		{"alone", []*Document{stone(1)}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := merge(t, test.docs...)
			if test.deleted {
				require.Empty(t, h.Entries)
				require.Len(t, h.Deleted, 1)
				return
			}
			require.Len(t, h.Entries, 1)
			require.Empty(t, h.Deleted)
		})
	}
}

func TestMergeErrors(t *testing.T) {
	boom := errors.New("boom")
	gap := &Gap{Reason: ReasonTruncated, Err: boom, Document: &Document{Entries: []*Entry{{ID: "2"}}}}
	of := func(items ...any) iter.Seq2[*Document, error] {
		return func(yield func(*Document, error) bool) {
			for _, item := range items {
				doc, _ := item.(*Document)
				err, _ := item.(error)
				if !yield(doc, err) {
					return
				}
			}
		}
	}
	one, three := &Document{Entries: []*Entry{{ID: "1"}}}, &Document{Entries: []*Entry{{ID: "3"}}}

	h, err := Merge(of(one, gap, three))
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3"}, ids(h.Entries), "what was read of a damaged document counts")
	require.Equal(t, 2, h.Documents, "it was not read to its end")
	require.Equal(t, []*Gap{gap}, h.Gaps)
	require.Equal(t, Partial, h.Verdict())

	h, err = Merge(of(one, boom, three))
	require.ErrorIs(t, err, boom)
	require.Equal(t, []string{"1"}, ids(h.Entries), "nothing is read after another error")

	h, err = Merge(of(boom))
	require.ErrorIs(t, err, boom)
	require.Nil(t, h)
}

func TestVerdict(t *testing.T) {
	gaps := []*Gap{{Err: errors.New("x")}}
	for _, test := range []struct {
		h    History
		want Verdict
	}{
		{History{Kind: Complete}, Whole},
		{History{Kind: Archived}, Whole},
		{History{Kind: Plain}, Window},
		{History{Kind: Paged}, Lossy}, // 5005#4
		{History{Kind: Complete, Gaps: gaps}, Partial},
		{History{Kind: Archived, Gaps: gaps}, Partial},
		{History{Kind: Plain, Gaps: gaps}, Partial},
		{History{Kind: Paged, Gaps: gaps}, Partial},
	} {
		test.h.Head = &Document{}
		require.Equal(t, test.want, test.h.Verdict())
		test.h.Head.Coverage = &Coverage{} // whose author forgot the verdict
		require.Contains(t, []Verdict{Unknown, Partial}, test.h.Verdict())
	}
}

// No zero value claims that anything is there.
func TestNothingIsUnknown(t *testing.T) {
	require.Equal(t, Unknown, new(History).Verdict())
	require.Equal(t, "unknown", Verdict(0).String())
	require.Equal(t, "unknown", Reason(0).String())
	require.NotEmpty(t, Reason(0).Advice())
	gaps := (&Document{URL: "http://example.org/", Coverage: &Coverage{}}).Declared()
	require.Len(t, gaps, 1)
	for v := Unknown; v <= Partial; v++ {
		var back Verdict
		require.NoError(t, back.UnmarshalText([]byte(v.String())))
		require.Equal(t, v, back)
		require.Equal(t, v, Worse(Whole, v))
		require.Equal(t, v, Worse(v, Whole))
		require.Equal(t, Unknown, Worse(v, Unknown))
		require.Equal(t, Unknown, Worse(Unknown, v))
	}
	require.Equal(t, Partial, Worse(Partial, Lossy))
	var v Verdict
	require.Error(t, v.UnmarshalText([]byte("splendid")))
	for word, want := range map[string]Verdict{"whole": Whole, "window": Window, "lossy": Lossy, "partial": Partial} {
		require.NoError(t, v.UnmarshalText([]byte(word))) // as stored by earlier versions
		require.Equal(t, want, v)
	}
}

// The head is the newest document's, without its entries.
func TestMergeHead(t *testing.T) {
	first := &Document{Title: "newest", Complete: true, Entries: []*Entry{{ID: "1"}}, Deleted: []Tombstone{{Ref: "2"}}}
	h := merge(t, first, &Document{Title: "older"})
	require.Equal(t, "newest", h.Head.Title)
	require.Equal(t, Complete, h.Kind)
	require.Empty(t, h.Head.Entries)
	require.Empty(t, h.Head.Deleted)
	require.Len(t, first.Entries, 1, "the document itself is left as it was")
}

// Tombstones are in order of time, the latest first.
func TestMergeDeletedOrder(t *testing.T) {
	h := merge(t, &Document{Deleted: []Tombstone{{Ref: "b", When: at(1)}, {Ref: "a", When: at(1)}, {Ref: "c", When: at(2)}}})
	var refs []string
	for _, d := range h.Deleted {
		refs = append(refs, d.Ref)
	}
	require.Equal(t, []string{"c", "a", "b"}, refs)
}
