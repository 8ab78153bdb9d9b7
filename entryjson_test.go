package feedhistory

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// An entry that goes through JSON says the same, and is then as good as one that was
// read.
func TestEntryJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, e := range drawDocument(t).Entries {
			data, err := json.Marshal(e)
			require.NoError(t, err)
			byValue, err := json.Marshal(*e)
			require.NoError(t, err)
			require.Equal(t, string(data), string(byValue))
			var again Entry
			require.NoError(t, json.Unmarshal(data, &again))
			require.Equal(t, e.ID, again.ID)
			require.True(t, e.Updated.Equal(again.Updated))
			require.True(t, e.Published.Equal(again.Published))
			require.Equal(t, e.Links, again.Links)
			require.Equal(t, e.Title(), again.Title())
			require.Equal(t, e.Summary(), again.Summary())
			require.Equal(t, e.Content(), again.Content())
			require.Equal(t, e.Draft(), again.Draft())
			read, err := ReadEntry(Atom, string(again.XML()), "")
			require.NoError(t, err)
			require.Equal(t, read.ID, again.ID)
			require.NotEmpty(t, again.Digest())
			require.Equal(t, read.Content(), again.Content())
			twice, err := json.Marshal(&again)
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
		var e Entry
		require.NoError(t, json.Unmarshal([]byte(text), &e))
		again, err := e.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, text, string(again))
	}
	for _, text := range []string{`{}`, `{"id":""}`, `{"id":"1","updated":"yesterday"}`, `{"id":7}`, `{"id":"1","content":{"type":"xhtml","body":"<p>"}}`, `[]`} {
		require.Error(t, json.Unmarshal([]byte(text), new(Entry)), text)
	}
}

func TestGapJSONRoundTrip(t *testing.T) {
	found := time.Date(2003, 12, 13, 18, 30, 2, 250, time.UTC)
	for _, gap := range []Gap{
		{URL: "https://example.org/1", Reason: ReasonStatus, Err: errors.New("404 <Not Found>"), Found: found},
		{URL: "https://example.org/2", From: "https://example.org/1", Reason: ReasonLoop, Err: fmt.Errorf("a: %w", ErrUnread)},
		{URL: "https://example.org/3", Reason: ReasonDeclared, Err: declaredGap("sold out")},
		{URL: "https://example.org/4", Reason: ReasonStatus, Err: &StatusError{URL: "https://example.org/4", Status: 404}},
	} {
		data, err := json.Marshal(gap)
		require.NoError(t, err)
		pointed, err := json.Marshal(&gap)
		require.NoError(t, err)
		require.Equal(t, string(data), string(pointed))
		var again Gap
		require.NoError(t, json.Unmarshal(data, &again))
		require.Equal(t, gap.Error(), again.Error())
		require.Equal(t, gap.word(), again.word())
		require.True(t, gap.isSame(&again))
		require.Equal(t, gap.Found, again.Found)
	}
	var gap Gap
	require.NoError(t, json.Unmarshal([]byte(`{"url":"https://example.org/","reason":"loop"}`), &gap))
	require.Error(t, gap.Err, "Err is never nil")
	require.Error(t, json.Unmarshal([]byte(`{"reason":"no such"}`), &gap))
}
