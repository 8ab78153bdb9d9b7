package publish_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/publish"
)

func ExamplePublisher() {
	dir, err := os.MkdirTemp("", "blog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p := &publish.Publisher{
		Output: publish.Dir{Path: dir},
		Base:   "https://example.org/blog/",
		Head:   &feedhistory.Document{Title: "My blog"},
		Split:  compose.Split{Period: compose.Month},
	}
	for month := time.October; month <= time.December; month++ {
		e, err := compose.Draft{
			ID:      fmt.Sprintf("tag:example.org,2003:%d", month),
			Title:   feedhistory.Text{Body: "News of " + month.String()},
			Updated: time.Date(2003, month, 13, 18, 30, 2, 0, time.UTC),
		}.Entry()
		if err != nil {
			log.Fatal(err)
		}
		if err := p.Append(context.Background(), e); err != nil {
			log.Fatal(err)
		}
	}
	names, err := fs.Glob(p.Output, "feed/*/*")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range append(names, "feed.atom") {
		fmt.Println(regexp.MustCompile("-[0-9a-f]+").ReplaceAllString(name, "-…"))
	}
	fmt.Println(p.URL())
	// Output:
	// feed/2003/10-….atom
	// feed/2003/11-….atom
	// feed.atom
	// https://example.org/blog/feed.atom
}

// The history of another feed is published again. Entries need an id.
func ExampleShownIn() {
	p := &publish.Publisher{Output: &publish.MemoryOutput{}, Base: "https://example.org/"}
	entry, err := compose.Draft{ID: "urn:1", Updated: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)}.Entry()
	if err != nil {
		log.Fatal(err)
	}
	ctx, history := context.Background(), &feedhistory.History{Entries: []*feedhistory.Entry{entry}}
	_, err = p.Publish(ctx, publish.Batch{Entries: history.Entries, Deleted: history.Deleted, Shown: publish.ShownIn(history)})
	fmt.Println(err)
	fmt.Println(errors.Is(p.Append(ctx, &feedhistory.Entry{}), publish.ErrNoID))
	// Output:
	// <nil>
	// true
}

// The build of a site publishes all entries. The second time there is nothing
// to do.
func ExamplePublisher_Publish() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p := &publish.Publisher{
		Output: publish.Dir{Path: dir},
		Base:   "https://example.org/feeds/",
		Head:   &feedhistory.Document{Title: "Ann writes", Authors: []feedhistory.Person{{Name: "Ann"}}},
	}
	lines := `{"id": "urn:1", "title": "One", "published": "2003-12-13T18:30:02Z"}`
	for range 2 {
		var all []*feedhistory.Entry
		for record, err := range publish.Lines(strings.NewReader(lines), nil) {
			if err != nil {
				log.Fatal(err)
			}
			entry, err := record.Entry()
			if err != nil {
				log.Fatal(err)
			}
			all = append(all, entry)
		}
		done, err := p.Publish(context.Background(), publish.Batch{Entries: all})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(done.New, "new,", done.Unchanged, "unchanged")
	}
	handler := http.StripPrefix("/feeds", &publish.Handler{FS: p.Output})
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/feeds/feed.atom", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output:
	// 1 new, 0 unchanged
	// 0 new, 1 unchanged
	// 200 application/atom+xml
}

// An endless feed is served page by page, from a query.
func ExamplePages() {
	pages := &publish.Pages{
		Head: &feedhistory.Document{ID: "urn:numbers", Title: "Numbers", Authors: []feedhistory.Person{{Name: "Ann"}}},
		Older: func(_ context.Context, than publish.Position, limit int) (entries []*feedhistory.Entry, more bool, err error) {
			n := int64(1000)
			if !than.IsZero() {
				n = than.Updated.Unix()
			}
			for ; n > 1 && len(entries) < limit; n-- {
				e, err := compose.Draft{ID: fmt.Sprint("urn:", n-1), Updated: time.Unix(n-1, 0)}.Entry()
				if err != nil {
					return nil, false, err
				}
				entries = append(entries, e)
			}
			return entries, n > 1, nil
		},
	}
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/numbers", nil))
	page, err := feedhistory.Parse(w.Body, "https://example.org/numbers")
	if err != nil {
		log.Fatal(err)
	}
	next, _ := page.Links.Rel(page.Kind().Older())
	fmt.Println(page.Kind(), len(page.Entries), next.Href)
	// Output:
	// paged 50 https://example.org/numbers?before=AQAAAAAAAAO2AAAAAHVybjo5NTCi156r
}

// Entries are exported as lines of JSON, and imported without loss: with the markup and
// all elements of the publisher, even for an entry without an id.
func ExampleLine_Original() {
	doc, err := feedhistory.Parse(strings.NewReader(`<rss version="2.0" xmlns:x="https://example.org/ns"><channel><title>Small</title>
<item><title>One</title><link>https://example.org/1</link><x:mood>calm</x:mood></item></channel></rss>`), "https://example.org/feed.rss")
	if err != nil {
		log.Fatal(err)
	}

	var lines strings.Builder
	out := json.NewEncoder(&lines)
	for _, e := range doc.Entries {
		line := publish.NewLine(e)
		line.Feed, line.Raw = doc.URL, publish.NewRawEntry(e)
		if err := out.Encode(line); err != nil {
			log.Fatal(err)
		}
	}

	for line, err := range publish.Lines(strings.NewReader(lines.String()), nil) {
		if err != nil {
			log.Fatal(err)
		}
		e, err := line.Original() // line.Entry() would have an id, and an update time
		if err != nil {
			log.Fatal(err)
		}
		given := doc.Entries[0]
		fmt.Println(e.ID, e.WeakID, e.Updated.IsZero())
		fmt.Println(string(e.XML()) == string(given.XML()), line.Raw.Digest == given.Digest())
	}
	// Output:
	// https://example.org/1 true true
	// true true
}
