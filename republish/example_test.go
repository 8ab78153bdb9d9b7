package republish_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// An aggregator serves its feeds again, with their whole histories, beside its
// own pages.
func ExampleHandler() {
	// A publisher whose feed shows only its two latest entries.
	var entries []string
	for n, title := range []string{"First", "Second", "Third"} {
		entries = append(entries, fmt.Sprintf(`<entry><id>urn:%d</id><title>%s</title><updated>2026-01-0%[1]dT00:00:00Z</updated></entry>`, n+1, title))
	}
	shown := ""
	publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><title>Site</title><updated>2026-01-01T00:00:00Z</updated>`+shown+`</feed>`)
	}))
	defer publisher.Close()

	// The aggregator polls it twice.
	store := mirror.NewMemory()
	client := &feedhistory.Client{AllowPrivate: true}
	defer client.CloseIdle()
	m := &mirror.Mirror{Store: store, Client: client}
	for n := range 2 {
		shown = entries[n+1] + entries[n]
		if _, err := m.Update(context.Background(), publisher.URL); err != nil {
			fmt.Println(err)
		}
	}

	mux := http.NewServeMux()
	mux.Handle("/history/", &republish.Handler{Store: store, Base: "https://reader.example/history/"})

	r := httptest.NewRequest(http.MethodGet, "/history/feeds/"+republish.Name(publisher.URL)+"/index.atom", nil)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	doc, err := feedhistory.Parse(strings.NewReader(w.Body.String()), "")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range doc.Entries {
		fmt.Println(e.Title().Plain())
	}
	fmt.Println(doc.Coverage.Verdict)
	// Output:
	// Third
	// Second
	// First
	// window
}

// One feed has a path of its own. It redirects, because the feed's documents give their
// URLs below Base.
func ExampleHandler_Name() {
	const feed = "https://example.org/feed.atom"
	store := mirror.NewMemory()
	h := &republish.Handler{Store: store, Base: "https://reader.example/history/"}

	mux := http.NewServeMux()
	mux.Handle("/history/", h)
	mux.HandleFunc("GET /example.atom", func(w http.ResponseWriter, r *http.Request) {
		name, err := h.Name(r.Context(), feed)
		if err != nil {
			http.Error(w, "try again later", http.StatusInternalServerError)
			return
		}
		http.Redirect(w, r, "/history/feeds/"+name+"/index.atom", http.StatusFound)
	})

	// The feed has one entry.
	m := &mirror.Mirror{Store: store}
	entry, _ := feedhistory.ReadEntry(feedhistory.FormatAtom, `<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:1</id><title>One</title></entry>`, "")
	doc := &feedhistory.Document{Entries: []*feedhistory.Entry{entry}}
	_, err := m.Keep(context.Background(), feed, mirror.Source{Name: "example", Readings: feedhistory.Readings(doc)})
	if err != nil {
		fmt.Println(err)
		return
	}

	path := "/example.atom"
	for range 2 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(path, w.Code)
		path = w.Header().Get("Location")
	}
	// Output:
	// /example.atom 302
	// /history/feeds/4d4c3e3ef544002b72d9125af978980f/index.atom 200
}

// A feed gets its names before it joins the mirror.
func ExampleHandler_Reserve() {
	ctx, url := context.Background(), "https://example.org/feed.atom"
	store := mirror.NewMemory()
	h := &republish.Handler{Store: store}
	switch err := h.Reserve(ctx, url); {
	case errors.Is(err, republish.ErrNameTaken):
		fmt.Println("add the feed by a different address")
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Println(store.Commit(ctx, &mirror.Commit{Feed: mirror.NewFeed(url)}))
	}
	// Output: <nil>
}
