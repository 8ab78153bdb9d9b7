package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// archive packs a command as people without a package manager download it: a zip for
// Windows, a tar.gz elsewhere, in a folder of its own name.
func (d *dist) archive(b *build, command string) error {
	name, files := fmt.Sprintf("%s-%s-%s", command, d.version, b.target), b.files[command]
	if b.os == "windows" {
		return d.create(name+".zip", func(w io.Writer) error { return d.zip(w, name, files) })
	}
	return d.create(name+".tar.gz", func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := d.tar(z, name+"/", files); err != nil {
			return err
		}
		return z.Close()
	})
}

// create writes a file of the release.
func (d *dist) create(name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(d.out, name))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return f.Close()
}

// tar writes files in the order of their names, owned by root, with the release's time.
func (d *dist) tar(w io.Writer, prefix string, files map[string]string) error {
	t := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, err := os.ReadFile(files[name])
		if err != nil {
			return err
		}
		header := &tar.Header{Name: prefix + name, Mode: mode(name), Size: int64(len(text)), ModTime: d.when, Format: tar.FormatPAX}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(text); err != nil {
			return err
		}
	}
	return t.Close()
}

func (d *dist) zip(w io.Writer, prefix string, files map[string]string) error {
	z := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, err := os.ReadFile(files[name])
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: prefix + "/" + name, Method: zip.Deflate, Modified: d.when}
		header.SetMode(os.FileMode(mode(name)))
		f, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := io.Copy(f, bytes.NewReader(text)); err != nil {
			return err
		}
	}
	return z.Close()
}

// mode returns the permissions of a file by its name: the commands run.
func mode(name string) int64 {
	base := filepath.Base(name)
	for _, command := range commands {
		if base == command || base == command+".exe" {
			return 0o755
		}
	}
	return 0o644
}
