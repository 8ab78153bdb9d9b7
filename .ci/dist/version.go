package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

// prepare sets the version and completes the checksums. The cache is that of the go
// command.
func prepare(root, version, cache string) error {
	if err := setVersion(root, version); err != nil {
		return err
	}
	proxy, err := os.MkdirTemp("", "proxy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(proxy)
	for _, m := range modules.All {
		// The go command completes go.sum; the proxy has what the module requires.
		if _, err := modules.Go(filepath.Join(root, m), proxy, cache, "list", "-mod=mod", "-deps", "-test", "./..."); err != nil {
			return err
		}
		if err := modules.Serve(root, m, version, proxy); err != nil {
			return err
		}
	}
	return nil
}

// setVersion changes the version in the source, README, the action's page, go.work and
// each go.mod.
func setVersion(root, version string) error {
	own := regexp.MustCompile(`(` + regexp.QuoteMeta(modules.Path) + `[a-z0-9/]*) v[^ \n]+`)
	files := []string{"go.work"}
	for _, m := range modules.All {
		files = append(files, filepath.Join(m, "go.mod"))
	}
	for _, file := range files {
		if err := replace(filepath.Join(root, file), own, "${1} "+version); err != nil {
			return err
		}
	}
	action := regexp.MustCompile(`publish/action@v[^ \n]+`)
	if err := replace(filepath.Join(root, "publish/action/README.md"), action, "publish/action@"+version); err != nil {
		return err
	}
	installed := regexp.MustCompile(`(/feedhistory[_-])\d+\.\d+\.\d+([_-])`)
	if err := replace(filepath.Join(root, "README.md"), installed, "${1}"+version[1:]+"${2}"); err != nil {
		return err
	}
	constant := regexp.MustCompile(`(?m)^const Version = ".*"$`)
	return replace(filepath.Join(root, "client.go"), constant, fmt.Sprintf("const Version = %q", version[1:]))
}

func replace(file string, pattern *regexp.Regexp, with string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pattern.ReplaceAll(text, []byte(with)), 0o644)
}

// commitTime returns the time of the checkout's commit, which all files of the release
// bear, or SOURCE_DATE_EPOCH.
func commitTime(root string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.Command("git", "-C", root, "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("the time of the commit: %w; outside git, set SOURCE_DATE_EPOCH", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}

// copyCheckout copies the files that git knows or would add, or all if there is no git.
func copyCheckout(from, to string) error {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = from
	out, err := cmd.Output()
	if err != nil {
		return os.CopyFS(to, os.DirFS(from))
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue // deleted and not yet committed, or a test's, and gone
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), text, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}
