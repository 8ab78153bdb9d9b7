// Package feedtest has the common parts of tests of feeds: websites from text files
// (Serve) and from maps (Sites, on a Line), model publishers (Model, Watcher), faults,
// documents expensive to read (Burden), a search for goroutines left behind (Main), and
// short forms of common checks.
package feedtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/website"
)

// These are the types of package website.
type (
	Site    = website.Site
	Request = website.Request
	Archive = website.Archive
	File    = website.File
)

// Parse reads an archive. Every text is an archive.
func Parse(text string) *Archive { return website.Parse(text) }

// ServeFile is Serve for the archive in a file.
func ServeFile(t testing.TB, name string) *Site {
	t.Helper()
	return Serve(t, string(ReadFile(t, name)))
}

// Serve serves a website, given as the text of an archive, on the loopback interface
// until the test ends.
func Serve(t testing.TB, text string) *Site {
	t.Helper()
	s, err := website.New(text)
	if err == nil {
		err = s.Listen()
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}
