package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/examples/site"
)

func TestRun(t *testing.T) {
	client, home, stop := site.Start()
	defer stop()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, client, []string{home + site.Archived, home + site.Broken, home + "/nowhere?token=SECRET"}))
	got := out.String()
	require.NotContains(t, got, "SECRET")
	for _, line := range []string{
		`feeds_polls_total{outcome="ok"} 2`, `feeds_polls_total{outcome="failure"} 1`,
		`feeds_entries_total{change="added"} `, `feeds_verdicts{verdict="whole"} 1`,
		`"Key":"url.path","Value":{"Type":"STRING","Value":"/liftoff/2003/10.atom"}},{"Key":"http.response.status_code","Value":{"Type":"INT64","Value":200}}`,
		`"msg":"gap","url":"` + home + `/gone/2003.atom"`,
	} {
		require.Contains(t, got, line)
	}
}
