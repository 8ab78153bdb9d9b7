// Command release prepares a release of all modules, which move in lockstep.
// It sets their version everywhere, writes the checksums of each module into the
// go.sum of those that require it, and makes the manual page and the completions
// of the command, in dist:
//
//	cd .ci && go run ./release v0.3.0
//
// What remains is to commit, to push the tags that it prints, and to publish what is
// in dist with the release. None of that is checked in, so none of it is ever stale.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 || !semver.IsValid(os.Args[1]) {
		log.Fatal("usage: go run ./release vX.Y.Z")
	}
	cache, err := os.MkdirTemp("", "release")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(cache)
	if err := release("..", os.Args[1], cache); err != nil {
		log.Fatal(err)
	}
}

// release sets the version, completes the checksums and prints the tags. The
// cache is that of the go command.
func release(root, version, cache string) error {
	if err := setVersion(root, version); err != nil {
		return err
	}
	proxy, err := os.MkdirTemp("", "proxy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(proxy)
	for _, m := range modules.All {
		if err := modules.Sum(root, m, proxy, cache); err != nil {
			return err
		}
		if err := modules.Serve(root, m, version, proxy); err != nil {
			return err
		}
	}
	if err := dist(root); err != nil {
		return err
	}
	for _, m := range modules.All {
		fmt.Println("git tag " + strings.TrimPrefix(m+"/"+version, "/"))
	}
	return nil
}

// dist makes what packages of the command contain besides it, with the command as it
// is in this checkout.
func dist(root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	bin, err := os.MkdirTemp("", "feedhistory")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	command := filepath.Join(bin, "feedhistory")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", command, ".")
	build.Dir, build.Env = filepath.Join(root, "cmd/feedhistory"), append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(root, "dist"), 0o755); err != nil {
		return err
	}
	for name, args := range map[string][]string{
		"feedhistory.1": {"man"}, "feedhistory.bash": {"completion", "bash"},
		"_feedhistory": {"completion", "zsh"}, "feedhistory.fish": {"completion", "fish"},
	} {
		text, err := exec.Command(command, args...).Output()
		if err != nil {
			return fmt.Errorf("feedhistory %s: %w", strings.Join(args, " "), err)
		}
		if err := os.WriteFile(filepath.Join(root, "dist", name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// setVersion changes the version in the source, the action's page, go.work and each
// go.mod.
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
	constant := regexp.MustCompile(`(?m)^const Version = ".*"$`)
	return replace(filepath.Join(root, "client.go"), constant, fmt.Sprintf("const Version = %q", version[1:]))
}

func replace(file string, what *regexp.Regexp, with string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, what.ReplaceAll(text, []byte(with)), 0o644)
}
