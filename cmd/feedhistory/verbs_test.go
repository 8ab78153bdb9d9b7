//go:build unix

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/collection"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/readertest"
	"github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// These tests try on every verb, with real data, what all verbs must do alike.

// A verbRun is a run of a verb.
type verbRun struct {
	verb   string // with its part
	args   []string
	stdin  string
	status int
	lasts  bool // it goes on until it is interrupted
	silent bool // it has no information for people on standard error
}

// A verbWorld has what verbs are tried on.
type verbWorld struct {
	t         *testing.T
	dir, db   string
	publisher string // the address of the example feeds
	reader    *readertest.Miniflux
	harvests  map[string]string // the addresses of what is produced, by protocol
	listen    string            // an address that nobody listens on
}

func newVerbWorld(t *testing.T) *verbWorld {
	dir := t.TempDir()
	for name, value := range map[string]string{
		"FEEDHISTORY_CONFIG": "", "FEEDHISTORY_ALLOW_PRIVATE": "true", "FEEDHISTORY_DB": "", "XDG_DATA_HOME": dir,
		"MINIFLUX_TOKEN": "secret", "GORACE": "atexit_sleep_ms=10",
	} {
		t.Setenv(name, value)
	}
	_, publisher, stop := site.Start()
	t.Cleanup(stop)
	w := &verbWorld{
		t: t, dir: dir, db: filepath.Join(dir, "feeds.db"), publisher: publisher, listen: freeAddress(),
		reader: new(readertest.Miniflux).Serve(t), harvests: map[string]string{},
	}
	w.reader.Subscribe(publisher + site.Archived)
	for protocol, lines := range produced {
		at := freeAddress()
		end := w.start(verbRun{verb: "produce", stdin: lines, lasts: true, args: []string{"--protocol", protocol, "--listen", at}}, at)
		t.Cleanup(func() { end() })
		w.harvests[protocol] = "http://" + at + "/"
	}
	w.harvests[collection.AtomPMH] += "feed.atom"
	return w
}

// produced has the data to harvest.
var produced = map[string]string{
	collection.AtomPMH:         `{"id": "urn:1", "time": "2026-03-01T12:00:00Z", "title": "One", "representations": [{"url": "https://example.org/1", "type": "text/html"}]}`,
	collection.DataReplication: `{"id": "1", "operation": "PUT", "type": "text/plain", "body": "one"}`,
	collection.ModifiedRange:   `{"id": "urn:1", "title": "One", "updated": "2026-03-01T12:00:00Z"}`,
}

// runs are runs of all verbs, each of which finds what those before it have left.
func (w *verbWorld) runs() []verbRun {
	feed, db, out := w.publisher+site.Archived, "--db="+w.db, filepath.Join(w.dir, "public")
	const entry = `{"id":"urn:1","title":"One","updated":"2003-12-13T18:30:02Z"}`
	first := firstID(w.t, feed)
	runs := []verbRun{
		{verb: "inspect", args: []string{feed}, silent: true},
		{verb: "fetch", args: []string{feed}},
		{verb: "check", args: []string{w.publisher + site.Plain}, status: exit.Failed, silent: true},
		{verb: "publish", args: []string{"--out", out, "--base", "http://" + w.listen + "/"}, stdin: entry},
		{verb: "publish", args: []string{"--out", out, "--base", "http://" + w.listen + "/", "--from", feed, "--dry-run"}},
		{verb: "serve", args: []string{"--listen", w.listen, out}, lasts: true},
		{verb: "serve", args: []string{"--listen", w.listen, db}, lasts: true},
		{verb: "demo", args: []string{"--listen", w.listen}, lasts: true},
		{verb: "produce", args: []string{"--protocol", collection.ModifiedRange, "--listen", w.listen}, stdin: produced[collection.ModifiedRange], lasts: true},
		{verb: "produce", args: []string{"--protocol", collection.AtomPMH, "--base", "https://example.org/", "--out", filepath.Join(w.dir, "pmh")}, stdin: produced[collection.AtomPMH]},
		{verb: "produce", args: []string{"--protocol", collection.DataReplication, "--base", "https://example.org/", "--out", filepath.Join(w.dir, "log")}, stdin: produced[collection.DataReplication]},
		{verb: "sync", args: []string{db, feed, w.publisher + site.Complete}},
		{verb: "sync", args: []string{db}},
		{verb: "list", args: []string{db}, silent: true},
		{verb: "list", args: []string{db, feed}, silent: true},
		{verb: "entries", args: []string{db}, silent: true},
		{verb: "entry", args: []string{db, first}, silent: true},
		{verb: "export", args: []string{db, "--raw"}, silent: true},
		{verb: "handover", args: []string{db, "--to", w.reader.URL}},
		{verb: "move", args: []string{db, w.publisher + site.Complete, w.publisher + "/moved.atom"}},
		{verb: "download", args: []string{db, "--out=" + filepath.Join(w.dir, "enclosures"), "--allow-private"}},
		{verb: "db check", args: []string{db}, silent: true},
		{verb: "db info", args: []string{db}, silent: true},
		{verb: "db backup", args: []string{db, filepath.Join(w.dir, "backup.db")}},
		{verb: "db vacuum", args: []string{db}},
		{verb: "rm", args: []string{db, w.publisher + "/moved.atom"}},
		{verb: "erase", args: []string{db, first}},
		{verb: "import", args: []string{db}, stdin: `{"type":"feed","feed":"https://example.org/f","state":{"URL":"https://example.org/f"}}` + "\n" + `{"type":"end"}`},
		{verb: "completion", args: []string{"bash"}, silent: true},
		{verb: "man", silent: true},
		{verb: "help", silent: true},
		{verb: "version", silent: true},
		{verb: "conformance serve", args: []string{"--listen", w.listen, "--case", "walk/archived"}, lasts: true},
		{verb: "conformance run", args: []string{"--case", "walk/archived", "--", "false"}, status: exit.Failed, silent: true},
		{verb: "conformance page", args: []string{filepath.Join(w.dir, "report")}, silent: true},
		{verb: "conformance publisher", args: []string{feed, "--add", "true", "--adds=1", "--settle=1ms"}, status: exit.Failed, silent: true},
	}
	for protocol, url := range w.harvests {
		runs = append(runs, verbRun{verb: "harvest", args: []string{"--protocol", protocol, url}},
			verbRun{verb: "harvest", args: []string{"--protocol", protocol, "--db=" + w.db + "." + protocol, url}})
	}
	return runs
}

func firstID(t *testing.T, feed string) string {
	_, stdout, _ := call(t.Context(), "", "fetch", feed)
	var first struct{ ID string }
	require.NoError(t, json.NewDecoder(strings.NewReader(stdout)).Decode(&first))
	return first.ID
}

// start starts a verb that lasts, waits until it answers, and returns a function that ends
// it.
func (w *verbWorld) start(r verbRun, listens string) (end func() (status int, stdout, stderr string)) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan func() (int, string, string), 1)
	go func() {
		status, stdout, stderr := call(ctx, r.stdin, r.words()...)
		done <- func() (int, string, string) { return status, stdout, stderr }
	}()
	require.Eventually(w.t, func() bool { return len(done) > 0 || answers(listens) }, patience, 10*time.Millisecond)
	return func() (int, string, string) {
		cancel()
		return (<-done)()
	}
}

func (r verbRun) words(more ...string) []string {
	return append(append(strings.Fields(r.verb), more...), r.args...)
}

// run runs a verb with further flags.
func (w *verbWorld) run(r verbRun, flags ...string) (stdout, stderr string) {
	var status int
	r.args = append(flags, r.args...)
	if r.lasts {
		status, stdout, stderr = w.start(r, w.listen)()
	} else {
		status, stdout, stderr = call(w.t.Context(), r.stdin, r.words()...)
	}
	require.Equal(w.t, r.status, status, "%q\n%s%s", r.words(), stdout, stderr)
	return stdout, stderr
}

// leaves returns all verbs, with their parts.
func leaves(t *testing.T) map[string]*kong.Node {
	parser, err := kong.New(&commandLine{}, kong.Vars{"version": "", "agent": "", "db": ""})
	require.NoError(t, err)
	found := map[string]*kong.Node{}
	for _, node := range parser.Model.Leaves(false) {
		_, name, _ := strings.Cut(node.FullPath(), " ")
		found[name] = node
	}
	return found
}

func hasFlag(node *kong.Node, name string) *kong.Flag {
	for _, f := range node.Flags {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// --json is JSON Lines on every verb that has it: each line of standard output is
// an object.
func TestJSONLines(t *testing.T) {
	w := newVerbWorld(t)
	verbs, tried := leaves(t), map[string]int{}
	for _, r := range w.runs() {
		node := verbs[r.verb]
		require.NotNil(t, node, r.verb)
		var flags []string
		if flag := hasFlag(node, "json"); flag != nil && r.verb != "import" { // importfrom.txtar tries it with --from
			require.True(t, strings.HasPrefix(flag.Help, "Print JSON Lines (one object a line): "), "%s: %s", r.verb, flag.Help)
			flags = []string{"--json"}
		}
		if r.verb == "conformance page" {
			report, _ := w.run(verbRun{verb: "conformance run", args: []string{"--json", "--case=walk/archived", "--", "false"}, status: exit.Failed})
			require.NoError(t, os.WriteFile(r.args[0], []byte(report), 0o600))
		}
		stdout, stderr := w.run(r, flags...)
		if flags == nil {
			continue
		}
		for line := range strings.Lines(stdout) {
			tried[r.verb]++
			var object map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &object), "%q prints %s", r.words(), line)
			require.True(t, strings.HasSuffix(line, "}\n"), line)
		}
		for line := range strings.Lines(stderr) {
			require.False(t, json.Valid([]byte(line)), line)
		}
	}
	for name, node := range verbs {
		if hasFlag(node, "json") != nil && name != "import" && name != "db check" { // it prints damage, of which there is none
			require.NotZero(t, tried[name], "%s --json printed nothing", name)
		}
	}
}

// With --quiet, every verb leaves out messages that are not errors.
func TestQuiet(t *testing.T) {
	feedtest.Long(t)
	tried := map[string]bool{}
	report := func(w *verbWorld, r verbRun) {
		if r.verb == "conformance page" {
			require.NoError(t, os.WriteFile(r.args[0], []byte("{}"), 0o600))
		}
		tried[r.verb] = true
	}
	loud := newVerbWorld(t)
	for _, r := range loud.runs() {
		report(loud, r)
		_, stderr := loud.run(r)
		require.Equal(t, r.silent, stderr == "", "%q says %s", r.words(), stderr)
	}
	quiet := newVerbWorld(t)
	for _, r := range quiet.runs() {
		report(quiet, r)
		_, stderr := quiet.run(r, "--quiet")
		require.Empty(t, stderr, "%q", r.words())
	}
	for name := range leaves(t) {
		require.True(t, tried[name], "%s is not tried", name)
	}
}

// With --quiet, verbs still report errors and gaps.
func TestQuietGaps(t *testing.T) {
	w := newVerbWorld(t)
	broken, db := w.publisher+site.Broken, "--db="+w.db
	out := []string{"--base", "https://example.org/", "--size=1", "--out", filepath.Join(w.dir, "public")}
	two := `{"id":"urn:1","updated":"2003-12-13T18:30:02Z"}` + "\n" + `{"id":"urn:2","updated":"2003-12-14T18:30:02Z"}` + "\n"
	w.run(verbRun{verb: "publish", args: out, stdin: two + `{"id":"urn:3","updated":"2003-12-15T18:30:02Z"}`})
	archives := feedtest.Glob(t, filepath.Join(w.dir, "public", "feed", "*"))
	require.NoError(t, os.Remove(archives[0]))
	w.run(verbRun{verb: "sync", args: []string{db, w.publisher + site.Archived}})
	imports := 0
	w.reader.Break(func(_ int, r *http.Request) *readertest.Fault {
		if r.Method == http.MethodPost {
			imports++
		}
		if imports != 1 {
			return nil
		}
		return &readertest.Fault{Status: http.StatusBadRequest, Message: "no"}
	})
	for _, test := range []struct {
		run  verbRun
		says string
	}{
		{verbRun{verb: "fetch", args: []string{broken}, status: exit.Partial}, "what to do: "},
		{verbRun{verb: "publish", args: []string{"--from", broken, "--out", filepath.Join(w.dir, "p2"), "--base", "https://example.org/"}, status: exit.Partial}, "what to do: "},
		{verbRun{verb: "publish", args: out, status: exit.Partial}, "is missing, and the source"},
		{verbRun{verb: "produce", status: exit.Partial, stdin: strings.ReplaceAll(produced[collection.AtomPMH], "2026", "9000"), args: []string{"--protocol", collection.AtomPMH, "--base", "https://example.org/", "--out", w.dir}}, "not published yet"},
		{verbRun{verb: "harvest", args: []string{"--protocol", collection.ModifiedRange, w.publisher + site.Plain}, status: exit.Partial}, "what to do: "},
		{verbRun{verb: "harvest", args: []string{"--protocol", collection.ModifiedRange, "--db=" + w.db + ".range", w.publisher + site.Plain}, status: exit.Partial}, "what to do: "},
		{verbRun{verb: "handover", args: []string{db, "--to", w.reader.URL}, status: exit.Partial}, "1 refused"},
		{verbRun{verb: "sync", args: []string{"--json", db, w.publisher + "/nowhere"}, status: exit.Failed}, "404 Not Found"},
		{verbRun{verb: "rm", args: []string{db, "https://example.org/"}, status: exit.Failed}, "is not in "},
		{verbRun{verb: "inspect", args: []string{w.publisher + "/nowhere"}, status: exit.Failed}, "404 Not Found"},
	} {
		_, stderr := w.run(test.run, "--quiet")
		require.Contains(t, strings.Join(strings.Fields(stderr), " "), test.says, "%q", test.run.words())
		require.NotContains(t, stderr, "verdict: ")
	}
}

// Flags that exclude each other are flags of their verbs.
func TestExclusive(t *testing.T) {
	verbs := leaves(t)
	for verb, groups := range exclusive {
		require.NotNil(t, verbs[verb], verb)
		for _, name := range slices.Concat(groups...) {
			isArgument := slices.ContainsFunc(verbs[verb].Positional, func(p *kong.Positional) bool { return name == "<"+p.Name+">" })
			require.True(t, isArgument || hasFlag(verbs[verb], name) != nil, "%s %s", verb, name)
		}
	}
	for verb, flags := range formats {
		for name, of := range flags {
			require.NotNil(t, hasFlag(verbs[verb], name), "%s --%s", verb, name)
			for _, format := range of {
				require.Contains(t, hasFlag(verbs[verb], "format").Enum, format)
			}
		}
	}
}
