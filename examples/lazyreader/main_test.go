package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

func client() *feedhistory.Client {
	return &feedhistory.Client{AllowPrivate: true, Tries: 1}
}

func TestShow(t *testing.T) {
	client, home, stop := site.Start()
	defer stop()
	client.Tries = 1
	var out strings.Builder
	require.NoError(t, show(t.Context(), strings.NewReader("\n\n"), &out, client, home+site.Archived, 2))
	require.Equal(t, `2003-12-13  Atom-Powered Robots Run Amok
2003-12-01  Robots Scheduled To Run Amok (corrected)
2003-11-03  Star City
2003-10-27  The Engine That Does More
archived whole
`, out.String())

	out.Reset()
	require.NoError(t, show(t.Context(), strings.NewReader(""), &out, client, home+site.Archived, 2))
	require.NotContains(t, out.String(), "whole", "the rest was not read")

	out.Reset()
	require.NoError(t, show(t.Context(), strings.NewReader("\n\n"), &out, client, home+site.Broken, 2))
	require.Contains(t, out.String(), "archived partial\nmissing: status: ")
	require.Error(t, show(t.Context(), strings.NewReader("\n"), &out, client, home+"/nowhere", 2))
}

// edited is a feed whose archive repeats an entry, corrects one that was shown,
// and deletes one.
const edited = `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:at="http://purl.org/atompub/tombstones/1.0"><link rel="prev-archive" href="/2.atom"/>
<entry><id>urn:4</id><title>Four</title><updated>2003-12-04T00:00:00Z</updated></entry>
<at:deleted-entry ref="urn:2" when="2003-12-05T00:00:00Z"/></feed>
-- /2.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/1.atom"/>
<entry><id>urn:4</id><title>Fuor</title><updated>2003-12-03T00:00:00Z</updated></entry>
<entry><id>urn:3</id><title>Three</title><updated>2003-12-03T00:00:00Z</updated></entry>
<entry><id>urn:2</id><title>Two</title><updated>2003-12-02T00:00:00Z</updated></entry></feed>
-- /1.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/0.atom"/>
<entry><id>urn:3</id><title>Drei</title><updated>2003-12-06T00:00:00Z</updated></entry>
<entry><id>urn:1</id><title>One</title><updated>2003-12-01T00:00:00Z</updated></entry></feed>
-- /0.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next-archive" href="/1.atom"/>
<entry><id>urn:0</id><title>Zero</title><updated>2003-11-30T00:00:00Z</updated></entry></feed>
`

func TestEdited(t *testing.T) {
	feed := feedtest.Serve(t, edited)
	var out strings.Builder
	require.NoError(t, show(t.Context(), strings.NewReader("\n\n\n\n\n\n"), &out, client(), feed.URL+"/feed.atom", 1))
	require.Equal(t, "2003-12-04  Four\n2003-12-03  Three\n2003-12-06  Drei\n2003-12-01  One\n2003-11-30  Zero\narchived whole\n", out.String())
}

// Documents that nobody wants to see are not requested, except one.
func TestLazy(t *testing.T) {
	feed := feedtest.Serve(t, edited)
	c := client()
	c.PerHost = 2 // one is read, and one requested in advance
	require.NoError(t, show(t.Context(), strings.NewReader(""), io.Discard, c, feed.URL+"/feed.atom", 1))
	require.LessOrEqual(t, len(feed.Requests()), 2)
}

// A reader that is stopped has what was read, and knows that it is not
// everything.
func TestStopped(t *testing.T) {
	feed := feedtest.Serve(t, edited)
	ctx, cancel := context.WithCancel(t.Context())
	in, press := io.Pipe()
	go func() {
		_, _ = press.Write([]byte("\n")) // is read after the first page is shown
		cancel()
		_ = press.Close()
	}()
	var out strings.Builder
	err := show(ctx, in, &out, client(), feed.URL+"/feed.atom", 1)
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
		require.Contains(t, out.String(), "archived partial\nmissing: interrupted: ")
	} else {
		require.NotContains(t, out.String(), "whole")
	}
	require.Contains(t, out.String(), "Four")
}
