//go:build linux

package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

var callKills = flag.Int("call-kills", feedtest.Count(24), "at how many system calls TestKilledAtCalls kills each verb")

// writingCalls are the system calls by which a verb changes a disk, or takes a lock.
const writingCalls = "openat,write,pwrite64,fsync,fdatasync,ftruncate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdirat,flock,fcntl"

// writingVerbs are the verbs that write, with their arguments: DIR is a directory with a database of
// a public and of a private feed, and a published feed; URL is the publisher of both.
var writingVerbs = map[string]string{
	"sync of news":        "sync --allow-private --db DIR/feeds.db --all",
	"sync of a new feed":  "sync --allow-private --db DIR/feeds.db URL/more.rss",
	"sync of a secret":    "sync --allow-private --db DIR/feeds.db --header X-Key:k3y URL/secret/more.rss",
	"sync --private":      "sync --allow-private --db DIR/feeds.db --private URL/more.rss",
	"sync, the first":     "sync --allow-private --db DIR/new.db --header X-Key:k3y URL/secret/feed.rss",
	"rm":                  "rm --yes --db DIR/feeds.db URL/feed.rss",
	"rm of a secret":      "rm --yes --db DIR/feeds.db URL/secret/feed.rss",
	"move":                "move --db DIR/feeds.db URL/feed.rss URL/more.rss",
	"move of a secret":    "move --db DIR/feeds.db URL/secret/feed.rss URL/secret/more.rss",
	"erase":               "erase --yes --db DIR/feeds.db urn:/feed.rss:1 urn:/secret/feed.rss:1",
	"erase of published":  "erase --yes --out DIR/pub urn:/feed.rss:1",
	"import":              "import --db DIR/new.db DIR/lines.jsonl",
	"import --replace":    "import --replace --db DIR/feeds.db DIR/more-lines.jsonl",
	"import of a list":    "import --db DIR/feeds.db --from opml DIR/feeds.opml",
	"import of documents": "import --db DIR/feeds.db --from directory DIR/saved URL/feed.rss",
	"export":              "export --db DIR/feeds.db --raw -o DIR/out.jsonl",
	"fetch":               "fetch --allow-private -o DIR/out.jsonl URL/feed.rss",
	"check --digests":     "check --allow-private --chain --digests DIR/out.json URL/feed.rss",
	"publish":             "publish --from DIR/more.jsonl --out DIR/pub --base https://example.org/ --size 2",
	"publish, the first":  "publish --from DIR/more.jsonl --out DIR/new --base https://example.org/ --size 2 --format rss",
	"db backup":           "db backup --db DIR/feeds.db DIR/copy.db",
	"db vacuum":           "db vacuum --db DIR/feeds.db",
	"db check --repair":   "db check --repair --allow-private --db DIR/damaged.db",
	"new --maildir":       "new --db DIR/feeds.db --maildir DIR/mails --as ada",
}

// killWorld is a publisher, and a directory for each run.
type killWorld struct {
	url      string
	template string
}

// newKillWorld prepares the directory; from then on the publisher has news.
func newKillWorld(t *testing.T) *killWorld {
	var isNew atomic.Bool
	site := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/secret/") && r.Header.Get("X-Key") != "k3y" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>F</title><link>https://example.org/</link>`)
		for n := range 8 {
			if n < 6 || isNew.Load() {
				_, _ = fmt.Fprintf(w, `<item><guid isPermaLink="false">urn:%s:%d</guid><title>T%d</title><pubDate>Mon, %02d Mar 2021 08:00:00 GMT</pubDate></item>`, r.URL.Path, n, n, 1+n)
			}
		}
		_, _ = io.WriteString(w, `</channel></rss>`)
	}))
	w := &killWorld{site.URL, t.TempDir()}
	db := filepath.Join(w.template, "feeds.db")
	lines := func(name string, args ...string) {
		require.NoError(t, os.WriteFile(filepath.Join(w.template, name), []byte(done(t, "", args...)), 0o600))
	}
	done(t, "", "sync", "--allow-private", "--db", db, site.URL+"/feed.rss")
	done(t, "", "sync", "--allow-private", "--db", db, "--header", "X-Key:k3y", site.URL+"/secret/feed.rss")
	lines("lines.jsonl", "export", "--db", db, "--raw")
	lines("few.jsonl", "fetch", "--allow-private", site.URL+"/feed.rss")
	done(t, "", "publish", "--from", filepath.Join(w.template, "few.jsonl"), "--out", filepath.Join(w.template, "pub"), "--base", "https://example.org/", "--size", "2")
	done(t, "", "db", "backup", "--db", db, filepath.Join(w.template, "damaged.db"))
	damaged, err := sql.Open("sqlite", "file:"+filepath.Join(w.template, "damaged.db"))
	require.NoError(t, err)
	_, err = damaged.Exec("UPDATE feedhistory_entries SET data = replace(data, 'T1', 'T9') WHERE instr(data, 'urn:/feed.rss:1')")
	require.NoError(t, errors.Join(err, damaged.Close()))
	isNew.Store(true)
	lines("more.jsonl", "fetch", "--allow-private", site.URL+"/feed.rss")
	require.NoError(t, os.WriteFile(filepath.Join(w.template, "feeds.opml"), []byte(`<opml version="2.0"><body><outline text="A" xmlUrl="`+site.URL+`/other.rss"/></body></opml>`), 0o600))
	later := filepath.Join(t.TempDir(), "later.db")
	done(t, "", "sync", "--allow-private", "--db", later, site.URL+"/feed.rss")
	lines("more-lines.jsonl", "export", "--db", later, "--raw")
	require.NoError(t, os.Mkdir(filepath.Join(w.template, "saved"), 0o700))
	lines("saved/1.xml", "fetch", "--allow-private", "--format", "rss", site.URL+"/feed.rss")
	return w
}

// args returns the arguments of a verb in a directory.
func (w *killWorld) args(verb, dir string) []string {
	return strings.Fields(strings.NewReplacer("DIR", dir, "URL", w.url).Replace(writingVerbs[verb]))
}

// copied returns a copy of the template.
func (w *killWorld) copied(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(w.template)))
	return dir
}

var digestInName = regexp.MustCompile(`-[0-9a-f]{16}\.|[0-9a-f.]{20,}`)

// state describes a directory: the names of its files, the feeds and entries in its databases, the
// feeds with logins, and the entries in its documents.
func (w *killWorld) state(t *testing.T, dir string) string {
	var all []string
	require.NoError(t, filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		require.NoError(t, err)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		what := digestInName.ReplaceAllString(name, "-N.")
		switch ext := filepath.Ext(name); {
		case strings.HasSuffix(name, ".db"):
			what += " " + databaseState(t, file)
		case ext == ".credentials":
			var logins map[string]http.Header
			require.NoError(t, json.Unmarshal(text, &logins), "%s", text)
			for _, url := range slices.Sorted(maps.Keys(logins)) {
				what += fmt.Sprint(" ", url, len(logins[url]))
			}
		case ext == ".atom" || ext == ".rss":
			doc, err := feedhistory.Parse(strings.NewReader(string(text)), "")
			require.NoError(t, err, name)
			for _, e := range doc.Entries {
				what += " " + e.ID
			}
		case strings.HasPrefix(name, "out."):
			what += fmt.Sprint(" ", strings.Count(string(text), "\n"), " lines")
		}
		all = append(all, what)
		return nil
	}))
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// databaseState returns the feeds and entries of a database, and whether it is damaged.
func databaseState(t *testing.T, db string) string {
	all := []string{fmt.Sprint("sound: ", strings.Contains(all0(call(t.Context(), "", "db", "check", "--db", db)), "nothing is damaged"))}
	for _, args := range [][]string{{"list", "--json"}, {"entries", "--json"}} {
		for line := range strings.Lines(all0(call(t.Context(), "", append(args, "--db", db)...))) {
			var fields map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &fields), line)
			all = append(all, fmt.Sprint(fields["url"], fields["verdict"], fields["entries"], fields["feed"], fields["id"], fields["title"]))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// all0 returns the output of a call, however it ended.
func all0(_ int, stdout, _ string) string { return stdout }

// A verb that is killed at any system call by which it writes, and then run again, leaves the same as
// one that was not: nothing is lost, nothing is there twice, nothing lies about.
func TestKilledAtCalls(t *testing.T) {
	t.Parallel()
	strace := straceOf(t)
	w := newKillWorld(t)
	before := w.state(t, w.template)
	for _, verb := range slices.Sorted(maps.Keys(writingVerbs)) {
		t.Run(strings.ReplaceAll(verb, ",", ""), func(t *testing.T) {
			t.Parallel()
			whole := w.copied(t)
			_, _, said := call(t.Context(), "", w.args(verb, whole)...)
			want := w.state(t, whole)
			if verb != "db vacuum" { // which changes only the size
				require.NotEqual(t, before, want, "it writes nothing: %s", said)
			}
			random, kills := rand.New(rand.NewPCG(5005, uint64(len(verb)))), 0
			for n, most := 0, 60; n < *callKills; n++ {
				dir, at := w.copied(t), 1+random.IntN(most)
				status, said := strace(t, []string{"-e", "trace=" + writingCalls, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", writingCalls, at)}, w.args(verb, dir)...)
				if status == -1 {
					kills++
				} else if at < most && kills == 0 {
					most = max(2, at) // no thread makes so many
				}
				_, _, again := call(t.Context(), "", w.args(verb, dir)...)
				require.Equal(t, strings.ReplaceAll(want, whole, dir), w.state(t, dir), "killed at call %d: %s; then: %s", at, said, again)
			}
			require.Positive(t, kills, "it was never killed")
		})
	}
}
