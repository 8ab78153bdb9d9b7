// Package feedtest has what tests of feeds share: websites made from text files
// (see package website), model publishers, and documents that are heavy to read.
package feedtest

import (
	"os"
	"testing"

	"github.com/feedhistory/feedhistory/internal/website"
)

// What package website calls by the same names.
type (
	Site    = website.Site
	Request = website.Request
	Archive = website.Archive
	File    = website.File
)

// Parse reads an archive. Every text is one.
func Parse(text string) *Archive { return website.Parse(text) }

// ServeFile is Serve for the archive in the file with the given name.
func ServeFile(t testing.TB, name string) *Site {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return Serve(t, string(text))
}

// Serve starts a website on the loopback interface, from the text of an
// archive. It ends with the test.
func Serve(t testing.TB, text string) *Site {
	t.Helper()
	s, err := website.New(text)
	if err == nil {
		err = s.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
