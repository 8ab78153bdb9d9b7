package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

// A dist makes the files of a release.
type dist struct {
	root    string    // a copy of the checkout, with the version set
	out     string    // where the files go
	version string    // vX.Y.Z
	when    time.Time // of every file
}

// allTargets are the platforms that goreleaser.yaml names, as Go names them.
var allTargets = []string{"linux/amd64", "linux/arm64", "linux/arm/7", "linux/386", "darwin/amd64", "darwin/arm64", "windows/amd64", "freebsd/amd64"}

// parseTargets reads a list such as linux/amd64,linux/arm/7. An empty one is all.
func parseTargets(list string) ([]string, error) {
	if list == "" {
		return allTargets, nil
	}
	targets := strings.Split(list, ",")
	for _, name := range targets {
		if !slices.Contains(allTargets, name) {
			return nil, fmt.Errorf("no release is made for %q", name)
		}
	}
	return targets, nil
}

func (d *dist) make(targets []string) error {
	if err := os.RemoveAll(d.out); err != nil {
		return err
	}
	if err := os.MkdirAll(d.out, 0o755); err != nil {
		return err
	}
	if err := d.documents(targets); err != nil {
		return err
	}
	if err := d.goreleaser(targets); err != nil {
		return err
	}
	for _, step := range []func() error{d.suite, d.debian, d.sums} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// releaser is the version that releases are made with, in the workflows, too. Later ones need
// Go 1.27.
const releaser = "github.com/goreleaser/goreleaser/v2@v2.16.0"

var targetsLine = regexp.MustCompile(`(?m)^( *targets: &targets) \[.*\]$`)

// goreleaser builds the commands and packs them, as .ci/goreleaser.yaml says. The bytes depend
// on the source, the time and the Go version only. The copy becomes a repository, because
// GoReleaser asks git for the time.
func (d *dist) goreleaser(targets []string) error {
	if _, err := exec.LookPath("goreleaser"); err != nil {
		return fmt.Errorf("%w: go install %s", err, releaser)
	}
	config, err := os.ReadFile(filepath.Join(d.root, ".ci/goreleaser.yaml"))
	if err != nil {
		return err
	}
	list := strings.ReplaceAll(strings.Join(targets, ", "), "/", "_")
	file := filepath.Join(d.root, ".documents/goreleaser.yaml")
	if err := os.WriteFile(file, targetsLine.ReplaceAll(config, []byte("${1} ["+list+"]")), 0o644); err != nil {
		return err
	}
	skip := "publish,announce,validate"
	if !slices.Contains(targets, "windows/amd64") {
		skip += ",scoop,winget"
	}
	for _, args := range [][]string{
		{"git", "init", "-q"}, {"git", "remote", "add", "origin", "https://" + modules.Path}, {"git", "add", "LICENSE"},
		{"git", "-c", "user.name=release", "-c", "user.email=release@localhost", "commit", "-q", "-m", d.version},
		{"goreleaser", "release", "--clean", "--skip", skip, "--config", file},
	} {
		if _, err := d.command(".", nil, args...); err != nil {
			return err
		}
	}
	return d.collect()
}

// collect copies the files that people download out of GoReleaser's folder.
func (d *dist) collect() error {
	for _, pattern := range []string{"*.tar.gz", "*.zip", "*.deb", "*.rpm", "homebrew/Casks/*.rb", "scoop/*.json", "winget/manifests/*/*/*/*/*.yaml"} {
		names, err := filepath.Glob(filepath.Join(d.root, "dist", pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(filepath.Join(d.out, filepath.Base(name)), text, 0o644)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// command runs a command in a folder of the checkout, and returns its output.
func (d *dist) command(dir string, env []string, args ...string) ([]byte, error) {
	work, err := filepath.Abs(filepath.Join(d.root, "go.work"))
	if err != nil {
		return nil, err
	}
	when := d.when.Format(time.RFC3339)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stderr = filepath.Join(d.root, dir), os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK="+work, "GOFLAGS=", "CGO_ENABLED=0",
		"GORELEASER_CURRENT_TAG="+d.version, "GIT_AUTHOR_DATE="+when, "GIT_COMMITTER_DATE="+when)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", strings.Join(args, " "), strings.Join(env, " "), err)
	}
	return out, nil
}

// platform returns the go command's settings for a target such as linux/arm/7.
func platform(target string) []string {
	parts := append(strings.Split(target, "/"), "")
	return []string{"GOOS=" + parts[0], "GOARCH=" + parts[1], "GOARM=" + parts[2]}
}

// documents makes the files of the archives and packages that are not in the checkout: the
// manual page, the completions, the notices, the command's page, and Debian's.
func (d *dist) documents(targets []string) error {
	dir := filepath.Join(d.root, ".documents")
	if err := os.MkdirAll(filepath.Join(dir, "completions"), 0o755); err != nil {
		return err
	}
	own := filepath.Join(dir, "feedhistory")
	if _, err := d.command("cmd", nil, "go", "build", "-trimpath", "-buildvcs=false", "-o", own, "./feedhistory"); err != nil {
		return err
	}
	write := func(name string, text []byte) error { return os.WriteFile(filepath.Join(dir, name), text, 0o644) }
	for name, args := range map[string][]string{
		"feedhistory.1": {"man"}, "completions/feedhistory.bash": {"completion", "bash"},
		"completions/_feedhistory": {"completion", "zsh"}, "completions/feedhistory.fish": {"completion", "fish"},
	} {
		cmd := exec.Command(own, args...)
		cmd.Env = []string{"HOME=/", "FEEDHISTORY_CONFIG="} // no path of this computer in the page
		text, err := cmd.Output()
		if err == nil {
			err = write(name, text)
		}
		if err != nil {
			return fmt.Errorf("feedhistory %s: %w", strings.Join(args, " "), err)
		}
	}
	licences, err := d.licences(targets)
	if err != nil {
		return err
	}
	return errors.Join(d.page(write), write("NOTICES", notices(licences)), d.debianDocuments(dir, write))
}

// debianDocuments writes the files that Debian's packages have in forms of their own: the
// compressed manual page, the copyright and the changelog.
func (d *dist) debianDocuments(dir string, write func(name string, text []byte) error) error {
	licence, err := os.ReadFile(filepath.Join(d.root, "LICENSE"))
	if err != nil {
		return err
	}
	paragraphs := strings.ReplaceAll(strings.TrimSpace(string(licence)), "\n", "\n ")
	paragraphs = strings.ReplaceAll(paragraphs, "\n \n", "\n .\n")
	page, err := os.ReadFile(filepath.Join(dir, "feedhistory.1"))
	if err != nil {
		return err
	}
	var zipped bytes.Buffer
	z, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = z.Write(page)
	return errors.Join(err, z.Close(), write("feedhistory.1.gz", zipped.Bytes()),
		write("copyright", []byte("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nSource: https://github.com/feedhistory/feedhistory\n\n"+
			"Files: *\nCopyright: The feedhistory authors, and those whom NOTICES names\nLicense: MIT\n "+paragraphs+"\n")),
		write("changelog.yaml", fmt.Appendf(nil, "- semver: %s\n  date: %s\n  packager: %s\n  deb: {distributions: [stable], urgency: low}\n  changes:\n    - note: The changes are in https://github.com/feedhistory/feedhistory/blob/%s/docs/CHANGELOG.md\n",
			strings.TrimPrefix(d.version, "v"), d.when.Format(time.RFC3339), "The feedhistory authors <feedhistory@users.noreply.github.com>", d.version)))
}

// relative matches the beginning of a link to another file of the repository.
var relative = regexp.MustCompile(`\]\(((\.\./)*)([^)#:]+[)#])`)

// page writes the command's page, whose links lead to the version's files: an archive does not
// have them.
func (d *dist) page(write func(name string, text []byte) error) error {
	text, err := os.ReadFile(filepath.Join(d.root, "cmd/feedhistory/README.md"))
	if err != nil {
		return err
	}
	return write("README.md", relative.ReplaceAllFunc(text, func(link []byte) []byte {
		parts := relative.FindSubmatch(link)
		return fmt.Appendf(nil, "](https://github.com/feedhistory/feedhistory/blob/%s/%s", d.version, path.Join("cmd/feedhistory", string(parts[1]), string(parts[3])))
	}))
}

// sums writes the checksums of all files.
func (d *dist) sums() error {
	names, err := filepath.Glob(filepath.Join(d.out, "*"))
	var b strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(text), filepath.Base(name))
	}
	return errors.Join(err, os.WriteFile(filepath.Join(d.out, "SHA256SUMS"), []byte(b.String()), 0o644))
}
