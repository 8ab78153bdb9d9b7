package main

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const published = "../../publish"

// buildEnv is an environment in which publish.sh finds this feedhistory.
func buildEnv(t *testing.T, bin string, more ...string) []string {
	action, err := filepath.Abs(published + "/action")
	require.NoError(t, err)
	env := append(os.Environ(), "FEED_BRANCH=", "PATH="+strings.Join([]string{bin, action, os.Getenv("PATH")}, string(os.PathListSeparator)))
	return append(env, more...)
}

// commandDir returns the directory with this command in PATH, where TestMain has put it.
func commandDir(t *testing.T) (dir string) {
	t.Helper()
	program, err := exec.LookPath("feedhistory")
	require.NoError(t, err)
	return filepath.Dir(program)
}

func skipStep(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a build's step is a shell script")
	}
	if testing.Short() {
		t.Skip("builds sites")
	}
}

// Each recipe builds its site and the feed. A build that starts from nothing but the
// published files produces the same bytes; a new article changes no archive.
func TestRecipes(t *testing.T) {
	skipStep(t)
	t.Parallel()
	recipes := feedtest.Glob(t, published+"/recipes/*/build.sh")
	bin := commandDir(t)
	for _, recipe := range recipes {
		source := filepath.Dir(recipe)
		t.Run(filepath.Base(source), func(t *testing.T) {
			t.Parallel()
			modules, err := filepath.EvalSymlinks(filepath.Join(source, "node_modules"))
			if _, packaged := os.Stat(filepath.Join(source, "package.json")); packaged == nil {
				feedtest.Required(t, "FEEDHISTORY_RECIPES")
				require.NoError(t, err, "the generator is not installed: npm install in %s", source)
			}
			r := &recipeRun{t: t, source: source, modules: modules, bin: bin, state: filepath.Join(t.TempDir(), "state")}
			first := r.build()
			require.Len(t, first.history.Entries, 5)
			require.GreaterOrEqual(t, len(first.files), 3, "archives")
			for _, e := range first.history.Entries {
				n := strings.TrimPrefix(e.Title().Plain(), "Post ")
				require.Contains(t, e.Content().Plain()+e.Summary().Plain(), "Text "+n+", with a link.")
				require.True(t, strings.HasPrefix(e.ID, "https://example.org/"), e.ID)
			}
			require.Equal(t, first.files, r.build().files)

			r.article = 6
			then := r.build()
			require.Len(t, then.history.Entries, 6)
			changed := 0
			for name, text := range first.files {
				if now, ok := then.files[name]; !ok || now != text {
					changed++
				}
			}
			require.LessOrEqual(t, changed, 2, "the subscription document, and a next-archive")
		})
	}
}

// As the repository has it, and wherever it is called from, a recipe finds publish.sh.
func TestRecipeFindsItsScript(t *testing.T) {
	skipStep(t)
	t.Parallel()
	bin, root := commandDir(t), t.TempDir()
	for _, name := range []string{"action/publish.sh", "recipes/eleventy/build.sh"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		out, err := exec.Command("cp", "-r", filepath.Join(published, name), filepath.Join(root, name)).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	const feed = `<rss version="2.0"><channel><title>F</title><item><guid>urn:1</guid></item></channel></rss>`
	generator := filepath.Join(t.TempDir(), "npx") // of Eleventy
	require.NoError(t, os.WriteFile(generator, []byte("#!/bin/sh\nmkdir _site && echo '"+feed+"' >_site/all.xml\n"), 0o700))
	build := exec.Command(filepath.Join(root, "recipes/eleventy/build.sh"))
	build.Dir, build.Env = t.TempDir(), append(os.Environ(), "PATH="+filepath.Dir(generator)+string(os.PathListSeparator)+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "FEED_BRANCH=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.FileExists(t, filepath.Join(root, "recipes/eleventy/_site/feeds/feed.atom"))
}

// A build that produced nothing, or next to nothing, deletes nothing.
func TestRecipesOfAnEmptyBuild(t *testing.T) {
	skipStep(t)
	t.Parallel()
	bin, dir := commandDir(t), t.TempDir()
	step := func(entries int) (string, error) {
		var lines strings.Builder
		for n := range entries {
			fmt.Fprintf(&lines, "{\"id\":\"urn:%d\",\"title\":\"T\",\"updated\":\"2003-12-13\"}\n", n)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "all.jsonl"), []byte(lines.String()), 0o600))
		script, err := filepath.Abs(published + "/action/publish.sh")
		require.NoError(t, err)
		build := exec.Command(script)
		build.Dir, build.Env = dir, buildEnv(t, bin, "FEED_STATE="+filepath.Join(dir, "state"), "FEED_FROM=all.jsonl", "FEED_DIR=site",
			"FEED_BASE=https://example.org/feeds/", "FEED_OPTIONS=--delete-missing\n--size=10")
		out, err := build.CombinedOutput()
		return said(string(out)), err
	}
	out, err := step(40)
	require.NoError(t, err, out)
	for entries, want := range map[int]string{0: "the source is empty, so nothing is published or deleted", 3: "37 of the 40 published entries are missing"} {
		out, err = step(entries)
		require.Error(t, err)
		require.Contains(t, out, want)
	}
	out, err = step(38)
	require.NoError(t, err, out)
	require.Contains(t, out, "2 deleted")
}

// A recipeRun builds one recipe, each time in a new directory.
type recipeRun struct {
	t                           *testing.T
	source, modules, bin, state string
	article                     int // that is new; zero: none
}

// A builtFeed is the feed of a built site.
type builtFeed struct {
	files   map[string]string
	history *feedhistory.History
}

func (r *recipeRun) build() *builtFeed {
	dir := r.t.TempDir()
	posts := ""
	require.NoError(r.t, filepath.WalkDir(r.source, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(r.source, path)
		to := filepath.Join(dir, rel)
		switch {
		case err != nil:
			return err
		case d.Name() == "node_modules":
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(to, 0o700)
		}
		if d.Name() == "post-5.md" {
			posts = filepath.Dir(to)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		// A process that another test starts meanwhile must not have the file open, too:
		// what is open for writing cannot be run (golang.org/issue/22315).
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		return os.WriteFile(to, text, 0o700)
	}))
	if r.modules != "" {
		require.NoError(r.t, os.Symlink(r.modules, filepath.Join(dir, "node_modules")))
	}
	if r.article > 0 {
		text := strings.ReplaceAll("---\ntitle: Post N\ndate: 2003-0N-01\n---\n\nText N\n", "N", string(rune('0'+r.article)))
		require.NoError(r.t, os.WriteFile(filepath.Join(posts, "post-6.md"), []byte(text), 0o600))
	}
	build := exec.Command("./build.sh")
	build.Dir, build.Env = dir, buildEnv(r.t, r.bin, "FEED_STATE="+r.state)
	out, err := build.CombinedOutput()
	require.NoError(r.t, err, "%s", out)
	require.Contains(r.t, string(out), "documents checked: nothing to report")
	return r.read(dir)
}

// read reads the feed of a site from its files.
func (r *recipeRun) read(dir string) *builtFeed {
	found := feedtest.Glob(r.t, dir+"/*/feeds/feed.atom")
	require.Len(r.t, found, 1)
	b := &builtFeed{files: map[string]string{}}
	require.NoError(r.t, filepath.WalkDir(filepath.Dir(found[0]), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(filepath.Dir(found[0]), path)
		b.files[name] = string(text)
		return err
	}))
	var all feedhistory.Merger
	for name, text := range b.files {
		doc, err := feedhistory.Parse(strings.NewReader(text), "https://example.org/feeds/"+filepath.ToSlash(name))
		require.NoError(r.t, err)
		all.Add(&feedhistory.Reading{Document: doc}, nil)
	}
	history, err := all.History()
	require.NoError(r.t, err)
	b.history = history
	return b
}

// The action's own step runs with all its inputs, and passes publish.sh everything that
// the script needs.
func TestAction(t *testing.T) {
	skipStep(t)
	t.Parallel()
	text := feedtest.ReadFile(t, published+"/action/action.yml")
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct {
				Uses, Shell, Run string
				With, Env        map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &action))
	steps := action.Runs.Steps
	require.Len(t, steps, 2)
	path, err := filepath.Abs(published + "/action")
	require.NoError(t, err)
	for _, file := range steps[0].With {
		require.FileExists(t, strings.ReplaceAll(file, "${{ github.action_path }}", path))
	}

	given := map[string]string{
		"base": "https://example.org/feeds/", "from": "all.jsonl", "dir": "public/feeds", "branch": "",
		"options": "--title=Ann writes",
	}
	dir := t.TempDir()
	env := append(os.Environ(), "GITHUB_ACTION_PATH="+path, "RUNNER_TEMP="+t.TempDir())
	used := map[string]bool{}
	for name, value := range steps[1].Env {
		input := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
		require.Contains(t, action.Inputs, input)
		used[input] = true
		text, ok := given[input]
		if !ok {
			text = action.Inputs[input].Default
		}
		env = append(env, name+"="+text)
	}
	require.Len(t, used, len(action.Inputs))
	script := feedtest.ReadFile(t, published+"/action/publish.sh")
	for name := range steps[1].Env {
		require.Contains(t, string(script), "\n#   "+name)
	}

	require.NoError(t, os.WriteFile(dir+"/all.jsonl", []byte(`{"id":"urn:1","title":"T","updated":"2003-12-13"}`), 0o600))
	step := exec.Command("sh", "-e", "-c", steps[1].Run)
	step.Dir, step.Env = dir, env
	out, err := step.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.FileExists(t, dir+"/public/feeds/feed.atom")
}

// The files from which the container is built exist.
func TestDockerfile(t *testing.T) {
	text := feedtest.ReadFile(t, published+"/action/Dockerfile")
	require.Contains(t, string(text), "go build -C /src/cmd/feedhistory")
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "COPY" && words[1] != "." {
			require.FileExists(t, "../../"+words[1])
		}
	}
}

// A feed document in UTF-16 is one, with and without a mark.
func TestPublishWideDocument(t *testing.T) {
	for _, mark := range []string{"", "\ufeff"} {
		var wide []byte
		for _, c := range mark + `<rss><channel><title>F</title><item><guid>1</guid></item></channel></rss>` {
			wide = binary.LittleEndian.AppendUint16(wide, uint16(c))
		}
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(dir+"/feed.rss", wide, 0o600))
		status, _, stderr := call(t.Context(), "", "publish", "--out", dir+"/out", "--base", "https://example.org/", "--from", dir+"/feed.rss")
		require.Equal(t, terminal.ExitOK, status, stderr)
		require.Contains(t, stderr, "1 new")
	}
}
