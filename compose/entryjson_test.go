package compose_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
)

// An entry that goes through JSON says the same, and is then as good as one that was
// read.
func TestEntryJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, e := range drawDocument(t).Entries {
			data, err := toJSON(e)
			require.NoError(t, err)
			again, err := fromJSON(data)
			require.NoError(t, err)
			require.Equal(t, e.ID, again.ID)
			require.True(t, e.Updated.Equal(again.Updated))
			require.True(t, e.Published.Equal(again.Published))
			require.Equal(t, e.Links, again.Links)
			require.Equal(t, e.Title(), again.Title())
			require.Equal(t, e.Summary(), again.Summary())
			require.Equal(t, e.Content(), again.Content())
			require.Equal(t, compose.DraftOf(e), compose.DraftOf(again))
			read, err := ReadEntry(FormatAtom, string(again.XML()), "")
			require.NoError(t, err)
			require.Equal(t, read.ID, again.ID)
			require.NotEmpty(t, again.Digest())
			require.Equal(t, read.Content(), again.Content())
			twice, err := toJSON(again)
			require.NoError(t, err)
			require.Equal(t, string(data), string(twice))
		}
	})
}

func TestEntryJSONKeepsTimesApart(t *testing.T) {
	for _, text := range []string{
		`{"id":"urn:1"}`, `{"id":"urn:1","published":"2003-12-13T18:30:02.25Z"}`, `{"id":"urn:1","weak_id":true,"updated":"2003-12-13T18:30:02Z"}`,
		`{"id":"urn:1","title":{"type":"html","body":"<b>","lang":"de"},"content":{"type":"image/png","base64":"/wAB/g=="}}`,
	} {
		e, err := fromJSON([]byte(text))
		require.NoError(t, err)
		again, err := toJSON(e)
		require.NoError(t, err)
		require.Equal(t, text, string(again))
	}
	for _, text := range []string{`{}`, `{"id":""}`, `{"id":"1","updated":"yesterday"}`, `{"id":7}`, `{"id":"1","content":{"type":"xhtml","body":"<p>"}}`, `[]`} {
		_, err := fromJSON([]byte(text))
		require.Error(t, err, text)
	}
}
