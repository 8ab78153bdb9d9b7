package publish_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
)

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
		for record, err := range publish.Lines(strings.NewReader(lines)) {
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
				e, err := feedhistory.Draft{ID: fmt.Sprint("urn:", n-1), Updated: time.Unix(n-1, 0)}.Entry()
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
	next, _ := page.Older()
	fmt.Println(page.Kind(), len(page.Entries), next.Href)
	// Output:
	// paged 50 https://example.org/numbers?before=AQAAAAAAAAO2AAAAAHVybjo5NTCi156r
}
