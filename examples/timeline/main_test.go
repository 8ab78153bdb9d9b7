package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/examples/site"
)

func TestAggregate(t *testing.T) {
	client, home, stop := site.Start()
	defer stop()
	var out strings.Builder
	aggregate(t.Context(), &out, client, []string{home + site.Archived, home + site.Broken, home + "/nowhere"})
	require.Contains(t, out.String(), "Liftoff News       archived  whole")
	require.Contains(t, out.String(), "Neglected News     archived  partial")
	require.Contains(t, out.String(), "/nowhere: ")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3+1+4+1+1)
	require.Contains(t, lines[4], "Entries may be missing", "found just now, so the newest")
}
