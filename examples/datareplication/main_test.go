package main

import (
	"os"
	"regexp"
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
	require.Equal(t, "map[a:old] at 2026-03-01T12:00:02Z\nmap[b:new] at 2026-03-01T12:00:04Z, entity \"DELETE-of-a\"\n", out.String())
	readme, err := os.ReadFile("../../harvest/datareplication/README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	second := exchange.String()
	second = second[strings.LastIndex(second, "> HEAD /feed/\n"):]
	second = regexp.MustCompile(`[A-Z2-7]{52}`).ReplaceAllString(second, "5BX…7Q") // the boundary is random
	require.NoError(t, wire.Check(string(readme), string(source), second, "produce", "consume"))
}
