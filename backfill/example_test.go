package backfill_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
)

// tumblelog shows one post at a time, and the older ones at /page/2/rss and so
// on. Its feed does not say so.
func tumblelog() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		item := map[string]string{"/rss": "Three", "/page/2/rss": "Two", "/page/3/rss": "One"}[r.URL.Path]
		fmt.Fprint(w, `<rss version="2.0"><channel><generator>Tumblr (3.0; @name)</generator>`)
		if item != "" {
			fmt.Fprintf(w, `<item><guid>%s</guid><title>%s</title></item>`, strings.ToLower(item), item)
		}
		fmt.Fprint(w, `</channel></rss>`)
	}))
}

// The feed shows one post, and the site has all of them.
func Example() {
	server := tumblelog()
	defer server.Close()
	client := &feedhistory.Client{AllowPrivate: true} // for this server
	defer client.CloseIdle()

	b := backfill.Backfill{HTTP: client}
	result, err := b.Fetch(context.Background(), server.URL+"/rss", backfill.Probe{})
	if err != nil {
		panic(err)
	}
	for _, e := range result.History.Entries {
		fmt.Println(e.Title().Plain())
	}
	fmt.Println(result.Verdict(), "by", result.RecoveredBy)
	// Output:
	// Three
	// Two
	// One
	// lossy by tumblr
}

// A walk yields documents as they come. What it learns is stored, and not tried
// again.
func ExampleBackfill_Attempt() {
	server := tumblelog()
	defer server.Close()
	client := &feedhistory.Client{AllowPrivate: true} // for this server
	defer client.CloseIdle()

	b := backfill.Backfill{HTTP: client}
	var stored []byte
	for range 2 {
		var probe backfill.Probe
		if stored != nil {
			if err := json.Unmarshal(stored, &probe); err != nil {
				panic(err)
			}
		}
		walk := b.Attempt(context.Background(), server.URL+"/rss", probe)
		documents := 0
		for r, err := range walk.Readings() {
			if err != nil {
				panic(err)
			}
			if r.Document != nil {
				documents++
			}
		}
		stored, _ = json.Marshal(walk.Probe())
		fmt.Println(documents, string(stored))
	}
	// Output:
	// 3 {"method":"tumblr"}
	// 3 {"method":"tumblr"}
}

// A web archive is used only if it is among the methods.
func ExampleMemento() {
	b := backfill.Backfill{Methods: append(backfill.Methods(), backfill.Memento{})}
	feed, err := feedhistory.Parse(strings.NewReader(`<rss version="2.0"><channel><generator>by hand</generator></channel></rss>`), "")
	if err != nil {
		panic(err)
	}
	_, maybe := b.Candidates(feed)
	for _, m := range maybe {
		fmt.Println(m.Name())
	}
	// Output: memento
}

// Only the methods of three platforms are tried.
func ExampleMethod() {
	feed, err := feedhistory.Parse(strings.NewReader(`<rss version="2.0"><channel><generator>https://wordpress.org/?v=6.4</generator></channel></rss>`), "https://example.org/feed/")
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range []backfill.Method{backfill.WordPress{}, backfill.Blogger{}, backfill.ActivityPub{}} {
		fmt.Println(m.Name(), m.Recognise(feed))
	}
	// Output:
	// wordpress yes
	// blogger no
	// activitypub no
}

// A feed's generator tells which methods suit it.
func ExampleSign() {
	const text = `<rss version="2.0"><channel><generator>https://wordpress.org/?v=6.4</generator></channel></rss>`
	doc, err := feedhistory.Parse(strings.NewReader(text), "https://example.org/feed")
	if err != nil {
		panic(err)
	}
	for _, m := range []backfill.Method{backfill.WordPress{}, backfill.Blogger{}, backfill.Memento{}} {
		switch m.Recognise(doc) {
		case backfill.Yes:
			fmt.Println(m.Name(), "knows its software")
		case backfill.Maybe:
			fmt.Println(m.Name(), "may work")
		case backfill.Any:
			fmt.Println(m.Name(), "works with any software")
		case backfill.No:
			fmt.Println(m.Name(), "cannot work")
		}
	}
	fmt.Println(backfill.Probe{Method: backfill.None}.Method, "of them worked")
	// Output:
	// wordpress knows its software
	// blogger cannot work
	// memento works with any software
	// none of them worked
}
