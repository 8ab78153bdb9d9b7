package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/examples/site"
)

func TestRead(t *testing.T) {
	client, home, stop := site.Start()
	defer stop()
	var out strings.Builder
	require.NoError(t, read(t.Context(), &out, client, home+site.Archived))
	require.Contains(t, out.String(), "Liftoff News, archived, from 3 documents: 4 entries, whole")
	require.Contains(t, out.String(), "2003-10-27  The Engine That Does More")

	out.Reset()
	require.NoError(t, read(t.Context(), &out, client, home+site.Broken))
	require.Contains(t, out.String(), "missing: status: "+home+"/gone/2003.atom")
	require.Error(t, read(t.Context(), &out, client, home+"/nowhere"))
}
