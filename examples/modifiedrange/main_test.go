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
	require.Equal(t, "urn:Automobiles Automobiles, first\nurn:Trains Trains, first\nurn:Planes Planes, first\nurn:Trains Trains, second\n", out.String())
	require.NoError(t, wire.Check("../../harvest/modifiedrange/README.md", exchange.String(), "produce", "consume"))
}
