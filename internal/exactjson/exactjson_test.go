package exactjson

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnmarshal(t *testing.T) {
	type item struct {
		ID   string `json:"id"`
		Size any    `json:"size_in_bytes"`
	}
	for text, want := range map[string]item{
		`{"id":"right","ID":"wrong"}`:                    {ID: "right"},
		`{"ID":"wrong","id":"right","size_in_bytes":12}`: {ID: "right", Size: 12.0},
		`{"\u0069d":"right","\u0049D":"wrong"}`:          {ID: "right"},
		`{"Id":"wrong"}`:                                 {},
		`{"id":"a\"Id\":"}`:                              {ID: `a"Id":`},
	} {
		var got item
		require.NoError(t, Unmarshal(text, &got), text)
		require.Equal(t, want, got, text)
	}
	require.Error(t, Unmarshal(`{"ID":1,`, new(item)))
	require.Error(t, Unmarshal(`{"ID":"x","id":1}`, new(item)), "a number is not a string")
}
