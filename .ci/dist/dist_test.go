package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

// version is none that will ever be released, and another in each run: the go
// command remembers which packages a version has.
var version = fmt.Sprintf("v0.999.%d", time.Now().Unix())

// A release is enough by itself: its commands install, and an empty module imports each of its
// packages. The go.sum of each module has all that its packages need.
func TestStrangers(t *testing.T) {
	dir := t.TempDir()
	checkout, proxy, cache := filepath.Join(dir, "checkout"), filepath.Join(dir, "proxy"), sharedCache(t)
	require.NoError(t, copyCheckout("../..", checkout))
	require.NoError(t, prepare(checkout, version, cache))
	for _, m := range modules.All {
		require.NoError(t, modules.Serve(checkout, m, version, proxy))
		require.FileExists(t, filepath.Join(checkout, m, "LICENSE"))
		_, err := modules.Go(filepath.Join(checkout, m), proxy, cache, "list", "-mod=readonly", "-deps", "./...")
		require.NoError(t, err, "its go.sum lacks something")
	}

	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.MkdirAll(empty, 0o755))
	t.Setenv("GOBIN", filepath.Join(dir, "bin"))
	for name, pkg := range map[string]string{"feedhistory": "/cmd/feedhistory", "feedfleet": "/cmd/feedfleet"} {
		_, err := modules.Go(empty, proxy, cache, "install", modules.Path+pkg+"@"+version)
		require.NoError(t, err)
		out, err := exec.Command(filepath.Join(dir, "bin", name), "--version").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), version[1:])
	}

	imports := importable(t, checkout, proxy, cache)
	require.Greater(t, len(imports), 12)
	require.NoError(t, os.WriteFile(filepath.Join(empty, "main.go"),
		[]byte("package main\n\nimport (\n\t_ \""+strings.Join(imports, "\"\n\t_ \"")+"\"\n)\n\nfunc main() {}\n"), 0o644))
	get := []string{"get"}
	for _, path := range imports {
		get = append(get, path+"@"+version)
	}
	for _, args := range [][]string{{"mod", "init", "example.org/reader"}, get, {"build", "-o", os.DevNull, "."}} {
		_, err := modules.Go(empty, proxy, cache, args...)
		require.NoError(t, err)
	}
}

// A release comes with the manual page and completions of just its version.
func TestDist(t *testing.T) {
	checkout := filepath.Join(t.TempDir(), "checkout")
	require.NoError(t, copyCheckout("../..", checkout))
	require.NoError(t, setVersion(checkout, "v0.998.0"))
	d := &dist{root: checkout, version: "v0.998.0"}
	require.NoError(t, d.documents([]string{"linux/amd64"}))
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(checkout, ".documents", name))
		require.NoError(t, err)
		return string(text)
	}
	for name, has := range map[string]string{
		"feedhistory.1": `"feedhistory 0.998.0"`, "completions/feedhistory.bash": "complete -o default -F _feedhistory feedhistory",
		"completions/_feedhistory": "#compdef feedhistory\n", "completions/feedhistory.fish": "complete -c feedhistory ",
	} {
		require.Contains(t, read(name), has)
	}
	page := read("feedhistory.1")
	require.Contains(t, page, "conformance")
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	if home = filepath.Clean(home); home != "/" {
		require.NotContains(t, strings.ReplaceAll(page, `\-`, "-"), home+"/", "no path of the computer that it is made on")
	}
	text := read("README.md")
	require.Contains(t, text, "](https://github.com/feedhistory/feedhistory/blob/v0.998.0/publish/README.md#hugo)")
	require.NotContains(t, text, "](..", "an archive has no other page")
	for _, has := range []string{"github.com/mmcdole/gofeed v", "modernc.org/sqlite v", "Permission is hereby granted", ofGo} {
		require.Contains(t, read("NOTICES"), has)
	}
	require.Contains(t, read("copyright"), "License: MIT\n MIT License\n .\n")
	known, _ := exec.Command("git", "-C", "../..", "ls-files", "dist", "*.1", "*/_feedhistory").Output() // without git: none
	require.Empty(t, string(known), "made at release, and not checked in")
}

// sharedCache is this machine's module cache, in which the modules of others are
// compiled already. What the test adds is removed before and after.
func sharedCache(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	cache := strings.TrimSpace(string(out))
	clean := func() {
		for _, pattern := range []string{modules.Path + "@" + version, modules.Path + "/*@" + version, modules.Path + "/*/*@" + version,
			"cache/download/" + modules.Path + "/@v/" + version + ".*", "cache/download/" + modules.Path + "/*/@v/" + version + ".*", "cache/download/" + modules.Path + "/*/*/@v/" + version + ".*"} {
			found, err := filepath.Glob(filepath.Join(cache, filepath.FromSlash(pattern)))
			require.NoError(t, err)
			for _, name := range found {
				require.NoError(t, os.RemoveAll(name))
			}
		}
	}
	clean()
	t.Cleanup(clean)
	return cache
}

// importable lists the packages that a stranger can import.
func importable(t *testing.T, checkout, proxy, cache string) (paths []string) {
	for _, m := range modules.All[:len(modules.All)-1] {
		out, err := modules.Go(filepath.Join(checkout, m), proxy, cache,
			"list", "-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, "./...")
		require.NoError(t, err)
		for path := range strings.FieldsSeq(out) {
			if !strings.Contains(path, "/internal/") && !strings.Contains(path, "/examples") {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// The checkout works as one: every go.mod requires the version that the source
// names, and none replaces a module.
func TestOneVersion(t *testing.T) {
	source, err := os.ReadFile("../../client.go")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(source), "const Version = \"")
	require.True(t, found)
	version, _, _ := strings.Cut(after, "\"")
	for _, m := range modules.All {
		text, err := os.ReadFile(filepath.Join("../..", m, "go.mod"))
		require.NoError(t, err)
		require.NotContains(t, string(text), "replace", m)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(strings.TrimSpace(line), modules.Path) {
				require.Contains(t, line, " v"+version, m)
			}
		}
	}
	action, err := os.ReadFile("../../publish/action/README.md")
	require.NoError(t, err)
	require.Contains(t, string(action), "publish/action@v"+version+"\n")
	changes, err := os.ReadFile("../../docs/CHANGELOG.md")
	require.NoError(t, err)
	require.Contains(t, string(changes), version, "CHANGELOG.md has no word on this version")
}

// A project that installs the package can serve a case and read it.
func TestPack(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm")
	}
	d := &dist{root: "../..", out: t.TempDir()}
	require.NoError(t, d.suite())
	archives, err := filepath.Glob(filepath.Join(d.out, "*.tgz"))
	require.NoError(t, err)
	require.Len(t, archives, 1)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o644))
	install := exec.CommandContext(t.Context(), "npm", "install", "--offline", "--no-audit", "--no-fund", archives[0])
	install.Dir = dir
	out, err := install.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "test.js"), []byte(`
import { serve, manifest } from 'rfc5005-conformance'
const site = await serve('walk/archived')
const text = await (await fetch(site.url)).text()
await site.close()
if (!text.includes('prev-archive') || manifest.cases.length < 250) process.exit(1)
`), 0o644))
	run := exec.CommandContext(t.Context(), "node", "test.js")
	run.Dir = dir
	out, err = run.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
