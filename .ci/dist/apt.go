package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// debian writes Packages and Release, which make the folder a flat repository for apt.
func (d *dist) debian() error {
	names, err := filepath.Glob(filepath.Join(d.out, "*.deb"))
	if err != nil || len(names) == 0 {
		return err
	}
	var packages bytes.Buffer
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		control, err := exec.Command("dpkg-deb", "--field", name).Output()
		if err != nil {
			return fmt.Errorf("dpkg-deb --field %s: %w", name, err)
		}
		fmt.Fprintf(&packages, "%s\nFilename: ./%s\nSize: %d\nSHA256: %x\n\n", bytes.TrimSpace(control), filepath.Base(name), len(text), sha256.Sum256(text))
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(packages.Bytes()); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	release := "Origin: feedhistory\nLabel: feedhistory\nSuite: stable\nArchitectures: amd64 arm64 armhf i386\nDate: " + d.when.Format(time.RFC1123) + "\nSHA256:\n"
	for _, f := range []struct {
		name string
		text []byte
	}{{"Packages", packages.Bytes()}, {"Packages.gz", zipped.Bytes()}} {
		release += fmt.Sprintf(" %x %d %s\n", sha256.Sum256(f.text), len(f.text), f.name)
		if err := os.WriteFile(filepath.Join(d.out, f.name), f.text, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(d.out, "Release"), []byte(release), 0o644)
}
