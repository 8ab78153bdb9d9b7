package datareplication

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// TestFeeds harvests the feeds of testdata, at /feed, and with a snapshot if
// there is one. Each feed lists the expected result: a line for each entity,
// with its ContentID and, unless that is PUT, its operation; and the error, as
// "type: a part of its text".
//
// Duties: datareplication#consumer-1, datareplication#consumer-2,
// datareplication#consumer-3, datareplication#consumer-4.
func TestFeeds(t *testing.T) {
	files := feedtest.Glob(t, "testdata/feeds/*.txtar")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := feedtest.ReadFile(t, file)
			a := feedtest.Parse(string(text))
			site := feedtest.Serve(t, a.String())
			client := &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}, Retry: feedhistory.Retry{Tries: 1}}
			c := &Harvester{HTTP: client, URL: site.URL + "/feed"}
			if _, ok := a.File("/snapshot"); ok {
				c.Snapshot = site.URL + "/snapshot"
			}
			_, c.Lenient = a.File("lenient")
			want, ok := a.File("want")
			require.True(t, ok)
			var from Mark
			if s, ok := a.File("cursor"); ok {
				require.NoError(t, json.Unmarshal([]byte(s), &from))
			}
			testFeed(t, c.Harvest(t.Context(), from), from, site.Expand(strings.TrimSuffix(want, "\n")))
		})
	}
}

func testFeed(t *testing.T, h *Harvest, from Mark, want string) {
	lines := strings.Split(want, "\n")
	if want == "" {
		lines = nil
	}
	var got []string
	last := h.Mark()
	for e, err := range h.Entities() {
		if err == nil {
			got = append(got, line(e, len(lines) > len(got) && strings.Contains(lines[len(got)], " ")))
			last = Mark{Time: e.Modified, ContentID: e.ContentID, Page: e.Page}
			continue
		}
		require.Len(t, lines, len(got)+1, "%v, then %v", got, err)
		kind, text, ok := strings.Cut(lines[len(got)], ": ")
		require.True(t, ok, "%v", err)
		require.Equal(t, kind, fmt.Sprintf("%T", err), "%v", err)
		require.Contains(t, err.Error(), text)
		if strings.HasPrefix(kind, "*datareplication") {
			require.Contains(t, err.Error(), "(datareplication#")
		}
		lines = lines[:len(got)]
	}
	require.Equal(t, strings.Join(lines, "\n"), strings.Join(got, "\n"))
	if last != from && h.c.Snapshot == "" {
		at := h.Mark()
		at.Next = "" // see TestPageDone
		require.Equal(t, last, at)
	}
}

// line returns an entity as a line of the expected result, with its operation
// if wanted.
func line(e *Entity, operation bool) string {
	if !operation {
		return e.ContentID
	}
	or := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	return or(e.ContentID) + " " + or(string(e.Operation))
}
