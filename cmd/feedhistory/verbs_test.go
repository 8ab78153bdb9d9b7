//go:build unix

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/protocols"
	"github.com/feedhistory/feedhistory/cmd/internal/readers/readertest"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal/terminaltest"
	"github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/stretchr/testify/require"
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
	w.harvests[protocols.AtomPMH] += "feed.atom"
	return w
}

// produced has the data to harvest.
var produced = map[string]string{
	protocols.AtomPMH:         `{"id": "urn:1", "time": "2026-03-01T12:00:00Z", "title": "One", "representations": [{"url": "https://example.org/1", "type": "text/html"}]}`,
	protocols.DataReplication: `{"id": "1", "operation": "PUT", "type": "text/plain", "body": "one"}`,
	protocols.ModifiedRange:   `{"id": "urn:1", "title": "One", "updated": "2026-03-01T12:00:00Z"}`,
}

// runs are runs of all verbs, each of which finds what those before it have left.
func (w *verbWorld) runs() []verbRun {
	feed, db, out := w.publisher+site.Archived, "--db="+w.db, filepath.Join(w.dir, "public")
	const entry = `{"id":"urn:1","title":"One","updated":"2003-12-13T18:30:02Z"}`
	first := firstID(w.t, feed)
	runs := []verbRun{
		{verb: "inspect", args: []string{feed}, silent: true},
		{verb: "fetch", args: []string{feed}},
		{verb: "check", args: []string{w.publisher + site.Plain}, status: terminal.ExitFailed, silent: true},
		{verb: "publish", args: []string{"--out", out, "--base", "http://" + w.listen + "/"}, stdin: entry},
		{verb: "publish", args: []string{"--out", out, "--base", "http://" + w.listen + "/", "--from", feed, "--dry-run"}},
		{verb: "serve", args: []string{"--listen", w.listen, out}, lasts: true},
		{verb: "serve", args: []string{"--listen", w.listen, db}, lasts: true},
		{verb: "demo", args: []string{"--listen", w.listen}, lasts: true},
		{verb: "produce", args: []string{"--protocol", protocols.ModifiedRange, "--listen", w.listen}, stdin: produced[protocols.ModifiedRange], lasts: true},
		{verb: "produce", args: []string{"--protocol", protocols.AtomPMH, "--base", "https://example.org/", "--out", filepath.Join(w.dir, "pmh")}, stdin: produced[protocols.AtomPMH]},
		{verb: "produce", args: []string{"--protocol", protocols.DataReplication, "--base", "https://example.org/", "--out", filepath.Join(w.dir, "log")}, stdin: produced[protocols.DataReplication]},
		{verb: "sync", args: []string{db, feed, w.publisher + site.Complete}},
		{verb: "sync", args: []string{db}},
		{verb: "list", args: []string{db}, silent: true},
		{verb: "list", args: []string{db, feed}, silent: true},
		{verb: "entries", args: []string{db}, silent: true},
		{verb: "entry", args: []string{db, first}, silent: true},
		{verb: "new", args: []string{db}, silent: true},
		{verb: "export", args: []string{db, "--raw"}, silent: true},
		{verb: "handover", args: []string{db, "--to", w.reader.URL}},
		{verb: "move", args: []string{db, w.publisher + site.Complete, w.publisher + "/moved.atom"}},
		{verb: "db check", args: []string{db}, silent: true},
		{verb: "db info", args: []string{db}, silent: true},
		{verb: "db backup", args: []string{db, filepath.Join(w.dir, "backup.db")}},
		{verb: "db vacuum", args: []string{db}},
		{verb: "rm", args: []string{db, w.publisher + "/moved.atom"}},
		{verb: "erase", args: []string{db, first}},
		{verb: "import", args: []string{db}, stdin: `{"type":"feed","feed":"https://example.org/f","state":{"URL":"https://example.org/f"}}` + "\n" + `{"type":"end"}`},
		{verb: "completion", args: []string{"bash"}, silent: true},
		{verb: "man", silent: true},
		{verb: "names", args: []string{db}, silent: true},
		{verb: "help", silent: true},
		{verb: "version", silent: true},
		{verb: "conformance serve", args: []string{"--listen", w.listen, "--case", "walk/archived"}, lasts: true},
		{verb: "conformance run", args: []string{"--case", "walk/archived", "--", "false"}, status: terminal.ExitFailed, silent: true},
		{verb: "conformance page", args: []string{filepath.Join(w.dir, "report")}, silent: true},
		{verb: "conformance publisher", args: []string{feed, "--add", "true", "--adds=1", "--settle=1ms"}, status: terminal.ExitFailed, silent: true},
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
	parser, err := kong.New(&commandLine{}, kong.Vars{"version": "", "agent": "", "db": "", "kinds": ""})
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
			report, _ := w.run(verbRun{verb: "conformance run", args: []string{"--json", "--case=walk/archived", "--", "false"}, status: terminal.ExitFailed})
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
		if hasFlag(node, "json") != nil && !slices.Contains([]string{"import", "db check"}, name) { // there is no damage
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
		{verbRun{verb: "fetch", args: []string{broken}, status: terminal.ExitPartial}, "what to do: "},
		{verbRun{verb: "publish", args: []string{"--from", broken, "--out", filepath.Join(w.dir, "p2"), "--base", "https://example.org/"}, status: terminal.ExitPartial}, "what to do: "},
		{verbRun{verb: "publish", args: append(out, "--allow-empty"), status: terminal.ExitPartial}, "is missing, and the source"},
		{verbRun{verb: "produce", status: terminal.ExitPartial, stdin: strings.ReplaceAll(produced[protocols.AtomPMH], "2026", "9000"), args: []string{"--protocol", protocols.AtomPMH, "--base", "https://example.org/", "--out", w.dir}}, "not published yet"},
		{verbRun{verb: "harvest", args: []string{"--protocol", protocols.ModifiedRange, w.publisher + site.Plain}, status: terminal.ExitPartial}, "what to do: "},
		{verbRun{verb: "harvest", args: []string{"--protocol", protocols.ModifiedRange, "--db=" + w.db + ".range", w.publisher + site.Plain}, status: terminal.ExitPartial}, "what to do: "},
		{verbRun{verb: "handover", args: []string{db, "--to", w.reader.URL}, status: terminal.ExitPartial}, "1 refused"},
		{verbRun{verb: "sync", args: []string{"--json", db, w.publisher + "/nowhere"}, status: terminal.ExitFailed}, "404 Not Found"},
		{verbRun{verb: "rm", args: []string{db, "https://example.org/"}, status: terminal.ExitFailed}, "is not in "},
		{verbRun{verb: "inspect", args: []string{w.publisher + "/nowhere"}, status: terminal.ExitFailed}, "404 Not Found"},
	} {
		_, stderr := w.run(test.run, "--quiet")
		require.Contains(t, strings.Join(strings.Fields(stderr), " "), test.says, "%q", test.run.words())
		require.NotContains(t, stderr, "verdict: ")
	}
}

// Flags that exclude each other are flags of their verbs.
func TestExclusive(t *testing.T) {
	verbs := leaves(t)
	for verb, all := range exclusive {
		require.NotNil(t, verbs[verb], verb)
		for _, e := range all {
			for _, name := range slices.Concat(e.these, e.others) {
				isArgument := slices.ContainsFunc(verbs[verb].Positional, func(p *kong.Positional) bool { return name == "<"+p.Name+">" })
				require.True(t, isArgument || hasFlag(verbs[verb], name) != nil, "%s %s", verb, name)
			}
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

// The recipes of publish/README.md are followed as they are written, with the
// generators themselves, on sites with awkward names, dates and addresses.

var (
	fenced   = regexp.MustCompile("(?s)```([a-z-]+)\n(.*?)```")
	fileName = regexp.MustCompile(`^(?:# |\{\{- /\* )(\S+)`)
)

// recipe returns the blocks under a heading: files by name, and the commands.
func recipe(t *testing.T, heading string) (files map[string]string, commands string) {
	text := feedtest.ReadFile(t, "../../publish/README.md")
	_, text2, ok := strings.Cut(string(text), "\n#### "+heading+"\n")
	require.True(t, ok, "there is no such recipe: %s", heading)
	text2, _, _ = strings.Cut(text2, "\n##")
	files = map[string]string{}
	for _, block := range fenced.FindAllStringSubmatch(text2, -1) {
		if block[1] == "sh" {
			commands += block[2]
			continue
		}
		name := fileName.FindStringSubmatch(block[2])
		require.NotNil(t, name, block[2])
		files[name[1]] = block[2]
	}
	require.NotEmpty(t, commands)
	return files, commands
}

// A generatedSite is a site whose recipes are tried.
type generatedSite struct {
	program string
	files   map[string]string
	config  string // to which recipes add
	built   string // the directory
	feed    string // the subscription document
	pages   []string
}

func hugoSite() generatedSite {
	article := func(matter, text string) string { return "---\n" + matter + "\n---\n" + text + "\n" }
	return generatedSite{
		program: "hugo", config: "hugo.toml", built: "public", feed: "static/feeds/feed.atom",
		files: map[string]string{
			"hugo.toml":                              "baseURL = \"https://example.org/\"\ntitle = \"Ann writes\"\ntimeZone = \"Pacific/Auckland\"\n",
			"layouts/_default/single.html":           "<html><body>{{ .Content }}</body></html>",
			"layouts/_default/list.html":             "<html><body>{{ .Title }}</body></html>",
			"content/about.md":                       article("title: About", "No article"),
			"content/posts/first.md":                 article("title: First\ndate: 2003-10-13T18:30:02Z\ntags: [a, b]\ncategories: [b]", "Some *text*."),
			"content/posts/With Case and  Spaces.md": article("title: Spaces\ndate: 2003-10-14", "X"),
			"content/posts/slugged.md":               article("title: Slugged\nslug: \"Another Name\"\ndate: 2003-10-15T00:30:00+02:00", "{{< highlight go >}}x{{< /highlight >}} <img src=\"a.png\">"),
			"content/posts/deep/er/CamelCase.md":     article("title: Deep\ndate: 2003-10-15 23:30:00", "`{{</* code */>}}` is no short code"),
			"content/posts/expired.md":               article("title: Expired\ndate: 2003-10-16\nexpiryDate: 2004-01-01", "X"),
			"content/posts/draft.md":                 article("title: Draft\ndate: 2003-10-17\ndraft: true", "X"),
			"content/posts/future.md":                article("title: Future\ndate: 2999-10-17", "X"),
			"content/posts/Ünïcode & more!.md":       article("title: Ünïcode & more\ndate: 2003-10-18", "X"),
			"content/posts/own.md":                   article("title: Own address\nurl: /elsewhere/Own.html\ndate: 2003-10-19", "X"),
			"content/posts/bundle/index.md":          "+++\ntitle = \"Bundle\"\ndate = 2003-10-20\n+++\nX\n",
		},
		pages: []string{
			"posts/first/index.html", "posts/with-case-and-spaces/index.html", "posts/another-name/index.html",
			"posts/deep/er/camelcase/index.html", "posts/ünïcode-more/index.html", "elsewhere/Own.html", "posts/bundle/index.html",
		},
	}
}

func jekyllSite() generatedSite {
	article := func(matter, text string) string { return "---\nlayout: default\n" + matter + "\n---\n" + text + "\n" }
	return generatedSite{
		program: "jekyll", config: "_config.yml", built: "_site", feed: "feeds/feed.atom",
		files: map[string]string{
			"_config.yml":                           "title: Ann writes\nurl: https://example.org\ntimezone: America/New_York\n",
			"_layouts/default.html":                 "<html><body>{{ content }}</body></html>",
			"_posts/2003-12-13-welcome.md":          article("title: Welcome", "Some *text*."),
			"_posts/2003-12-14-With Case and it.md": article("title: Spaces\ncategories: [News, Big Stories]", "X {{ page.title }}"),
			"_posts/2003-12-15-late.md":             article("title: Late\ndate: 2003-12-15 03:30:00 +0000", "X"),
			"_posts/2003-12-16-slugged.md":          article("title: Slug\nslug: other-Name", "X"),
			"_posts/2003-12-17-own.md":              article("title: Own\npermalink: /own/address.html", "X"),
			"_posts/2003-12-18-Ünï & more.md":       article("title: Ünï & more", "X"),
			"_posts/2003-12-18-unpublished.md":      article("title: Unpublished\npublished: false", "X"),
			"_posts/2999-12-18-future.md":           article("title: Future", "X"),
		},
		pages: []string{
			"2003/12/13/welcome.html", "news/big stories/2003/12/14/With-Case-and-it.html", "2003/12/14/late.html",
			"2003/12/16/other-Name.html", "own/address.html", "2003/12/18/Ünï-&-more.html",
		},
	}
}

func TestSiteGenerators(t *testing.T) {
	feedtest.Long(t)
	for heading, site := range map[string]generatedSite{
		"From Hugo's output": hugoSite(), "From Jekyll's output": jekyllSite(),
	} {
		t.Run(heading, func(t *testing.T) {
			feedtest.Program(t, "FEEDHISTORY_GENERATORS", site.program)
			files, commands := recipe(t, heading)
			dir := t.TempDir()
			for name, text := range site.files {
				siteFile(t, filepath.Join(dir, name), text)
			}
			for name, text := range files {
				if name == site.config {
					text = site.files[name] + text
				}
				siteFile(t, filepath.Join(dir, name), text)
			}
			said := follow(t, dir, commands)
			require.NotContains(t, said, "unexpanded tags of the site generator")
			site.check(t, dir)
			require.Contains(t, follow(t, dir, commands), "0 new · 0 changed · ", "another build changes nothing")
			site.misses(t, dir, commands)
		})
	}
}

func siteFile(t *testing.T, name, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// follow runs a recipe's commands.
func follow(t *testing.T, dir, commands string) string {
	said, err := try(dir, commands)
	require.NoError(t, err, said)
	return strings.Join(strings.Fields(said), " ")
}

func try(dir, commands string) (string, error) {
	shell := exec.Command("sh", "-ec", commands)
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	return string(out), err
}

// check requires that each page has its entry, and each entry its page, by the
// rules of a plain web server.
func (s *generatedSite) check(t *testing.T, dir string) {
	feed, err := os.Open(filepath.Join(dir, s.feed))
	require.NoError(t, err)
	defer feed.Close()
	doc, err := feedhistory.Parse(feed, "")
	require.NoError(t, err)
	home, _ := doc.Links.Rel("alternate")
	require.Equal(t, "https://example.org/", home.Href)
	var pages []string
	for _, e := range doc.Entries {
		link, _ := e.Links.Rel("alternate")
		name, ok := strings.CutPrefix(link.Href, "https://example.org/")
		require.True(t, ok, link.Href)
		name, err := url.PathUnescape(name)
		require.NoError(t, err)
		if strings.HasSuffix(name, "/") {
			name = path.Join(name, "index.html")
		}
		require.FileExists(t, filepath.Join(dir, s.built, name))
		pages = append(pages, name)
	}
	require.ElementsMatch(t, s.pages, pages)
	require.FileExists(t, filepath.Join(dir, s.built, "feeds/feed.atom"), "the feed is part of the site")
	_, err = os.Stat(filepath.Join(dir, s.built, "feeds/.lock"))
	require.True(t, errors.Is(err, fs.ErrNotExist))
}

// misses requires that publish notices a missing page.
func (s *generatedSite) misses(t *testing.T, dir, commands string) {
	lines := strings.SplitAfter(commands, "\n")
	publish := strings.Join(lines[1:len(lines)-2], "") // not the builds
	page := filepath.Join(dir, s.built, s.pages[1])
	require.NoError(t, os.Remove(page))
	before := feedtest.ReadFile(t, filepath.Join(dir, s.feed))
	said, err := try(dir, publish)
	require.Error(t, err)
	require.Contains(t, said, "missing pages; nothing is published")
	require.Contains(t, said, "\n  https://example.org/")
	after := feedtest.ReadFile(t, filepath.Join(dir, s.feed))
	require.Equal(t, before, after)
}

// wrongTexts has a wrong value for each flag of text and each verb's flag that differs;
// "" where every value, or the value of another program, may be right.
var wrongTexts = map[string]string{
	"serve --trusted-proxy": "proxy.example",
	"accept":                "", "add": "", "against": "/no/such/file", "as": "", "author": "", "backfill-archive": "x y", "badge": "/no/such/file", "base": "x y", "by": "week", "ca-file": "/no/such/file",
	"case": "x y", "cookies": "/no/such/file", "db": "http://example.org/", "delete": "", "deletions": "x y", "dialect": "x y", "digests": "/no/such/file",
	"edit": "", "erase --name": "", "feed": "", "flag": "x y", "format": "x y", "from": "x y", "header": "x y", "html": "/no/such/file", "id": "",
	"key": "", "name": "", "opml": "", "out": "", "profile": "x y", "protocol": "x y", "proxy": "x y", "publish --from": "",
	"publish --name": "../feed.atom", "published": "", "s3-endpoint": "x y", "save": "/no/such/file", "search": "", "site": "x y", "site-dir": "", "snapshot": "x y",
	"state": "", "status": "x y", "through": "x y", "title": "", "to": "x y", "token": "", "token-env": "x y",
	"token-file": "/no/such/file", "type": "", "user": "a:b", "user-agent": "",
	"maildir": "", "output": "/no/such/file",
}

// wrong returns wrong values of a flag.
func wrong(verb string, f *kong.Flag) (values []string, known bool) {
	if values := terminaltest.WrongValues(f); values != nil {
		return values, true
	}
	value, known := wrongTexts[verb+" --"+f.Name]
	if !known {
		value, known = wrongTexts[f.Name]
	}
	if value == "" {
		return nil, known
	}
	return []string{value}, known
}

// A wrong value of a flag is refused, in one line that names the flag, before anything is
// requested or written. Of a flag that several verbs share, one verb refuses every wrong value, and
// the others the first; in a long run, all refuse all.
func TestWrongValues(t *testing.T) {
	dir := t.TempDir()
	for name, value := range map[string]string{
		"FEEDHISTORY_CONFIG": "", "FEEDHISTORY_DB": "", "XDG_DATA_HOME": dir, "MINIFLUX_TOKEN": "secret", "FEEDHISTORY_ALLOW_PRIVATE": "true",
	} {
		t.Setenv(name, value)
	}
	server := feedtest.Server(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("requested: %s", r.URL) }))
	url, file := server.URL+"/feed", func(name string) string { return filepath.Join(dir, name) }
	arguments := map[string][]string{
		"inspect": {url}, "fetch": {url}, "check": {"--chain", url}, "publish": {"--out=" + file("out"), "--base=https://example.org/"},
		"harvest": {"--protocol=modified-range", url}, "produce": {"--protocol=atom-pmh", "--base=https://example.org/", "--out=" + file("out")},
		"sync": {url}, "entry": {"urn:1"}, "move": {url, url + "2"}, "rm": {url}, "erase": {"urn:1"},
		"db backup": {file("b.db")}, "handover": {"--to=" + server.URL, url}, "completion": {"bash"},
		"conformance run": {"--", "true"}, "conformance page": {file("report")}, "conformance publisher": {"--add=true", url},
		"import": {"--from=miniflux", server.URL},
	}
	seen := map[string]bool{}
	verbs := leaves(t)
	for _, verb := range slices.Sorted(maps.Keys(verbs)) {
		if verb == "help" || verb == "version" {
			continue
		}
		for _, f := range slices.Concat(verbs[verb].AllFlags(true)...) {
			shared := f.Name + f.Help
			if f.Name == "help" || f.Name == "version" || testing.Short() && seen[shared] {
				continue
			}
			values, known := wrong(verb, f)
			require.True(t, known, "%s --%s: %v", verb, f.Name, reflect.TypeOf(f.Target.Interface()))
			if (testing.Short() || seen[shared] && !feedtest.LongRun()) && len(values) > 0 {
				values = values[:1]
			}
			seen[shared] = true
			for _, value := range values {
				words := append(strings.Fields(verb), "--"+f.Name+"="+value)
				for _, arg := range arguments[verb] {
					if !strings.HasPrefix(arg, "--"+f.Name+"=") {
						words = append(words, arg)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				status, stdout, stderr := call(ctx, "", words...)
				cancel()
				require.Equal(t, terminal.ExitUsage, status, "%q: %s%s", words, stdout, stderr)
				terminaltest.RequireRefused(t, "feedhistory", verb, f.Name, stdout, stderr, words)
				left, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, left, "%q", words)
			}
		}
	}
}

// certificate makes a certificate that signs itself.
func certificate(t *testing.T, edit func(*x509.Certificate)) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	edit(c)
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A message says what is wrong with a server's TLS, and what to do.
func TestTLSMessages(t *testing.T) {
	now := time.Now()
	same := func(*x509.Certificate) {}
	for _, test := range []struct {
		name    string
		edit    func(*x509.Certificate)
		version uint16 // of TLS, at most
		trusted bool
		want    string
	}{
		{"unknown authority", same, 0, false, "its certificate comes from an authority that this computer does not know: Test authority; if you trust the authority, give its certificate with --ca-file"},
		{"expired", func(c *x509.Certificate) { c.NotAfter = now.Add(-24 * time.Hour) }, 0, true, "its certificate has expired; tell the publisher, and check this computer's clock"},
		{"early", func(c *x509.Certificate) { c.NotBefore = now.Add(24 * time.Hour) }, 0, true, "its certificate is not valid yet; check this computer's clock"},
		{"another host", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"example.org"} }, 0, true, "its certificate is for another host: example.org; check the address"},
		{"no host", func(c *x509.Certificate) { c.IPAddresses = nil }, 0, true, "its certificate is for another host; check the address"},
		{"for clients", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, 0, true, "its certificate cannot be verified: "},
		{"old", same, tls.VersionTLS11, true, "the server refuses the TLS connection: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			own := certificate(t, test.edit)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS10, MaxVersion: test.version}
			server.StartTLS()
			defer server.Close()
			args := []string{"fetch", "--allow-private", server.URL + "/feed.atom"}
			if test.trusted {
				ca := filepath.Join(t.TempDir(), "ca.pem")
				require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}), 0o600))
				args = append(args, "--ca-file", ca)
			}
			status, stdout, stderr := call(t.Context(), "", args...)
			require.Equal(t, terminal.ExitFailed, status)
			require.Empty(t, stdout)
			require.Contains(t, said(stderr), server.URL+"/feed.atom: "+test.want)
			require.Equal(t, 1, strings.Count(stderr, server.URL), stderr)
		})
	}
}

// A document of more than 16 MiB is refused by the default limit, which is named with
// the flag that raises it.
func TestLargeDocumentMessage(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title>`)
		block := strings.Repeat("large ", 1<<14)
		for range 200 {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
		fmt.Fprint(w, `</title><entry><id>urn:1</id></entry></feed>`)
	}))
	status, _, stderr := call(t.Context(), "", "fetch", "--allow-private", server.URL)
	require.Equal(t, terminal.ExitFailed, status)
	require.Contains(t, said(stderr), server.URL+": the document is larger than 16 MiB; raise --max-document-bytes if you trust the publisher")
	status, stdout, stderr := call(t.Context(), "", "fetch", "--allow-private", "--max-document-bytes", "20MiB", server.URL)
	require.Equal(t, terminal.ExitOK, status, stderr)
	require.Contains(t, stdout, "urn:1")
}

// A message about wrong usage names the flag, and says where to read more.
func TestUsageMessages(t *testing.T) {
	const url = "https://example.org/"
	for _, test := range []struct{ args, says string }{
		{"check --chain --base https://example.org/ -", "--chain: standard input"},
		{"conformance publisher --add true --settle 0s " + url, "--settle: "},
		{"conformance run --timeout 0s -- true", "--timeout: "},
		{"erase --name feed.atom urn:1", "--name is for --out"},
		{"fetch --json --format csv " + url, "--json and --format csv exclude each other"},
		{"fetch --format atom " + url + " " + url + "2", "--format atom: give one URL, because it is one feed"},
		{"harvest --protocol atom-pmh --format json --json " + url, "--format json excludes --json and --db"},
		{"harvest --protocol atom-pmh --format json --db x.db " + url, "--format json excludes --json and --db"},
		{"handover --to https://reader.example/", "you can create one in Miniflux at"},
	} {
		t.Setenv("MINIFLUX_TOKEN", "")
		args := strings.Fields(test.args)
		status, _, stderr := call(t.Context(), "", args...)
		require.Equal(t, terminal.ExitUsage, status, "%s: %s", test.args, stderr)
		require.Contains(t, said(stderr), test.says)
		require.Contains(t, stderr, "feedhistory: see feedhistory "+args[0])
	}
}

// A message names a file of settings that cannot be read.
func TestConfigMessages(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"pace = ":                  "config.toml:1: ",
		"pace = \"soon\"":          "--pace: ",
		"[fetch]\nquota = \"1GB\"": "config.toml: there is no flag quota",
		"[nothing]\n":              "config.toml: there is no verb nothing",
		"user = \"ann\"":           "config.toml: user is for the command line only",
	} {
		file := filepath.Join(dir, "config.toml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		t.Setenv("FEEDHISTORY_CONFIG", file)
		status, _, stderr := call(t.Context(), "", "fetch", "https://example.org/")
		require.Equal(t, terminal.ExitUsage, status, "%s: %s", text, stderr)
		require.Contains(t, stderr, want, text)
	}
	t.Setenv("FEEDHISTORY_CONFIG", dir)
	status, _, stderr := call(t.Context(), "", "list")
	require.Equal(t, terminal.ExitUsage, status)
	require.Contains(t, stderr, dir+": is a directory")
}

// TestVerbAlone compares the output of a verb whose flags are read alone with its output when, for a
// setting, those of all verbs are read.
func TestVerbAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	t.Setenv("FEEDHISTORY_CONFIG", file)
	for name := range leaves(t) {
		for _, flags := range []string{"--help", "-qh", "--version", "--no-such-flag", "--quiet=x", "--db= --pace=x --format=y"} {
			var answers [2][]any
			for i, setting := range []string{"", "quiet = false"} {
				require.NoError(t, os.WriteFile(file, []byte(setting), 0o600))
				status, stdout, stderr := call(t.Context(), "", strings.Fields(name+" "+flags)...)
				answers[i] = []any{status, stdout, stderr}
			}
			require.Equal(t, answers[0], answers[1], "%s %s", name, flags)
		}
	}
}

// A message about a bad line of input names the line, or what the line is about.
func TestLineMessages(t *testing.T) {
	produce := []string{"produce", "--base", "https://example.org/", "--listen", "127.0.0.1:0", "--protocol"}
	for _, test := range []struct{ protocol, lines, says string }{
		{protocols.AtomPMH, `{"id":"urn:1","time":"yesterday"}`, `the record "urn:1": time is not a time such as 2003-12-13T18:30:02Z: "yesterday"`},
		{protocols.AtomPMH, produced[protocols.AtomPMH] + "\n{", "line 2: "},
		{protocols.ModifiedRange, `{"id":"urn:1","deleted":true}`, `the deletion of "urn:1" has no time`},
		{protocols.DataReplication, "\n\nx", "line 3: "},
	} {
		status, _, stderr := call(t.Context(), test.lines, append(produce, test.protocol)...)
		require.Equal(t, terminal.ExitFailed, status, stderr)
		require.Contains(t, said(stderr), test.says)
	}
}

// Advice says what to do about rare errors.
func TestAdviceMessages(t *testing.T) {
	for want, err := range map[string]error{
		"remove content_id from the state: then the harvest continues by time": &harvest.Error{Code: harvest.ErrMark},
		"tell the server's operator": &harvest.Error{Code: harvest.ErrLoop},
		"raise --max-entity":         &harvest.Error{Code: harvest.ErrBudget, Text: "the limit on entity (3) is exceeded", Clause: "datareplication#consumer-7"},
	} {
		require.Equal(t, want, protocols.HarvestAdvice(&feedhistory.Gap{Err: err}))
	}
	require.Equal(t, "tell the server's operator that it sends the same items for every end of the range",
		protocols.HarvestAdvice(&feedhistory.Gap{Err: &harvest.Error{Code: harvest.ErrStuck}}))
	require.Equal(t, "tell the publisher", show.Advice(&feedhistory.Gap{
		Reason: feedhistory.ReasonRefused, Err: &feedhistory.FetchError{URL: "javascript:x", Reason: feedhistory.ReasonRefused}}))
	require.Contains(t, show.Advice(&feedhistory.Gap{
		Reason: feedhistory.ReasonRefused, Err: &feedhistory.FetchError{URL: "x", Reason: feedhistory.ReasonRefused, Err: feedhistory.ErrPrivateAddress}}), "(--allow-private)")
	require.Contains(t, show.Advice(&feedhistory.Gap{
		Reason: feedhistory.ReasonStatus, Err: &feedhistory.FetchError{Reason: feedhistory.ReasonStatus, URL: "x", Status: http.StatusUnauthorized}}), "check --user")
	require.Contains(t, show.VerdictText(feedhistory.VerdictLossy), "entries may have slipped through")
	var out strings.Builder
	showFindings(terminal.NewPage(&out), []check.Finding{{}}, 1)
	require.Contains(t, out.String(), "(a document without a URL)")
}

// TestHarvestFlagNames checks that each flag the messages of harvest and produce name is one
// of these verbs, and that the advice for any gap names flags harvest has.
func TestHarvestFlagNames(t *testing.T) {
	parser, err := kong.New(&commandLine{}, kong.Vars{"version": "", "agent": "", "db": "", "kinds": ""})
	require.NoError(t, err)
	flags := map[string]map[string]bool{}
	for _, verb := range parser.Model.Children {
		if flags[verb.Name] = map[string]bool{}; verb.Name != "harvest" && verb.Name != "produce" {
			continue
		}
		for _, group := range verb.AllFlags(false) {
			for _, f := range group {
				for _, name := range append(slices.Clone(f.Aliases), f.Name) {
					flags[verb.Name][name] = true
				}
			}
		}
	}
	flag := regexp.MustCompile(`--([a-z][a-z-]*[a-z])(?:[^a-z-]|$)`) // not "--max-", which is completed below
	files := []string{"cmd_harvest.go", "cmd_produce.go"}
	more, err := filepath.Glob("../internal/protocols/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, more)
	seen := 0
	for _, file := range append(files, more...) {
		for _, m := range flag.FindAllStringSubmatch(string(feedtest.ReadFile(t, file)), -1) {
			seen++
			require.True(t, flags["harvest"][m[1]] || flags["produce"][m[1]], "%s names --%s", file, m[1])
		}
	}
	require.Greater(t, seen, 30)
	for _, reason := range []feedhistory.Reason{
		feedhistory.ReasonUnknown, feedhistory.ReasonNetwork, feedhistory.ReasonStatus, feedhistory.ReasonRefused, feedhistory.ReasonLimit,
		feedhistory.ReasonTruncated, feedhistory.ReasonMalformed, feedhistory.ReasonNotFeed, feedhistory.ReasonBudget, feedhistory.ReasonLoop,
		feedhistory.ReasonBarren, feedhistory.ReasonDetached, feedhistory.ReasonInterrupted, feedhistory.ReasonMissedWindow,
		feedhistory.ReasonDeclared, feedhistory.ReasonContradiction, feedhistory.ReasonForeign, "of-tomorrow",
	} {
		for _, status := range []int{401, 404, 407, 429, 500} {
			for _, rule := range []error{feedhistory.ErrUserinfo, feedhistory.ErrPrivateAddress} {
				for _, err := range []error{
					&feedhistory.FetchError{Reason: feedhistory.ReasonStatus, URL: "x", Status: status}, &feedhistory.FetchError{URL: "x", Reason: feedhistory.ReasonRefused, Err: rule},
					&feedhistory.ParseError{Reason: reason}, &harvest.Error{Code: harvest.ErrBudget, Limit: "items", Clause: "modified-range#12"}, &harvest.Error{Code: harvest.ErrBudget, Limit: "requests", Clause: "modified-range#12"},
					&harvest.Error{Code: harvest.ErrBudget, Limit: "bytes", Clause: "modified-range#12"}, &harvest.Error{Code: harvest.ErrIgnored}, &harvest.Error{Code: harvest.ErrStamp}, errors.New("x"),
				} {
					advice := protocols.HarvestAdvice(&feedhistory.Gap{Reason: reason, Err: err})
					for _, m := range flag.FindAllStringSubmatch(advice, -1) {
						require.True(t, flags["harvest"][m[1]], "%v, %v: %s", reason, err, advice)
					}
				}
			}
		}
	}
}

// An entry that several feeds have needs a feed; a mirror that changes while it is
// exported is not exported.
func TestSeveralFeedsMessages(t *testing.T) {
	dir, url := serveDirectory(t)
	db := filepath.Join(dir, "feeds.db")
	for _, name := range []string{"a.rss", "b.rss"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(`<rss version="2.0"><channel><title>T</title><item><guid>urn:1</guid></item></channel></rss>`), 0o600))
		done(t, "", "sync", "--db", db, "--allow-private", url+"/"+name)
	}
	for _, verb := range []string{"entry", "erase"} {
		status, _, stderr := call(t.Context(), "", verb, "--db", db, "urn:1")
		require.Equal(t, terminal.ExitUsage, status)
		require.Contains(t, said(stderr), "several feeds have ")
		require.Contains(t, said(stderr), "--feed: "+url+"/a.rss")
		require.Contains(t, said(stderr), url+"/b.rss")
	}
	store, err := (&database.Location{DB: db}).Open(&command.World{Ctx: t.Context()})
	require.NoError(t, err)
	defer store.Close()
	f, err := store.Feed(t.Context(), url+"/a.rss")
	require.NoError(t, err)
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f}))
	old, err := store.Feed(t.Context(), url+"/a.rss")
	require.NoError(t, err)
	old.Commits--
	require.ErrorContains(t, mirror.Export(t.Context(), io.Discard, store, func(yield func(*mirror.Feed, error) bool) { yield(old, nil) }), "the feed has changed meanwhile")
}

// The message about a database that fails in the middle of an import does not blame a
// line.
func TestImportDatabaseMessage(t *testing.T) {
	c := &importCommand{Location: database.Location{DB: "feeds.db"}}
	err := c.importFailure("-", fmt.Errorf("line 7: %w", database.ErrDirectory))
	require.EqualError(t, err, "feeds.db: the file cannot be opened: it is a directory; run the same import again to continue")
	err = c.importFailure("-", errors.New("line 7: odd"))
	require.EqualError(t, err, "standard input: line 7: odd")
}

// A body longer than its Content-Length is damage, and net/http's words about it are not for
// people.
func TestBodyLongerThanItsLength(t *testing.T) {
	const feed = "<rss><channel><title>T</title><item><guid>1</guid></item></channel></rss>"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffer, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(buffer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(feed)-20, feed)
		_ = buffer.Flush()
	}))
	defer server.Close()
	status, _, stderr := call(t.Context(), "", "fetch", "--allow-private", server.URL)
	require.NotZero(t, status)
	require.Contains(t, said(stderr), "truncated")
	require.Equal(t, io.Discard, log.Writer())
}
