package feedhistory

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testReadAgain checks that an entry says the same when it is read again from
// what XML and JSON gave.
func testReadAgain(t *testing.T, e *Entry, base string) {
	t.Helper()
	data := string(e.XML())
	if e.format() == JSONFeed {
		data = string(e.JSON())
	}
	twin, err := ReadEntry(e.format(), data, base)
	require.NoError(t, err, data)
	require.Equal(t, flat(e.Links), flat(twin.Links), data)
	require.Equal(t, []Text{e.Title(), e.Summary(), e.Content()}, []Text{twin.Title(), twin.Summary(), twin.Content()}, data)
	require.Equal(t, e.Updated.UTC(), twin.Updated.UTC(), data)
	require.Equal(t, e.Published.UTC(), twin.Published.UTC(), data)
	require.Equal(t, e.WeakID, twin.WeakID, data)
	if !e.WeakID {
		require.Equal(t, e.ID, twin.ID, data)
	}
}

func TestReadEntryRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":         "",
		"another element": "<id>a</id>",
		"two entries":     "<entry><id>a</id></entry><entry><id>b</id></entry>",
		"a broken one":    "<entry><id>a</id>",
	} {
		_, err := ReadEntry(Atom, data, "http://example.org/feed")
		var parse *ParseError
		require.ErrorAs(t, err, &parse, name)
		require.Equal(t, "http://example.org/feed", parse.URL, name)
	}
}

func TestDigestIsOfWhatStoodThere(t *testing.T) {
	const first = `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><entry><id>a</id></entry></feed>`
	const second = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:x="urn:x"><entry><id>a</id></entry><entry><id>a</id> </entry></feed>`
	a, b := entriesOf(t, first)[0], entriesOf(t, second)
	require.NotEqual(t, a.XML(), b[0].XML())
	require.Equal(t, a.Digest(), b[0].Digest())
	require.NotEqual(t, a.Digest(), b[1].Digest())
}

func entriesOf(t *testing.T, document string) []*Entry {
	t.Helper()
	doc, err := Parse(strings.NewReader(document), "")
	require.NoError(t, err)
	return doc.Entries
}

func TestNamesAreRead(t *testing.T) {
	type all struct {
		F Format
		K Kind
		V Verdict
		R Reason
	}
	for i := range 13 {
		in := all{Format(i%3 + 1), Kind(i % 4), Verdict(i % 4), Reason(i)}
		data, err := json.Marshal(in)
		require.NoError(t, err)
		var out all
		require.NoError(t, json.Unmarshal(data, &out), "%s", data)
		require.Equal(t, in, out, "%s", data)
	}
	require.EqualError(t, new(Reason).UnmarshalText([]byte("nonsense")), `"nonsense" names no feedhistory.Reason`)
	require.Error(t, new(Kind).UnmarshalText([]byte(Kind(99).String())), "what is no kind has no name to be read by")
}
