// Command dist makes a release of all modules, which move in lockstep. It sets their
// version everywhere, writes the checksums of each module into the go.sum of those
// that require it, and puts into dist/ the files people download. GoReleaser makes the
// archives, packages, cask and the manifests for scoop and winget; this command the
// conformance suite's package, apt's index and the checksums. `.ci/release` runs it.
//
// What remains is to commit and to push the tags it prints: a workflow then makes the
// same files again, adds the image and the lists of parts, and publishes them. Nothing in
// dist is checked in, so nothing there is ever stale.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

func main() {
	log.SetFlags(0)
	snapshot := flag.Bool("snapshot", false, "leave this checkout as it is, and work on a copy")
	only := flag.String("targets", "", "the platforms, such as linux/amd64,linux/arm/7; all if empty")
	out := flag.String("out", "../dist", "the folder for the files")
	flag.Parse()
	if flag.NArg() != 1 || !semver.IsValid(flag.Arg(0)) {
		log.Fatal("usage: .ci/release [-snapshot] [-targets LIST] [-out DIR] vX.Y.Z")
	}
	if err := run("..", flag.Arg(0), *out, *only, *snapshot); err != nil {
		log.Fatal(err)
	}
}

func run(root, version, out, only string, snapshot bool) error {
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	when, err := commitTime(root)
	if err != nil {
		return err
	}
	copied := filepath.Join(work, "checkout")
	if snapshot {
		if err := copyCheckout(root, copied); err != nil {
			return err
		}
		root = copied
	}
	if err := prepare(root, version, filepath.Join(work, "cache")); err != nil {
		return err
	}
	targets, err := parseTargets(only)
	if err != nil {
		return err
	}
	if !snapshot {
		if err := replace(filepath.Join(root, "docs", "CHANGELOG.md"), regexp.MustCompile(`\(not yet released\)`), "("+when.Format(time.DateOnly)+")"); err != nil {
			return err
		}
		if err := copyCheckout(root, copied); err != nil {
			return err
		}
	}
	d := &dist{root: copied, out: out, version: version, when: when}
	if err := d.make(targets); err != nil {
		return err
	}
	for _, m := range modules.All {
		fmt.Println("git tag " + strings.TrimPrefix(m+"/"+version, "/"))
	}
	return nil
}
