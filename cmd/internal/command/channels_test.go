package command

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A channelFeed is YouTube's feed of the latest 15 of n videos.
func channelFeed(n int, page string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<feed xmlns:yt="http://www.youtube.com/xml/schemas/2015" xmlns:media="http://search.yahoo.com/mrss/" xmlns="http://www.w3.org/2005/Atom"><id>yt:channel:x</id><title>Lights</title><link rel="alternate" href="%s"/>`, page)
	for i := n; i > n-15; i-- {
		fmt.Fprintf(&b, `<entry><id>yt:video:v%03d</id><yt:videoId>v%03d</yt:videoId><title>Light %d</title><link rel="alternate" href="https://www.youtube.com/watch?v=v%03d"/><published>2024-01-01T00:%02d:00+00:00</published><updated>2024-01-02T00:00:00+00:00</updated></entry>`, i, i, i, i, i%60)
	}
	return b.String() + "</feed>"
}

// channelList is what yt-dlp prints for the channel: a list for each of its tabs.
func channelList(n int) string {
	var videos []string
	for i := n; i > 0; i-- {
		videos = append(videos, fmt.Sprintf(`{"_type": "url", "ie_key": "Youtube", "id": "v%03d", "url": "https://www.youtube.com/watch?v=v%03d", "title": "Light %d", "description": null, "duration": 60.0, "timestamp": null}`, i, i, i))
	}
	return `{"_type": "playlist", "id": "x", "title": "Lights", "extractor_key": "YoutubeTab", "entries": [
		{"_type": "playlist", "title": "Lights - Videos", "entries": [` + strings.Join(videos, ",") + `]},
		{"_type": "playlist", "title": "Lights - Shorts", "entries": [{"_type": "url", "id": "short", "url": "https://www.youtube.com/shorts/short", "title": "A short", "timestamp": 1700000000}]}]}`
}

// fake puts a program in place of yt-dlp. It checks its arguments.
func fake(t *testing.T, script string) {
	if runtime.GOOS == "windows" {
		t.Skip("the fake is a script")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	text := "#!/bin/sh\nfor last; do :; done\ncase \"$*\" in *' --flat-playlist --extractor-args youtubetab:approximate_date -J -- http'*) ;; *) echo \"bad: $*\" >&2; exit 9;; esac\n" + script
	require.NoError(t, os.WriteFile(filepath.Join(dir, "yt-dlp"), []byte(text), 0o700))
}

func fakeList(t *testing.T, list string) {
	file := filepath.Join(t.TempDir(), "list.json")
	require.NoError(t, os.WriteFile(file, []byte(list), 0o600))
	fake(t, "cat '"+file+"'")
}

const channelPage = "https://www.youtube.com/channel/UCx"

// recoverChannel fetches a channel's feed, and returns what was told.
func recoverChannel(t *testing.T, feed string) (h *feedhistory.History, by string, told []string) {
	client := &feedhistory.Client{Transport: feedtest.Direct{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/feeds/videos.xml" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(feed))
	})}}
	f := &Backfill{Backfill: true}
	b := f.Methods(client, func(text string) { told = append(told, text) })
	b.Methods = b.Methods[:len(b.Methods)-1] // without the pages of its site
	r, err := b.Fetch(t.Context(), "https://www.youtube.com/feeds/videos.xml?channel_id=UCx", backfill.Probe{})
	require.NoError(t, err)
	return r.History, r.RecoveredBy, told
}

// All videos of a channel come, under the feed's IDs, in the order of the list; the feed's own
// copies count.
func TestChannels(t *testing.T) {
	fakeList(t, channelList(120))
	h, by, told := recoverChannel(t, channelFeed(120, channelPage))
	require.Empty(t, told)
	require.Equal(t, "yt-dlp", by)
	require.Empty(t, h.Gaps)
	require.Len(t, h.Entries, 121)
	seen := map[string]*feedhistory.Entry{}
	for _, e := range h.Entries {
		require.Nil(t, seen[e.ID], e.ID)
		seen[e.ID] = e
	}
	require.Empty(t, seen["yt:video:v120"].KeptBy)
	require.Equal(t, "yt-dlp", seen["yt:video:v001"].KeptBy)
	require.Equal(t, "2023-11-14T22:13:20Z", seen["yt:video:short"].Published.Format(time.RFC3339))
	require.Equal(t, "https://www.youtube.com/watch?v=v001", seen["yt:video:v001"].Links[0].Href)

	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: &feedhistory.Client{Transport: feedtest.Direct{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(channelFeed(120, channelPage)))
	})}}}
	const url = "https://www.youtube.com/feeds/videos.xml"
	_, err := m.Update(t.Context(), url)
	require.NoError(t, err)
	b := (&Backfill{Backfill: true}).Methods(m.Client, nil)
	b.Methods = b.Methods[:len(b.Methods)-1]
	report, err := b.Keep(t.Context(), m, url)
	require.NoError(t, err)
	require.Equal(t, 106, report.Added)
	require.Zero(t, report.Changed, "the feed's copies stay")
	fakeList(t, strings.ReplaceAll(channelList(120), "1700000000", "1700086400"))
	report, err = b.Keep(t.Context(), m, url)
	require.NoError(t, err)
	require.True(t, report == nil || report.Added+report.Changed == 0, "vague times are no change")
}

// What keeps yt-dlp from listing is said in a sentence.
func TestChannelsFailing(t *testing.T) {
	feed := channelFeed(20, channelPage)
	for script, want := range map[string]string{
		"echo 'WARNING: x' >&2; echo 'ERROR: [youtube:tab] UCx: Unable to recognize tab page.' >&2; exit 1": "yt-dlp has not listed " + channelPage + ": [youtube:tab] UCx: Unable to recognize tab page; a newer yt-dlp may",
		"exit 3":                "exit status 3",
		"echo '<html>'":         "its output is not the JSON of a list",
		"echo null":             "yt-dlp lists no video of the feed",
		`echo '{"entries":[]}'`: "yt-dlp lists no video of the feed",
	} {
		fake(t, script)
		h, by, told := recoverChannel(t, feed)
		require.Empty(t, by)
		require.Len(t, h.Entries, 15)
		require.Len(t, told, 1)
		require.Contains(t, told[0], want)
	}
	listingTime = 300 * time.Millisecond
	defer func() { listingTime = 10 * time.Minute }()
	fake(t, "exec sleep 20")
	_, _, told := recoverChannel(t, feed)
	require.Contains(t, told[0], "it took longer than 300ms")
	t.Setenv("PATH", t.TempDir())
	_, _, told = recoverChannel(t, feed)
	require.Contains(t, told[0], "install yt-dlp")
}

// The program only gets the address of a channel at a site it knows, after --.
func TestChannelsAddress(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	fake(t, "echo \"$last\" >>'"+ran+"'; exit 1")
	for page, runs := range map[string]bool{
		"https://vimeo.com/x": true, "https://www.youtube.com/@x": true,
		"http://169.254.169.254/": false, "https://notyoutube.com/": false, "file:///youtube.com": false, "https://youtube.com.evil.example/": false,
	} {
		_ = os.Remove(ran)
		recoverChannel(t, channelFeed(20, page))
		_, err := os.Stat(ran)
		require.Equal(t, runs, err == nil, page)
	}
}
