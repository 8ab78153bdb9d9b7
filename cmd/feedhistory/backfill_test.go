package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// blog is a WordPress blog of 35 posts, ten a page, behind a cache that leaves
// all parameters but paged out. An archive has one snapshot of /old.rss.
func blog(t *testing.T) string {
	var url string
	mux := http.NewServeMux()
	mux.HandleFunc("/feed/", func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("paged"))
		newest := 35 - 10*(max(page, 1)-1)
		if newest <= 0 {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `<rss version="2.0"><channel><title>A blog</title><lastBuildDate>Tue, 20 Jun 2000 18:02:59 GMT</lastBuildDate><generator>https://wordpress.org/?v=6.7</generator>`)
		for id := newest; id > max(newest-10, 0); id-- {
			fmt.Fprintf(w, "<item><guid>urn:%d</guid><title>Post %d</title></item>", id, id)
		}
		fmt.Fprint(w, `</channel></rss>`)
	})
	mux.HandleFunc("/old.rss", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<rss><channel><lastBuildDate>Tue, 20 Jun 2000 18:02:59 GMT</lastBuildDate><generator>by hand</generator><item><guid>urn:3</guid></item><item><guid>urn:2</guid></item></channel></rss>`)
	})
	mux.HandleFunc("/timemap/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<%s/old.rss>; rel="original", <%s/snapshot>; rel="first last memento"; datetime="Tue, 20 Jun 2000 18:02:59 GMT"`, url, url)
	})
	mux.HandleFunc("/snapshot", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<rss><channel><item><guid>urn:2</guid></item><item><guid>urn:1</guid></item></channel></rss>`)
	})
	server := feedtest.Server(t, mux)
	url = server.URL
	return url
}

func TestFetchBackfill(t *testing.T) {
	url := blog(t)
	for _, test := range []struct {
		name    string
		args    []string
		entries int
		status  int
		stdout  []string // of --format json
		stderr  string
	}{
		{"not asked for", []string{url + "/feed/"}, 10, exit.OK,
			[]string{`"verdict":"window"`}, "verdict: window. These are the feed's latest entries; it does not say whether"},
		{"WordPress", []string{"--backfill", url + "/feed/"}, 35, exit.OK,
			[]string{`"kind":"plain"`, `"verdict":"lossy"`, `"recovered_by":"wordpress"`}, "verdict: lossy. Recovered by wordpress"},
		{"nothing", []string{"--backfill", url + "/old.rss"}, 2, exit.OK,
			[]string{`"verdict":"window"`}, "No method found any."},
		{"an archive", []string{"--backfill-archive", url + "/timemap/", url + "/old.rss"}, 3, exit.OK,
			[]string{`"verdict":"lossy"`, `"recovered_by":"memento"`}, "Recovered by memento"},
		{"too much", []string{"--backfill", "--max-documents", "3", url + "/feed/"}, 30, exit.Partial,
			[]string{`"verdict":"partial"`, `"recovered_by":"wordpress"`, `"reason":"budget"`}, "verdict: partial. Recovered by wordpress."},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"fetch", "--allow-private"}, test.args...)
			status, stdout, stderr := call(t.Context(), "", append(args, "--format", "json")...)
			if status != test.status {
				t.Errorf("status %d: %s", status, stderr)
			}
			for _, want := range test.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("%s is missing in %s", want, stdout)
				}
			}
			if text := strings.Join(strings.Fields(stderr), " "); !strings.Contains(text, test.stderr) {
				t.Errorf("%q is missing in %q", test.stderr, text)
			}
			if n := strings.Count(stdout, `"id":`); n != test.entries {
				t.Errorf("%d entries, want %d", n, test.entries)
			}
			if test.name == "an archive" {
				return // one second between requests
			}
			_, stdout, _ = call(t.Context(), "", append(args, "--format", "atom")...)
			doc, err := feedhistory.Parse(strings.NewReader(stdout), "")
			if err != nil || doc.Complete || len(doc.Entries) < test.entries {
				t.Errorf("%v: complete %v, %d entries", err, doc.Complete, len(doc.Entries))
			}
		})
	}
}

// No web archive is asked about a private feed: neither when it is added, nor later, nor
// with credentials.
func TestArchivesAreNotAskedAboutPrivateFeeds(t *testing.T) {
	asked := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the archive is asked for %s", r.URL)
	}))
	feed := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<rss version="2.0"><channel><title>T</title><generator>by hand</generator><item><guid>urn:1</guid></item></channel></rss>`)
	}))
	url, db := feed.URL+"/feed.rss?token=s3cret", "--db="+t.TempDir()+"/feeds.db"
	for _, args := range [][]string{
		{"sync", db, "--private", url},
		{"sync", db, url},
		{"sync", db, "--all"},
		{"sync", db, "--header", "X-Key: k3y", feed.URL + "/other.rss"},
		{"sync", db, "--all"},
		{"fetch", "--header", "X-Key: k3y", url},
	} {
		status, stdout, stderr := call(t.Context(), "", append(args, "--allow-private", "--backfill-archive", asked.URL+"/timemap/")...)
		if status != exit.OK {
			t.Errorf("%q: %d\n%s%s", args, status, stdout, stderr)
		}
	}
}

// A sync recovers entries that a feed does not declare only once, and says how.
func TestSyncBackfill(t *testing.T) {
	url := blog(t) + "/feed/"
	db := "--db=" + t.TempDir() + "/feeds.db"
	for _, test := range []struct{ stdout, stderr string }{
		{`"verdict":"lossy","added":35,`, "35 new · lossy"},
		{`"verdict":"lossy","added":0,`, "nothing new · lossy"},
	} {
		status, stdout, stderr := call(t.Context(), "", "sync", db, "--allow-private", "--backfill", "--json", url)
		if status != exit.OK || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) {
			t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
		}
	}
	status, stdout, _ := call(t.Context(), "", "list", db, url)
	if status != exit.OK || !strings.Contains(stdout, "source    wordpress") {
		t.Errorf("status %d\n%s", status, stdout)
	}
}

// counted is a WordPress blog of 25 posts, ten a page, whose API counts them.
func counted(t *testing.T) string {
	var url string
	mux := http.NewServeMux()
	mux.HandleFunc("/feed/", func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("paged"))
		w.Header().Set("Link", "<"+url+`/wp-json/>; rel="https://api.w.org/"`)
		fmt.Fprint(w, `<rss version="2.0"><channel><title>A blog</title><lastBuildDate>Tue, 20 Jun 2000 18:02:59 GMT</lastBuildDate><generator>https://wordpress.org/?v=6.7</generator>`)
		for i := 10 * (max(page, 1) - 1); i < min(10*max(page, 1), 25); i++ {
			id := 25 - i
			if r.URL.Query().Get("order") == "ASC" {
				id = i + 1
			}
			fmt.Fprintf(w, "<item><guid>urn:%d</guid><title>Post %d</title></item>", id, id)
		}
		fmt.Fprint(w, `</channel></rss>`)
	})
	mux.HandleFunc("/wp-json/wp/v2/posts", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-WP-Total", "25")
		var posts []string
		for id := 1; id <= 25; id++ {
			posts = append(posts, fmt.Sprintf(`{"id":%d,"guid":{"rendered":"urn:%d"},"modified":"2026-01-01T00:00:%02d"}`, id, id, id))
		}
		fmt.Fprintf(w, "[%s]", strings.Join(posts, ","))
	})
	server := feedtest.Server(t, mux)
	url = server.URL
	return url
}

// A whole that a server's count says is one as of that count, wherever it is
// shown.
func TestSyncAsOf(t *testing.T) {
	url := counted(t) + "/feed/"
	db := "--db=" + t.TempDir() + "/feeds.db"
	status, stdout, stderr := call(t.Context(), "", "sync", db, "--allow-private", "--backfill", "--json", url)
	if status != exit.OK || !strings.Contains(stdout, `"verdict":"whole","as_of":"20`) || !strings.Contains(stderr, "25 new · whole as of 20") {
		t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
	}
	for want, args := range map[string][]string{
		"all entries the server counted on 20": {"list", db, url},
		`"as_of":"20`:                          {"list", db, "--json"},
	} {
		status, stdout, _ := call(t.Context(), "", args...)
		if status != exit.OK || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("status %d\n%s", status, stdout)
		}
	}
}

// A history that a budget has cut short is partial, and the next sync continues.
func TestSyncBackfillGoesOn(t *testing.T) {
	url := counted(t) + "/feed/"
	db := "--db=" + t.TempDir() + "/feeds.db"
	status, stdout, stderr := call(t.Context(), "", "sync", db, "--allow-private", "--backfill", "--max-documents=2", "--json", url)
	if status != exit.Partial || !strings.Contains(stdout, `"verdict":"partial"`) || !strings.Contains(stderr, "the budget is spent; the next sync continues there") {
		t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
	}
	status, stdout, stderr = call(t.Context(), "", "sync", db, "--allow-private", "--backfill", "--json") // though it is not due
	if status != exit.OK || !strings.Contains(stdout, `"verdict":"whole"`) {
		t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
	}
}
