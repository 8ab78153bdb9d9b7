package mirror_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// While a window is owed, each poll asks for the archive again, and Checked says so, though it has
// not changed.
func TestCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		window := numbered(`<link rel="prev-archive" href="/1"/>`, 3, 2)
		m := newMirror(mirror.NewMemory(), programSite{
			"/feed": func() string { return window },
			"/1":    func() string { return numbered(`<fh:archive/>`, 1) },
		})
		polled(t, m, programURL)
		window = numbered(`<link rel="prev-archive" href="/1"/>`, 9, 8)
		for range 3 {
			time.Sleep(time.Hour)
			report := polled(t, m, programURL)
			require.Equal(t, feedhistory.VerdictPartial, report.Feed.Verdict)
			require.Equal(t, time.Now().UTC(), report.Feed.Ledger.Checked().UTC())
		}
	})
}
