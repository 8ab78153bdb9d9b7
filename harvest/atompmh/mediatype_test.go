package atompmh

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// The first media range that matches any representation decides, and among the
// representations that it matches, the producer's order (atom-pmh consumer#5).
func TestChoose(t *testing.T) {
	all := []Representation{
		{URL: "html", Type: "text/html; charset=utf-8"},
		{URL: "feed", Type: "application/atom+xml;type=feed"},
		{URL: "entry", Type: `Application/Atom+XML; Type="entry"; charset=UTF-8`},
		{URL: "rdf", Type: "application/rdf+xml"},
		{URL: "unknown"},
		{URL: "bad", Type: "application"},
	}
	for _, test := range []struct {
		accept []string
		want   string
	}{
		{nil, "html"},
		{[]string{"*/*"}, "html"},
		{[]string{"application/rdf+xml"}, "rdf"},
		{[]string{"APPLICATION/RDF+XML"}, "rdf"},
		{[]string{"application/atom+xml"}, "feed"},
		{[]string{"application/atom+xml;type=entry"}, "entry"},
		{[]string{"application/atom+xml; TYPE=Entry; charset=utf-8"}, "entry"},
		{[]string{"application/atom+xml;type=entry;version=2"}, ""},
		{[]string{"application/*"}, "feed"},
		{[]string{"text/*;charset=latin1", "application/rdf+xml", "text/html"}, "rdf"},
		{[]string{"image/png", "text/html"}, "html"},
		{[]string{"image/*"}, ""},
		{[]string{"image/*", "*/*"}, "html"},
		{[]string{"*/*;type=entry"}, "entry"},
	} {
		ranges, err := readRanges(test.accept)
		require.NoError(t, err)
		got := ""
		if chosen := choose(all, ranges); chosen != nil {
			got = chosen.URL
		}
		require.Equal(t, test.want, got, test.accept)
	}
	require.Nil(t, choose(nil, nil))
	only := choose(all[4:], nil)
	require.Equal(t, "unknown", only.URL)
}

func TestAcceptError(t *testing.T) {
	for _, value := range []string{"", "text", "text/", "/html", "*/html", "text/html;q=0.5", "text/html; q", "text html"} {
		h := Harvester{URL: "http://127.0.0.1:1/", Accept: []string{"text/html", value}}
		for _, err := range h.Harvest(t.Context(), Mark{}).Changes() {
			accept := feedtest.ErrorAs[*AcceptError](t, err, value)
			require.Equal(t, value, accept.Value)
			require.ErrorIs(t, err, accept.Err)
			require.ErrorContains(t, err, fmt.Sprintf("accept %q: ", value))
		}
	}
}

// A record without an accepted type counts as deleted, or not, as the consumer
// chooses.
//
// Duties: atom-pmh consumer#5.
func TestUnacceptable(t *testing.T) {
	s := serve(t, map[string]string{"/feed": feed(day(2), "", record("urn:a", day(1)))})
	s.Accept = []string{"application/rdf+xml"}
	_, _, changes := s.whole("/feed", Mark{})
	require.Equal(t, []string{"deleted 2012-01-01T00:00:00Z urn:a https://example.org/a\n"}, changes)
	s.Unacceptable = AsRecord
	_, _, changes = s.whole("/feed", Mark{})
	require.Equal(t, []string{is("urn:a", 1)}, changes)
}
