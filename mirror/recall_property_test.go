package mirror_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
)

// A memoryWorld has a feed whose entries are spread over several places.
type memoryWorld struct {
	entries []memoryEntry
	mirror  *mirror.Mirror
	feed    string       // the document the feed shows
	seen    map[int]bool // the entries that came from the publisher
}

type memoryEntry struct {
	id, link, title string
	at              time.Time
	guid            bool // the feed gives the id
}

func newMemoryWorld(t *rapid.T) *memoryWorld {
	w := &memoryWorld{seen: map[int]bool{}}
	guids := rapid.Bool().Draw(t, "guids")
	shared := rapid.Bool().Draw(t, "shared link")
	for n := range rapid.IntRange(1, 12).Draw(t, "entries") {
		e := memoryEntry{
			id: fmt.Sprint("urn:", n), link: fmt.Sprint("http://recall.example/", n), title: fmt.Sprint("Entry ", n),
			at: day(1).Add(time.Duration(n) * 48 * time.Hour), guid: guids,
		}
		if shared && guids && n%3 == 0 {
			e.link = "http://recall.example/page" // several entries share it
		}
		if !guids {
			e.id = e.link
		}
		w.entries = append(w.entries, e)
	}
	w.mirror = newMirror(mirror.NewMemory(), http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/rss+xml")
		_, _ = io.WriteString(rw, w.feed)
	}))
	return w
}

// document returns a document of the publisher's with some entries, newest first.
func (w *memoryWorld) document(which []int) string {
	var b strings.Builder
	b.WriteString(`<rss version="2.0"><channel><title>Feed</title>`)
	for i := len(which) - 1; i >= 0; i-- {
		e := w.entries[which[i]]
		w.seen[which[i]] = true
		guid := ""
		if e.guid {
			guid = `<guid isPermaLink="false">` + e.id + `</guid>`
		}
		fmt.Fprintf(&b, `<item>%s<title>%s</title><link>%s</link><pubDate>%s</pubDate><description>Published</description></item>`,
			guid, e.title, e.link, e.at.Format(time.RFC1123Z))
	}
	b.WriteString(`</channel></rss>`)
	return b.String()
}

// subset draws some entries, oldest first.
func (w *memoryWorld) subset(t *rapid.T, name string) (which []int) {
	for n := range w.entries {
		if rapid.Bool().Draw(t, name) {
			which = append(which, n)
		}
	}
	return which
}

// altered returns an entry as a reader keeps it: sanitised, with other times of change, and
// without tracking in its address. An anonymous reader does not have its id.
func (w *memoryWorld) altered(t *rapid.T, n int, anonymous bool) mirror.KeptEntry {
	e := w.entries[n]
	k := mirror.KeptEntry{Draft: compose.Draft{
		ID: e.id, Title: feedhistory.Text{Body: e.title}, Published: e.at,
		Content: feedhistory.Text{Type: "html", Body: "<p>Sanitised</p>"},
		Links:   feedhistory.Links{{Rel: "alternate", Href: e.link}},
	}}
	if rapid.Bool().Draw(t, "changed there") {
		k.Updated = e.at.Add(1000 * time.Hour)
	}
	if rapid.Bool().Draw(t, "title") {
		k.Title = feedhistory.Text{Type: "html", Body: " <b>" + strings.ToUpper(e.title) + "</b>"}
	}
	if anonymous {
		k.ID = ""
		if rapid.Bool().Draw(t, "link") && e.guid {
			k.Links[0].Href = strings.Replace(e.link, "http:", "https:", 1) + "?utm_source=feed"
		}
	}
	return k
}

// A place is where entries are; taking from it twice gives the same.
type place struct {
	name string
	take func() error
}

func (w *memoryWorld) places(t *rapid.T) []place {
	ctx := t.Context()
	merged := func(name string) place {
		text := w.document(w.subset(t, name))
		return place{name, func() error {
			doc, err := feedhistory.Parse(strings.NewReader(text), "http://recall.example/"+name)
			if err != nil {
				return err
			}
			_, err = w.mirror.Keep(ctx, recallURL, mirror.Source{Name: name, Readings: feedhistory.Readings(doc)})
			return err
		}}
	}
	reader := func(name string, anonymous bool) place {
		var kept []mirror.KeptEntry
		for _, n := range w.subset(t, name) {
			kept = append(kept, w.altered(t, n, anonymous))
		}
		size := rapid.IntRange(1, 5).Draw(t, "batch")
		return place{name, func() error {
			r := &mirror.Recall{Mirror: w.mirror, Name: name}
			for from := 0; from < len(kept); from += size {
				part := append([]mirror.KeptEntry(nil), kept[from:min(from+size, len(kept))]...)
				if _, err := r.Entries(ctx, recallURL, "", part); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	w.feed = w.document(w.subset(t, "feed"))
	feed := place{"feed", func() error {
		changes, err := w.mirror.Update(ctx, recallURL)
		if err == nil {
			err = changes.Failure
		}
		return err
	}}
	return []place{feed, merged("archive"), merged("memento"), reader("newsboat", false), reader("miniflux", true), reader("greader", true)}
}

// Entries are spread over a feed, an archive, a web archive and three readers, whose copies
// are altered. After all imports in any order, the mirror has each once: the publisher's copy
// where it was ever seen. A second import changes nothing.
func TestRecallAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newMemoryWorld(t)
		places := rapid.Permutation(w.places(t)).Draw(t, "order")
		for _, p := range places {
			require.NoError(t, p.take(), p.name)
		}
		once, versions := w.held(t), w.versions(t)
		titles := map[string]int{}
		for _, text := range once {
			title, _, _ := strings.Cut(text, "|")
			titles[title]++
		}
		for title, n := range titles {
			require.Equal(t, 1, n, "%s is there %d times: %v", title, n, once)
		}
		for n := range w.seen {
			e := w.entries[n]
			require.Equal(t, strings.ToLower(e.title)+"|", once[e.id], "the publisher's copy of %s", e.id)
		}
		for _, p := range places {
			require.NoError(t, p.take(), p.name)
		}
		require.Equal(t, once, w.held(t))
		require.Equal(t, versions, w.versions(t))
	})
}

// held returns the title and the source of each live entry.
func (w *memoryWorld) held(t *rapid.T) map[string]string {
	found := map[string]string{}
	for r, err := range w.mirror.Store.Entries(t.Context(), mirror.Query{Feed: recallURL}) {
		require.NoError(t, err)
		found[r.ID] = strings.ToLower(strings.TrimSpace(r.Content.Title)) + "|" + r.Copy.Source
	}
	return found
}

// versions returns the copies of each live entry that do not count.
func (w *memoryWorld) versions(t *rapid.T) map[string][]string {
	found := map[string][]string{}
	for id := range w.held(t) {
		for v, err := range w.mirror.Store.Versions(t.Context(), recallURL, id) {
			require.NoError(t, err)
			found[id] = append(found[id], v.Copy.Source+" "+v.Copy.Digest)
		}
	}
	return found
}
