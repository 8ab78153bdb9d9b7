package show_test

import (
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/publish"
)

// The link of an entry in a table is its page for people.
func TestTableLinks(t *testing.T) {
	line := &publish.Line{}
	require.NoError(t, json.Unmarshal([]byte(`{"id":"a","links":[{"rel":"alternate","type":"application/nostr+json","href":"nostr:a"},{"rel":"alternate","type":"text/html","href":"http://h/a"}]}`), line))
	var b strings.Builder
	require.NoError(t, show.PrintTable(&b, iter.Seq2[*publish.Line, error](func(yield func(*publish.Line, error) bool) { yield(line, nil) })))
	require.Contains(t, b.String(), ",http://h/a,")
	require.NotContains(t, b.String(), "nostr")
}
