package mirror_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A complete document voids what was read before it (5005#1), and nothing else.

const voidURL = "http://site.example/feed"

// A voidFeed is an Atom feed with a content that changes from poll to poll.
type voidFeed struct {
	*testing.T
	text   string
	mirror mirror.Mirror
}

func newVoidFeed(t *testing.T) *voidFeed {
	f := &voidFeed{T: t}
	site := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, f.text) })
	f.mirror = mirror.Mirror{
		Store: mirror.NewMemory(), Recheck: -1,
		Client: &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: feedtest.Direct{Handler: site}, Tries: 1},
	}
	return f
}

func voidDocument(content ...string) string {
	return `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:at="http://purl.org/atompub/tombstones/1.0"><id>urn:a</id><title>A</title>` +
		strings.Join(content, "") + `</feed>`
}

func voidEntry(id, title string, minute int) string {
	return fmt.Sprintf(`<entry><id>urn:%s</id><title>%s</title><updated>2000-01-01T00:%02d:00Z</updated></entry>`, id, title, minute)
}

func voidTombstone(id string, minute int) string {
	return fmt.Sprintf(`<at:deleted-entry ref="urn:%s" when="2000-01-01T00:%02d:00Z"/>`, id, minute)
}

// poll polls the feed an hour later.
func (f *voidFeed) poll(content ...string) {
	f.text = voidDocument(content...)
	time.Sleep(time.Hour)
	_, err := f.mirror.Update(f.Context(), voidURL)
	require.NoError(f, err)
}

// keep keeps documents of another source.
func (f *voidFeed) keep(documents ...string) {
	var parsed []*feedhistory.Document
	for i, text := range documents {
		doc, err := feedhistory.Parse(strings.NewReader(text), fmt.Sprint("http://site.example/api/", i))
		require.NoError(f, err)
		doc.Response.Requested = doc.URL
		parsed = append(parsed, doc)
	}
	time.Sleep(time.Hour)
	_, err := f.mirror.Keep(f.Context(), voidURL, mirror.Source{Name: "api", Readings: feedhistory.Readings(parsed...)})
	require.NoError(f, err)
}

func (f *voidFeed) record(id string) *mirror.Record {
	records, err := f.mirror.Store.Records(f.Context(), voidURL, []string{id})
	require.NoError(f, err)
	return records[id]
}

const isComplete = "<fh:complete/>"

// The deletion in a complete document is the same at each poll that shows it.
func TestDeletionInACompleteFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newVoidFeed(t)
		var ledger mirror.Ledger
		deleted := 0
		for poll := range 5 {
			f.text = voidDocument(isComplete, voidEntry("2", "two", 30), voidTombstone("1", 40), fmt.Sprintf("<subtitle>%d</subtitle>", poll))
			if poll == 0 {
				f.text = voidDocument(isComplete, voidEntry("1", "one", 30), voidEntry("2", "two", 30))
			}
			time.Sleep(time.Hour)
			_, err := f.mirror.Update(t.Context(), voidURL)
			require.NoError(t, err)
			for r, err := range f.mirror.Poll(t.Context(), voidURL, ledger) {
				require.NoError(t, err)
				ledger = r.Ledger
				for _, c := range r.Changes {
					if c.Op == mirror.OpPut && c.Entry == nil {
						deleted++
					}
				}
			}
			if r := f.record("urn:1"); poll > 0 {
				d, _ := r.Deletion()
				require.Equal(t, time.Date(2000, 1, 1, 0, 40, 0, 0, time.UTC), d.When.UTC())
				require.EqualValues(t, 2, r.LastCommit)
			}
		}
		require.Equal(t, 1, deleted)
	})
}

// An entry whose new copy does not fit into the quota stays as it was.
func TestNoRoomInACompleteFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newVoidFeed(t)
		f.mirror.Quota.Bytes = 1000
		f.poll(isComplete, voidEntry("1", "one", 30), voidEntry("2", "two", 30))
		for poll := range 3 {
			f.poll(isComplete, voidEntry("1", strings.Repeat("x", 4000), 40), voidEntry("2", "two", 30), fmt.Sprintf("<subtitle>%d</subtitle>", poll))
			require.Equal(t, mirror.Live, f.record("urn:1").State)
		}
	})
}

// A tombstone older than an entry deletes it no more after a complete document of a Keep.
func TestCompleteDocumentOfASource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := voidEntry("1", "one", 30), voidEntry("2", "two", 30)
		f := newVoidFeed(t)
		for hour := range 2 {
			f.poll(fmt.Sprintf("<updated>2000-01-01T%02d:00:00Z</updated>", hour+1), one)
		}
		f.keep(voidDocument(isComplete, "<updated>2000-01-01T00:40:00Z</updated>", one))
		f.poll("<updated>2000-01-01T03:00:00Z</updated>", voidEntry("3", "three", 59), voidTombstone("1", 10))
		require.Equal(t, mirror.Live, f.record("urn:1").State)

		f = newVoidFeed(t)
		f.keep(voidDocument(isComplete, one), voidDocument(two))
		f.poll(one, voidTombstone("2", 10))
		require.Equal(t, mirror.Live, f.record("urn:2").State)
	})
}
