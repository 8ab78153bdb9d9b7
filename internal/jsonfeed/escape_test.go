package jsonfeed

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"{\"a\":\"b\nc\td\re\x01\"}":            `{"a":"b\u000ac\u0009d\u000de\u0001"}`,
		"{\n\"a\nb\"\t:1}":                      "{\n\"a\\u000ab\"\t:1}",
		"{\"a\":\"\\\"\n\\\\\",\n\"b\":\"\n\"}": "{\"a\":\"\\\"\\u000a\\\\\",\n\"b\":\"\\u000a\"}",
	} {
		require.False(t, json.Valid([]byte(text)))
		got := Escape(text)
		require.Equal(t, want, got.Text)
		require.True(t, json.Valid([]byte(got.Text)))
	}
	for _, text := range []string{"", "{\n}", `{"a":"b\nc"}`, `"\`, `["` + strings.Repeat("\n", maxEscapes+1) + `"]`} {
		require.Nil(t, Escape(text))
	}
}

func TestOriginal(t *testing.T) {
	text := "{\"a\":\"x\ny\n\n\",\n\"b\":[1]}"
	got := Escape(text)
	require.Len(t, got.Escapes, 3)
	require.Equal(t, strings.Index(text, "\n"), got.Original(got.Escapes[0]))
	require.Equal(t, strings.Index(text, "\n\n"), got.Original(got.Escapes[1]))
	for _, part := range []string{`"a"`, `"b"`, `x`, `y`, `]`} {
		require.Equal(t, strings.Index(text, part), got.Original(strings.Index(got.Text, part)), part)
	}
	require.Equal(t, len(text), got.Original(len(got.Text)))
	require.Equal(t, 7, new(Escaped).Original(7))
}

// An escaped text means the same, each byte has its place in the original, and sound text
// stays as it is.
func FuzzEscape(f *testing.F) {
	for _, text := range []string{"{\"a\":\"b\nc\td\"}", "{\"a\\\"\n\":\"\\\\\n\",\n\"é\":1}", "\"\n\\", "\"\\\n\""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Escape(text)
		if json.Valid([]byte(text)) {
			require.Nil(t, got)
		}
		if got == nil {
			return
		}
		require.LessOrEqual(t, len(got.Text), escapeLength*len(text))
		require.Nil(t, Escape(got.Text))
		for i := range len(got.Text) {
			at := got.Original(i)
			require.True(t, text[at] == got.Text[i] || text[at] < ' ', "%d: %d", i, at)
		}
		require.Equal(t, len(text), got.Original(len(got.Text)))
	})
}
