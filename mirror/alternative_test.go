package mirror_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A contradictory chain is read again in full when a missing part of it arrives. If another
// part then fails for good, such readings become rarer.
func TestReadAgain(t *testing.T) {
	archive := func(n string) string {
		return `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:feed</id><fh:archive/>
<entry><id>urn:` + n + `</id><title>` + n + `</title><updated>2003-12-0` + n + `T00:00:00Z</updated></entry></feed>
`
	}
	site := feedtest.Serve(t, `Two links to archives.
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id>
<link rel="prev-archive" href="/1"/><link rel="prev-archive" href="/2"/>
<entry><id>urn:3</id><title>3</title><updated>2003-12-03T00:00:00Z</updated></entry></feed>
-- /1 --
Status: 500

-- /1@2 --
`+archive("1")+`-- /2 --
`+archive("2")+`-- /2@2 --
Status: 500

`)
	synctest.Test(t, func(t *testing.T) {
		store := mirror.NewMemory()
		m := &mirror.Mirror{Store: store, Client: &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: feedtest.Direct{Handler: site}, Tries: 1}}
		for n := range 200 {
			if n == 1 {
				site.Next()
			}
			report, err := m.Update(t.Context(), site.URL+"/feed.atom")
			require.NoError(t, err)
			require.Equal(t, feedhistory.VerdictPartial, report.Feed.Verdict, n)
			require.NotEmpty(t, report.Feed.Ledger.Gaps())
			time.Sleep(time.Hour)
		}
		requests := map[string]int{}
		for _, r := range site.Requests() {
			requests[site.Path(r.URL)]++
		}
		require.Equal(t, 200, requests["/feed.atom"])
		require.Greater(t, requests["/1"], 3)
		require.Less(t, requests["/1"], 30)
	})
}

// The poll that reads a contradictory chain again is cut short: the contradiction stays owed.
func TestReadAgainCutShort(t *testing.T) {
	const mark = `<fh:archive/>`
	isThere, cut := false, func() {}
	site := programSite{
		"/feed": func() string {
			return numbered(`<link rel="prev-archive" href="/1"/><link rel="prev-archive" href="/2"/>`, 3)
		},
		"/1": func() string {
			if cut(); !isThere {
				return ""
			}
			return numbered(mark, 1)
		},
		"/2": func() string { return numbered(mark, 2) },
	}
	m := newMirror(mirror.NewMemory(), site)
	polled(t, m, programURL)
	isThere = true
	polled(t, m, programURL)
	ctx, cancel := context.WithCancel(t.Context())
	cut = cancel
	report, err := m.Update(ctx, programURL)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, feedhistory.VerdictPartial, report.Feed.Verdict)
	report = polled(t, m, programURL)
	require.Equal(t, feedhistory.VerdictPartial, report.Feed.Verdict)
	require.NotEmpty(t, report.Feed.Ledger.Gaps())
}

// A document at which the feed is said to begin fails, and the feed shows nothing meanwhile:
// what came and went until it answers is a window all the same.
func TestLateBeginning(t *testing.T) {
	feed := func(links, entries string) string {
		return `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><link rel="prev-archive" href="/0"/>` + links + entries + "</feed>\n"
	}
	entry := func(n string) string {
		return `<entry><id>urn:` + n + `</id><title>` + n + `</title><updated>2003-12-0` + n + `T00:00:00Z</updated></entry>`
	}
	site := feedtest.Serve(t, "The feed moves.\n-- /feed.atom --\n"+feed("", entry("3")+entry("2"))+
		"-- /feed.atom@2 --\n"+feed(`<archive xmlns="http://purl.org/syndication/history/1.0"/><link rel="current" href="/new"/>`, "")+
		"-- /new --\nStatus: 500\n\n-- /new@3 --\n"+feed("", entry("9")+entry("8"))+
		"-- /0 --\n"+`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:feed</id><fh:archive/>`+entry("1")+"</feed>\n")
	synctest.Test(t, func(t *testing.T) {
		m := &mirror.Mirror{Store: mirror.NewMemory(), Client: &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: feedtest.Direct{Handler: site}, Tries: 1}}
		var report *mirror.Report
		for range 3 {
			var err error
			report, err = m.Update(t.Context(), site.URL+"/feed.atom")
			require.NoError(t, err)
			site.Next()
			time.Sleep(time.Hour)
		}
		require.Equal(t, feedhistory.VerdictPartial, report.Feed.Verdict)
		require.Len(t, report.Feed.Ledger.Gaps(), 1)
		require.Equal(t, feedhistory.ReasonMissedWindow, report.Feed.Ledger.Gaps()[0].Reason)
	})
}

// A document gives itself the address of another one. That excuses no failure there, and a
// document that appears there later is read, whether a link led to it before or not. Once
// the link is gone, the feed is whole without it.
func TestClaimedAddress(t *testing.T) {
	const claims = `<fh:archive/><link rel="self" href="/2"/>`
	for _, history := range []string{"appears", "unlinked", "linked"} {
		synctest.Test(t, func(t *testing.T) {
			text := map[string]string{"/feed": feedText(prev("/3")+prev("/2"), "9", "8"), "/3": feedText(claims, "8", "7")}
			store := mirror.NewMemory()
			m := newMirror(store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if text[r.URL.Path] == "" {
					http.NotFound(w, r)
				}
				_, _ = io.WriteString(w, text[r.URL.Path])
			}))
			if history == "linked" {
				text["/feed"] = feedText(prev("/3"), "9", "8")
				require.Equal(t, feedhistory.VerdictWhole, polled(t, m, modelURL).Feed.Verdict)
				text["/feed"], text["/4"] = feedText(prev("/4"), "9", "8"), feedText("<fh:archive/>"+prev("/2"), "8", "4")
				text["/2"] = feedText(claims+prev("/3"), "6", "5")
				require.Equal(t, feedhistory.VerdictWhole, polled(t, m, modelURL).Feed.Verdict)
				require.Len(t, held(t, store, modelURL), 6)
				return
			}
			for range 3 {
				changes := polled(t, m, modelURL)
				require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
				require.Equal(t, "http://model.example/2", changes.Feed.Ledger.Gaps()[0].URL)
				time.Sleep(25 * time.Hour)
			}
			if history == "appears" {
				text["/2"] = feedText(claims, "6", "5")
				polled(t, m, modelURL)
				require.Len(t, held(t, store, modelURL), 5)
				return
			}
			text["/feed"] = feedText(prev("/3"), "9", "8")
			require.Equal(t, feedhistory.VerdictWhole, polled(t, m, modelURL).Feed.Verdict)
		})
	}
}

// feedText returns a feed document with a head and entries.
func feedText(head string, ids ...string) string {
	text := `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:feed</id>` + head
	for _, id := range ids {
		text += fmt.Sprintf(`<entry><id>urn:%s</id><title>%s</title></entry>`, id, id)
	}
	return text + `</feed>`
}

// A document marked complete has a link to an archive that cannot be read, whether it was
// known before or not. Its mark excuses no link: other entries may be there.
func TestCompleteWithUnreadArchive(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusGone, http.StatusForbidden, http.StatusInternalServerError} {
		for _, isKnown := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				text := map[string]string{"/feed": feedText(prev("/1"), "9", "8"), "/1": feedText("<fh:archive/>", "8", "7")}
				m := newMirror(mirror.NewMemory(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if text[r.URL.Path] == "" {
						w.WriteHeader(status)
					}
					_, _ = io.WriteString(w, text[r.URL.Path])
				}))
				if isKnown {
					require.Equal(t, feedhistory.VerdictWhole, polled(t, m, modelURL).Feed.Verdict)
				}
				text["/feed"], text["/1"] = feedText("<fh:complete/>"+prev("/1"), "9", "8"), ""
				for range 3 {
					time.Sleep(25 * time.Hour)
					changes := polled(t, m, modelURL)
					require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
					require.Len(t, changes.Feed.Ledger.Gaps(), 1)
					require.Equal(t, "http://model.example/1", changes.Feed.Ledger.Gaps()[0].URL)
				}
				text["/1"] = feedText("<fh:archive/>", "8", "7")
				time.Sleep(25 * time.Hour)
				changes := polled(t, m, modelURL)
				require.Equal(t, feedhistory.ReasonContradiction, changes.Feed.Ledger.Gaps()[0].Reason)
				text["/feed"] = feedText("<fh:complete/>", "9", "8")
				time.Sleep(25 * time.Hour)
				require.Equal(t, feedhistory.VerdictWhole, polled(t, m, modelURL).Feed.Verdict)
			})
		}
	}
}
