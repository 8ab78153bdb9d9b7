package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A dist makes the files of a release.
type dist struct {
	root    string    // the checkout, with the version set
	out     string    // where the files go
	work    string    // a temporary folder
	version string    // vX.Y.Z
	when    time.Time // of every file

	docs    map[string]string  // name in the archive of feedhistory -> path
	modules map[string]licence // of others, in the commands
}

// A target is a platform as Go names it.
type target struct{ os, arch, arm string }

var allTargets = []target{
	{"linux", "amd64", ""}, {"linux", "arm64", ""}, {"linux", "arm", "7"}, {"linux", "386", ""},
	{"darwin", "amd64", ""}, {"darwin", "arm64", ""}, {"windows", "amd64", ""}, {"freebsd", "amd64", ""},
}

// parseTargets reads a list such as linux/amd64,linux/arm/7. An empty one is all.
func parseTargets(list string) ([]target, error) {
	if list == "" {
		return allTargets, nil
	}
	var targets []target
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(allTargets, func(t target) bool { return strings.TrimSuffix(t.os+"/"+t.arch+"/"+t.arm, "/") == name })
		if i < 0 {
			return nil, fmt.Errorf("no release is made for %q", name)
		}
		targets = append(targets, allTargets[i])
	}
	return targets, nil
}

func (t target) String() string {
	if t.arm != "" {
		return t.os + "-" + t.arch + "v" + t.arm
	}
	return t.os + "-" + t.arch
}

func (t target) exe(command string) string {
	if t.os == "windows" {
		return command + ".exe"
	}
	return command
}

// commands are the commands of module cmd. Each has archives and packages of its own.
var commands = []string{"feedhistory", "feedfleet"}

func (d *dist) make(targets []target) (err error) {
	if err := os.RemoveAll(d.out); err != nil {
		return err
	}
	if err := os.MkdirAll(d.out, 0o755); err != nil {
		return err
	}
	if d.docs, err = d.documents(targets); err != nil {
		return err
	}
	for _, t := range targets {
		for _, command := range commands {
			if err := d.build(t, command); err != nil {
				return err
			}
			if err := d.archive(t, command); err != nil {
				return err
			}
			if t.os != "linux" {
				continue
			}
			if err := d.packages(t, command); err != nil {
				return err
			}
		}
		if t.os == "linux" && t.arm == "" && t.arch != "386" {
			if err := d.image(t); err != nil {
				return err
			}
		}
	}
	for _, step := range []func() error{d.parts, d.suite, d.manifests, d.debian, d.sums} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// build compiles a command for a platform. The bytes depend on the source and the Go version
// only.
func (d *dist) build(t target, command string) error {
	_, err := d.goCommand(t, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", d.binary(t, command), "./"+command)
	return err
}

// binary returns the path of a command for a platform.
func (d *dist) binary(t target, command string) string {
	return filepath.Join(d.work, t.String(), t.exe(command))
}

// goCommand runs the go command in module cmd for a platform.
func (d *dist) goCommand(t target, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	work, err := filepath.Abs(filepath.Join(d.root, "go.work"))
	if err != nil {
		return nil, err
	}
	cmd.Dir = filepath.Join(d.root, "cmd")
	cmd.Env = append(os.Environ(), "GOWORK="+work, "GOFLAGS=", "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOARM="+t.arm)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s for %s: %w", strings.Join(args, " "), t, err)
	}
	return out, nil
}

// documents makes the manual page, the completions and the notices, and returns them
// with the licence and the command's page.
func (d *dist) documents(targets []target) (map[string]string, error) {
	dir := filepath.Join(d.work, "documents")
	err := os.MkdirAll(dir, 0o755)
	if err != nil {
		return nil, err
	}
	own := filepath.Join(d.work, "feedhistory")
	here := target{os: runtime.GOOS, arch: runtime.GOARCH}
	if _, err := d.goCommand(here, "build", "-trimpath", "-buildvcs=false", "-o", own, "./feedhistory"); err != nil {
		return nil, err
	}
	files := map[string]string{"LICENSE": filepath.Join(d.root, "LICENSE")}
	write := func(name string, text []byte) error {
		files[name] = filepath.Join(dir, filepath.Base(name))
		return os.WriteFile(files[name], text, 0o644)
	}
	for name, args := range map[string][]string{
		"feedhistory.1": {"man"}, "completions/feedhistory.bash": {"completion", "bash"},
		"completions/_feedhistory": {"completion", "zsh"}, "completions/feedhistory.fish": {"completion", "fish"},
	} {
		cmd := exec.Command(own, args...)
		cmd.Env = []string{"HOME=/", "FEEDHISTORY_CONFIG="} // no path of this computer in the page
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("feedhistory %s: %w", strings.Join(args, " "), err)
		}
		if err := write(name, text); err != nil {
			return nil, err
		}
	}
	if d.modules, err = d.licences(targets); err != nil {
		return nil, err
	}
	return files, errors.Join(d.page(write), write("NOTICES", notices(d.modules)))
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
