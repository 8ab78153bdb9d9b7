package mirror_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
)

// headOf returns a document's head section as a mirror stores it.
func headOf(doc *feedhistory.Document) string {
	var b strings.Builder
	w := compose.NewWriter(&b, feedhistory.FormatAtom, doc)
	w.Verbatim = true
	if w.Close() != nil {
		return ""
	}
	return b.String()
}

// Whatever of a private feed quotes its address, the redacted one does not.
func TestRedacted(t *testing.T) {
	const url = "https://ann:pass1word@pods.example/show/s3cret?token=t0ken&x=1"
	for name, doc := range map[string]*feedhistory.Document{
		"id":       {ID: "https://pods.example/show/s3cret?token=t0ken&x=1", Title: "Show"},
		"subtitle": {ID: "urn:show", Title: "Show", Subtitle: "Copied from https://pods.example/show/s3cret"},
		"title":    {ID: "urn:show", Title: "https://pods.example/?token=t0ken&x=1"},
		"links": {ID: "urn:show", Title: "Show", Links: feedhistory.Links{
			{Rel: "self", Href: "https://pods.example/other"},
			{Rel: "alternate", Href: "https://pods.example/page?token=t0ken&x=1"},
			{Rel: "alternate", Href: "https://pods.example/about"},
		}},
		"empty": {},
	} {
		f := &mirror.Feed{URL: url, Address: url + "2", Private: true, Verdict: feedhistory.VerdictPartial, Head: headOf(doc),
			Error: url, Title: doc.Title}
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"known":{"URL":%[1]q},"further":[%[1]q],"shown":[%[1]q],"versions":"AAAAAA==","debts":[
			{"kind":"damage","url":%[1]q,"from":%[1]q,"message":%[1]q,"reason":"status","before":[%[1]q]},
			{"kind":"document","url":%[1]q,"from":%[1]q,"message":%[1]q,"reason":"status","before":[%[1]q]}]}`, url), &f.Ledger))
		r := f.Redacted()
		text, err := json.Marshal(r)
		require.NoError(t, err)
		for _, secret := range []string{"s3cret", "t0ken", "pass1word", "other", "ann:"} {
			require.NotContains(t, string(text)+r.URL, secret, name)
		}
		require.Equal(t, "https://pods.example", r.URL)
		require.Len(t, r.Ledger.Gaps(), 2)
		require.Equal(t, url, f.URL, "the original stays")
		require.Equal(t, name == "links", strings.Contains(r.Head, "https://pods.example/about"))
	}
	public := &mirror.Feed{URL: "https://ann:pass@example.org/feed?format=atom"}
	require.Equal(t, "https://example.org/feed?format=atom", public.Redacted().URL)
}

// The entries of a private feed keep their references, but not the feed's address.
func TestRedactedRecord(t *testing.T) {
	const entry = `<entry xmlns="http://www.w3.org/2005/Atom" a=">" xml:base="https://pods.example/s/feed?token=t0ken&amp;x=1"><id>urn:1</id><link href="a/b"/></entry>`
	r := &mirror.Record{ID: "urn:1", Content: mirror.Content{Format: feedhistory.FormatAtom, Data: entry, Base: "https://pods.example/s/feed?token=t0ken"}}
	before, err := r.Entry()
	require.NoError(t, err)
	e, err := r.Redacted().Entry()
	require.NoError(t, err)
	require.Equal(t, before.Links, e.Links)
	require.NotContains(t, string(e.XML()), "t0ken")
	require.Contains(t, r.Content.Data, "t0ken", "the original stays")
	for _, odd := range []string{"", "<entry", `<entry xml:base="x`, `<a b='>' c="`} {
		r.Content.Data = odd
		require.Equal(t, odd, r.Redacted().Content.Data)
	}
}
