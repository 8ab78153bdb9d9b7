package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// unit returns the settings of a packaged unit.
func unit(t *testing.T, name string) map[string]string {
	t.Helper()
	settings := map[string]string{}
	for line := range strings.Lines(string(feedtest.ReadFile(t, filepath.Join("..", "packaging", name)))) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			settings[key] = value
		}
	}
	return settings
}

// The timer's unit fails with a wrong option, and with a file of another kind. It does not fail while
// there is no feed yet, or because one of many feeds cannot be read.
func TestSyncUnit(t *testing.T) {
	settings := unit(t, "feedhistory-sync.service")
	succeeds := map[int]bool{terminal.ExitOK: true}
	for _, text := range strings.Fields(settings["SuccessExitStatus"]) {
		status, err := strconv.Atoi(text)
		require.NoError(t, err)
		succeeds[status] = true
	}
	start, ok := strings.CutPrefix(settings["ExecStart"], "/usr/bin/feedhistory ")
	require.True(t, ok)
	require.Contains(t, settings["ExecStartPost"], "/usr/bin/feedhistory db info")
	db := filepath.Join(t.TempDir(), "feeds.db")
	t.Setenv("FEEDHISTORY_DB", db)
	sync := func(options string) (bool, string) {
		status, _, stderr := call(t.Context(), "", strings.Fields(strings.Replace(start, "$SYNC_OPTIONS", options, 1))...)
		return succeeds[status], stderr
	}
	good, stderr := sync("--pace 1ms")
	require.True(t, good, stderr)
	require.Contains(t, stderr, "there is no such database yet")
	done(t, `{"type":"end"}`+"\n", "import")
	good, stderr = sync("--pace 1ms")
	require.True(t, good, stderr)
	require.Contains(t, stderr, "no feed")
	done(t, "", "db", "info")
	for _, options := range []string{"--pce 2s", "--pace 2", "--db https://feeds.example/", "--parallel 0", "more"} {
		good, stderr = sync(options)
		require.False(t, good, options)
		require.Contains(t, stderr, "feedhistory sync --help", options)
	}
	require.NoError(t, os.WriteFile(db, []byte("not a database, but longer than the header of one: "+strings.Repeat("x", 4096)), 0o600))
	status, _, stderr := call(t.Context(), "", "db", "info")
	require.NotZero(t, status, stderr)
}

// The server is not started again and again with a wrong option.
func TestServeUnit(t *testing.T) {
	settings := unit(t, "feedhistory.service")
	require.Equal(t, "on-failure", settings["Restart"])
	start, ok := strings.CutPrefix(settings["ExecStart"], "/usr/bin/feedhistory ")
	require.True(t, ok)
	status, _, stderr := call(t.Context(), "", strings.Fields(strings.Replace(start, "$SERVE_OPTIONS", "--lisen :8005", 1))...)
	require.Equal(t, settings["RestartPreventExitStatus"], strconv.Itoa(status), stderr)
}
