package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A way counts the code that one verb enters with a feed of one entry. A closure belongs
// to the function around it.
type way struct{ functions, files, packages, lines int }

// ways runs each verb of a binary that counts what it enters, and keeps the most of five
// runs: some code runs only where a goroutine wins a race.
func (h *house) ways() (map[string]way, error) {
	dir, err := os.MkdirTemp("", "house")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "feedhistory")
	build := exec.Command("go", "build", "-cover", "-covermode=set", "-coverpkg="+h.modules["."]+"/...", "-o", binary, "./feedhistory")
	build.Dir, build.Env = filepath.Join(h.root, "cmd"), append(os.Environ(), "GOWORK=")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(h.root, ".ci/house/testdata"))))
	defer server.Close()
	url := server.URL + "/one.atom"
	feed, err := filepath.Abs(filepath.Join(h.root, ".ci/house/testdata/one.atom"))
	if err != nil {
		return nil, err
	}
	result := map[string]way{}
	for verb, args := range map[string][]string{
		"inspect": {feed}, "fetch": {"--allow-private", url}, "sync": {"--allow-private", "--db", "m.db", url},
		"publish": {"--from", feed, "--base", "http://example.org/", "--out", "o"},
	} {
		for range 5 {
			w, err := h.enter(binary, dir, append([]string{verb}, args...))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", verb, err)
			}
			if w.functions >= result[verb].functions {
				result[verb] = w
			}
		}
	}
	return result, nil
}

// enter runs a command once, and counts what it entered.
func (h *house) enter(binary, dir string, args []string) (w way, err error) {
	home, err := os.MkdirTemp(dir, "home")
	if err != nil {
		return w, err
	}
	counts := filepath.Join(home, "counts")
	if err := os.Mkdir(counts, 0o700); err != nil {
		return w, err
	}
	run := exec.Command(binary, args...)
	run.Dir, run.Env = home, append(os.Environ(), "HOME="+home, "GOCOVERDIR="+counts)
	if out, err := run.CombinedOutput(); run.ProcessState.ExitCode() != 0 {
		return w, fmt.Errorf("%w: %s", err, out)
	}
	text := filepath.Join(home, "blocks")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+counts, "-o="+text).CombinedOutput(); err != nil {
		return w, fmt.Errorf("%w: %s", err, out)
	}
	blocks, err := os.ReadFile(text)
	if err != nil {
		return w, err
	}
	entered := map[string]map[span]bool{} // file -> declarations
	packages := map[string]bool{}
	for line := range strings.Lines(string(blocks)) {
		file, block, _ := strings.Cut(line, ":")
		first := 0
		if _, err := fmt.Sscanf(block, "%d.", &first); err != nil || strings.HasSuffix(line, " 0\n") {
			continue // the mode, or a block that was not entered
		}
		s, err := h.declared(strings.TrimPrefix(file, h.modules["."]+"/"), first)
		if err != nil {
			return w, err
		}
		if entered[file] == nil {
			entered[file] = map[span]bool{}
		}
		entered[file][s] = true
		packages[filepath.Dir(file)] = true
	}
	w.files, w.packages = len(entered), len(packages)
	for _, spans := range entered {
		w.functions += len(spans)
		for s := range spans {
			w.lines += s.code
		}
	}
	return w, nil
}

// A span has the lines of a declaration at the top of a file.
type span struct{ first, last, code int }

// declared returns the declaration that has a line of a file.
func (h *house) declared(file string, line int) (span, error) {
	for _, s := range h.spans[file] {
		if s.first <= line && line <= s.last {
			return s, nil
		}
	}
	return span{}, fmt.Errorf("%s:%d is in no declaration", file, line)
}
