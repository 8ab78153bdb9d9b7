package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// archive packs a command as people without a package manager download it: a zip for
// Windows, a tar.gz elsewhere, in a folder of its own name.
func (d *dist) archive(t target, command string) error {
	name := fmt.Sprintf("%s-%s-%s", command, d.version, t)
	paths := map[string]string{"LICENSE": d.docs["LICENSE"], "NOTICES": d.docs["NOTICES"]}
	if command == "feedhistory" {
		paths = maps.Clone(d.docs)
	}
	paths[t.exe(command)] = d.binary(t, command)
	files, err := readFiles(name+"/", paths)
	if err != nil {
		return err
	}
	if t.os == "windows" {
		return d.create(name+".zip", func(w io.Writer) error { return d.zip(w, files) })
	}
	return d.create(name+".tar.gz", func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := d.tar(z, files); err != nil {
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

// A packedFile is a file of an archive or an image, or a folder, whose name ends in a slash.
type packedFile struct {
	name  string
	text  []byte
	mode  os.FileMode
	owner int
}

// readFiles returns the files of a folder, given by their names and paths, in the order of
// their names. The commands can be executed.
func readFiles(folder string, paths map[string]string) (files []packedFile, err error) {
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		f := packedFile{name: folder + name, mode: 0o644}
		if slices.Contains(commands, strings.TrimSuffix(filepath.Base(name), ".exe")) {
			f.mode = 0o755
		}
		if f.text, err = os.ReadFile(paths[name]); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// tar writes files with the release's time.
func (d *dist) tar(w io.Writer, files []packedFile) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		// WriteHeader makes a folder of a name with a slash at its end.
		header := &tar.Header{Name: f.name, Mode: int64(f.mode), Uid: f.owner, Gid: f.owner, Size: int64(len(f.text)), ModTime: d.when, Format: tar.FormatPAX}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(f.text); err != nil {
			return err
		}
	}
	return t.Close()
}

func (d *dist) zip(w io.Writer, files []packedFile) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: d.when}
		header.SetMode(f.mode)
		to, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := to.Write(f.text); err != nil {
			return err
		}
	}
	return z.Close()
}
