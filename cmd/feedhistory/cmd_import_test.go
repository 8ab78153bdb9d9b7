package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/stretchr/testify/require"
)

// everything returns all that a store has.
type everything struct {
	Feeds     []*mirror.Feed
	Documents []*mirror.DocumentRecord
	Records   []*mirror.Record
	Versions  []*mirror.Record
}

func contentsOf(t *testing.T, db string) (all everything) {
	store, err := (&database.Location{DB: db}).Open(&command.World{Ctx: t.Context()})
	require.NoError(t, err)
	defer store.Close()
	all.Feeds = feedtest.All(t, store.Feeds(t.Context(), mirror.FeedQuery{}))
	for _, f := range all.Feeds {
		all.Documents = append(all.Documents, feedtest.All(t, store.Documents(t.Context(), f.URL))...)
		for _, states := range []mirror.States{mirror.Current | mirror.Former, mirror.Traces} {
			for _, r := range feedtest.All(t, store.Entries(t.Context(), mirror.Query{Feed: f.URL, States: states})) {
				all.Records = append(all.Records, r)
				all.Versions = append(all.Versions, feedtest.All(t, store.Versions(t.Context(), f.URL, r.ID))...)
			}
		}
	}
	return all
}

// fullLedger is a Ledger, whose members are its own, with a value for each.
const fullLedger = `{"kind":"archived","known":{"URL":"https://example.org/é<&>","ETag":"\"1\"","LastModified":"Tue","Digest":"d","Kind":"archived","Older":"/1"},
	"further":["/2"],"cap":"lossy","census":1,"unsettled":true,"looked":"2024-01-01T00:00:00Z","checked":"2024-01-02T00:00:00.000000001Z",
	"shown":["a","b"],"versions":"AAAAAQAAAAI=","back":[1],"unordered":true,"ids":["i"],"recent":["r"],"newest":"a","stale":"2024-01-03T00:00:00Z",
	"debts":[{"kind":"document","url":"/1","from":"/","reason":"status","message":"404 <&>","found":"2024-01-01T00:00:00Z","poll":2,
		"rank":{"time":"2023-01-01T00:00:00Z","place":-7},"names":["/3"],"tries":2,"missing":true,"retry":"2024-02-02T00:00:00Z","wait":"2024-02-01T00:00:00Z"},
		{"kind":"window","url":"/","reason":"missed-window","message":"m","found":"2024-01-01T00:00:00Z","poll":3,"before":["a"],"after":["b"],"joined":"/1"}],
	"stranger":{"digest":"d","polls":2,"since":"2024-01-01T00:00:00Z"},"since":4,"inherited":"2024-01-05T00:00:00Z",
	"past":{"title":"T","head":"<feed/>","ledger":{"kind":"paged","known":{"URL":"/p"}}}}`

// filled sets each field of a value to a different value, so that tests forget no field.
func filled(t *testing.T, v reflect.Value, n *int) {
	switch v.Interface().(type) {
	case time.Time:
		*n++
		v.Set(reflect.ValueOf(time.Unix(1e9+int64(*n), int64(*n)).UTC()))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"a":1}`)))
		return
	case mirror.Ledger:
		require.NoError(t, json.Unmarshal([]byte(fullLedger), v.Addr().Interface()))
		return
	}
	switch *n++; v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text <&> \x00\x01 %d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(1)
	case reflect.Struct:
		for _, field := range v.Fields() {
			filled(t, field, n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			filled(t, v.Index(i), n)
		}
	default:
		require.Fail(t, "not filled", "%v", v.Type())
	}
}

// fullStore makes a database in which every field has a value.
func fullStore(t *testing.T, db string) {
	store, err := (&database.Location{DB: db}).Create(&command.World{Ctx: t.Context()})
	require.NoError(t, err)
	defer store.Close()
	n := 0
	for _, url := range []string{"https://example.org/a", "https://example.org/b"} {
		change := &mirror.Commit{Feed: &mirror.Feed{}, Keep: 100}
		filled(t, reflect.ValueOf(change.Feed).Elem(), &n)
		change.Feed.URL, change.Feed.Commits, change.Feed.Alias = url, 0, ""
		for i := range 3 {
			d := &mirror.DocumentRecord{}
			filled(t, reflect.ValueOf(d).Elem(), &n)
			change.Documents = append(change.Documents, d)
			r := &mirror.Record{}
			filled(t, reflect.ValueOf(r).Elem(), &n)
			r.Feed, r.State = url, []mirror.State{mirror.Live, mirror.Deleted, mirror.Absent}[i]
			change.Put = append(change.Put, r)
			for range i {
				v := &mirror.Record{}
				filled(t, reflect.ValueOf(v).Elem(), &n)
				v.ID = r.ID
				change.Versions = append(change.Versions, v)
			}
		}
		for _, state := range []mirror.State{mirror.Unseen, mirror.Erased} {
			r := &mirror.Record{}
			filled(t, reflect.ValueOf(r).Elem(), &n)
			r.Feed, r.State, r.Content, r.Copy = url, state, mirror.Content{}, mirror.Copy{}
			change.Touch = append(change.Touch, r)
		}
		change.Feed.Entries, change.Feed.Deleted, change.Feed.Documents = 1, 2, 3
		require.NoError(t, store.Commit(t.Context(), change))
		for range 3 {
			require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: change.Feed}))
		}
	}
}

// A mirror moves from SQLite to PostgreSQL and back, and is equal in every field.
func TestImportToPostgreSQLAndBack(t *testing.T) {
	server := postgres(t)
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data")) // a directory that does not exist yet
	dbs := []string{filepath.Join(dir, "a.db"), server.Database(t), filepath.Join(dir, "b.db")}
	fullStore(t, dbs[0])
	all, lines := contentsOf(t, dbs[0]), done(t, "", "export", "--raw", "--db", dbs[0])
	require.Len(t, all.Records, 10)
	require.Len(t, all.Versions, 6)
	for _, db := range dbs[1:] {
		done(t, lines, "import", "--db", db)
		again := contentsOf(t, db)
		require.Equal(t, all, again)
		require.Equal(t, lines, done(t, "", "export", "--raw", "--db", db))
		_, _, stderr := call(t.Context(), lines, "import", "--db", db)
		require.Equal(t, "0 feeds · 0 entries imported · 2 already there\n", stderr)
		require.Equal(t, all, contentsOf(t, db))
	}
}

// Wherever an import is cut short, another import completes it.
func TestImportCutShort(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "a.db")
	fullStore(t, from)
	lines := strings.SplitAfter(done(t, "", "export", "--raw", "--db", from), "\n")
	for n := 1; n < len(lines)-1; n++ {
		db := filepath.Join(dir, fmt.Sprint(n, ".db"))
		cut := strings.Join(lines[:n], "") + lines[n][:len(lines[n])/2]
		status, _, stderr := call(t.Context(), cut, "import", "--db", db)
		require.Equal(t, terminal.ExitFailed, status)
		require.Contains(t, stderr, fmt.Sprintf("standard input: line %d: not a line of an Export", n+1))
		done(t, strings.Join(lines, ""), "import", "--db", db)
		require.Equal(t, contentsOf(t, from), contentsOf(t, db))
	}
}

// An import notices lines that are missing at the end or in the middle of a file.
func TestImportMissesLines(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "a.db")
	fullStore(t, from)
	var less []string
	for line := range strings.Lines(done(t, "", "export", "--raw", "--db", from, "https://example.org/a")) {
		if !strings.Contains(line, `"state":"live"`) {
			less = append(less, line)
		}
	}
	db := filepath.Join(dir, "b.db")
	status, _, stderr := call(t.Context(), strings.Join(less, ""), "import", "--db", db)
	require.Equal(t, terminal.ExitFailed, status)
	require.Contains(t, stderr, "lines are missing: of 1 entries, only 0 have been read")
	status, stdout, stderr := call(t.Context(), "", "export", "--raw", "--db", db)
	require.Equal(t, terminal.ExitFailed, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "its import is not complete")
	require.Regexp(t, `never import .* https://example.org/a\n`, done(t, "", "list", "--db", db))
	one := said(done(t, "", "list", "--db", db, "https://example.org/a"))
	require.Contains(t, one, "verdict partial. Its import is not complete.")
	require.Contains(t, one, "next poll none: run the same import again first")
}

// An import does not change a mirrored feed that differs from its lines, except with
// --replace.
func TestImportReplaces(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
	fullStore(t, a)
	lines := done(t, "", "export", "--raw", "--db", a)
	file := filepath.Join(dir, "lines.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	done(t, "", "import", "--db", b, file)
	store, err := (&database.Location{DB: b}).Open(&command.World{Ctx: t.Context()})
	require.NoError(t, err)
	f, err := store.Feed(t.Context(), "https://example.org/b")
	require.NoError(t, err)
	f.Title = "Changed"
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f}))
	require.NoError(t, store.Close())
	status, _, stderr := call(t.Context(), "", "import", "--db", b, file)
	require.Equal(t, terminal.ExitFailed, status)
	require.Contains(t, stderr, file+": line 12: https://example.org/b is already in the store, and differs: --replace replaces it in "+b)
	done(t, "", "import", "--db", b, "--replace", file)
	require.Equal(t, contentsOf(t, a), contentsOf(t, b))
}

func TestImportErrors(t *testing.T) {
	const feed = `{"type":"feed","feed":"https://example.org/","version":1,"state":{"url":"https://example.org/","kind":"plain","verdict":"window","polls":1}}` + "\n"
	for text, want := range map[string]string{
		"x":                                      "line 1: not a line of an Export",
		`{"id":"1"}`:                             "line 1: no line about its feed precedes this line",
		`{"type":"feed"}`:                        "line 1: the line about the feed has no state",
		`{"type":"feed","state":7}`:              "line 1: not a line about a feed",
		feed + `{"id":"1"}`:                      "line 2: no line about its feed precedes this line",
		feed + `{"feed":"https://example.org/"}`: "line 2: the entry has no id",
		feed + `{"feed":"https://example.org/","id":"1","updated":"yesterday"}`:                                     "line 2: the entry 1: updated is not a time",
		feed + `{"feed":"https://example.org/","id":"1","raw":{"format":"atom","data":"x"}}`:                        "line 2: the entry 1: ",
		feed + `{"feed":"https://example.org/","id":"1","mirror":{"state":"odd"}}`:                                  `line 2: the entry 1: "odd" is not a state`,
		feed + `{"feed":"https://example.org/","id":"1","mirror":{"state":"live","content":{"format":"atom"}}}`:     "line 2: the entry 1: its line lacks the member raw",
		feed + `{"feed":"https://example.org/","id":"1"}` + "\n" + `{"feed":"https://example.org/","id":"1"}`:       "line 3: line 2 already has the id 1",
		feed + `{"feed":"https://example.org/","type":"document","document":{}}`:                                    "line 2: the document has no url",
		feed + `{"feed":"https://example.org/","id":7}`:                                                             "line 2: not a line about an entry",
		strings.Replace(feed, `"polls":1`, `"polls":1,"entries":2`, 1) + `{"feed":"https://example.org/","id":"1"}`: "line 2: https://example.org/: lines are missing: of 2 entries, only 1 have been read",
		feed + `{"feed":"https://example.org/","type":"gap","gap":{"reason":5}}`:                                    "line 2: not a line about a gap",
	} {
		status, _, stderr := call(t.Context(), text, "import", "--db", filepath.Join(t.TempDir(), "x.db"))
		require.Equal(t, terminal.ExitFailed, status, text)
		require.Contains(t, stderr, "feedhistory: standard input: "+want, text)
	}
}

// Polls continue with the feed that fetch --raw printed: they find nothing changed.
func TestImportFetched(t *testing.T) {
	dir, url := serveDirectory(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pod.rss"), []byte(richFeed), 0o600))
	db := filepath.Join(dir, "feeds.db")
	lines := done(t, "", "fetch", "--allow-private", "--raw", url+"/pod.rss")
	done(t, lines, "import", "--db", db)
	fetched := done(t, "", "fetch", "--allow-private", url+"/pod.rss")
	require.ElementsMatch(t, linesOf(t, fetched, "head"), linesOf(t, done(t, "", "export", "--db", db), "head"))
	var report struct{ Added, Changed, Deleted int }
	require.NoError(t, json.Unmarshal([]byte(done(t, "", "sync", "--allow-private", "--json", "--all", "--db", db)), &report))
	require.Zero(t, report)
	require.ElementsMatch(t, linesOf(t, fetched, "head"), linesOf(t, done(t, "", "export", "--db", db), "head"))
	require.Empty(t, contentsOf(t, db).Versions)
}

// Lines have the members of a JSON Feed that no other format has, also after a mirror.
func TestRawPrivateMembers(t *testing.T) {
	dir, url := serveDirectory(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "feed.json"), []byte(`{"version":"https://jsonfeed.org/version/1.1","title":"T",`+
		`"items":[{"id":"1","content_text":"x","image":"https://example.org/i.png","banner_image":"https://example.org/b.png","_blue":{"shade":7}}]}`), 0o600))
	db := filepath.Join(dir, "feeds.db")
	lines := done(t, "", "fetch", "--allow-private", "--raw", url+"/feed.json")
	done(t, lines, "import", "--db", db)
	for _, text := range []string{lines, done(t, "", "export", "--db", db, "--raw"), done(t, "", "export", "--db", db)} {
		for _, member := range []string{`\"image\":\"https://example.org/i.png\"`, `\"banner_image\":\"https://example.org/b.png\"`, `\"_blue\":{\"shade\":7}`} {
			require.Contains(t, text, member)
		}
	}
}

// A feed that is replaced keeps its credentials, which no line has.
func TestImportKeepsCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "k3y" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>F</title><item><guid>urn:1</guid></item></channel></rss>`)
	}))
	defer server.Close()
	db := filepath.Join(t.TempDir(), "feeds.db")
	done(t, "", "sync", "--db", db, "--allow-private", "--header", "X-Key: k3y", server.URL+"/feed.rss")
	lines := done(t, "", "export", "--raw", "--db", db)
	require.NotContains(t, lines, "k3y")
	done(t, "", "sync", "--db", db, "--allow-private", "--all")
	done(t, lines, "import", "--db", db, "--replace")
	done(t, "", "sync", "--db", db, "--allow-private", "--all")
}

// No feed is imported whose address sync would refuse; a password in it is not shown.
func TestImportRefusesAddresses(t *testing.T) {
	db := filepath.Join(t.TempDir(), "feeds.db")
	for url, want := range map[string]string{
		"http://ann:secret@example.org/": "line 1: http://example.org/: a user or password in the URL",
		"http://ann:sec/ret@example.org": "line 1: http://…@example.org is not a URL",
		"javascript:alert(1)":            "line 1: javascript:alert(1) is not a URL",
		"ftp://example.org/":             `line 1: ftp://example.org/: unsupported scheme "ftp"`,
	} {
		line := `{"type":"feed","feed":"` + url + `","version":1,"state":{"url":"` + url + `","kind":"plain","verdict":"whole","polls":1}}`
		status, _, stderr := call(t.Context(), line, "import", "--db", db)
		require.Equal(t, terminal.ExitFailed, status, stderr)
		require.Contains(t, stderr, want)
		require.NotContains(t, stderr, "secret")
		require.NotContains(t, stderr, "--help")
		require.NoFileExists(t, db)
	}
}
