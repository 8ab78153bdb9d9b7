package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/examples/wire"
)

// The program does what it says, and the package's README shows its functions
// and its real requests and answers.
func TestRun(t *testing.T) {
	var out, exchange strings.Builder
	require.NoError(t, run(t.Context(), &out, &exchange))
	require.Equal(t, "record urn:record:1 2012-11-01\nrecord urn:record:2 2012-11-01\ndeleted urn:record:1 2012-11-02\n", out.String())
	require.NoError(t, wire.Check("../../harvest/atompmh/README.md", exchange.String(), "produce", "consume"))
}
