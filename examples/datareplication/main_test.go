package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/examples/wire"
)

// The program does what it says, and the package's README shows its functions
// and what really crosses the wire.
func TestRun(t *testing.T) {
	var out, exchange strings.Builder
	require.NoError(t, run(t.Context(), &out, &exchange))
	require.Equal(t, "map[a:old] at 2026-03-01T12:00:02Z\nmap[b:new] at 2026-03-01T12:00:04Z, entity \"DELETE-of-a\"\n", out.String())
	second := exchange.String()
	second = second[strings.LastIndex(second, "> HEAD /feed/\n"):]
	second = regexp.MustCompile(`[A-Z2-7]{52}`).ReplaceAllString(second, "5BX…7Q") // which is chosen at random
	require.NoError(t, wire.Check("../../harvest/datareplication/README.md", second, "produce", "consume"))
}
