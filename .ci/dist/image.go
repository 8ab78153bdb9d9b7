package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the owner of the state in an image. It has no name there.
const user = 65532

// image makes a container image from scratch: the commands, which are static, the
// roots of TLS, and the time zones. `docker load`, podman and containerd take it.
func (d *dist) image(b *build) error {
	content, err := d.layer(b)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return err
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: d.when}, CreatedBy: ".ci/release"}})
	if err != nil {
		return err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Created = b.arch, b.os, v1.Time{Time: d.when}
	file.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/feedhistory"}, Cmd: []string{"serve", "--listen", ":8005"}, User: fmt.Sprintf("%d:%[1]d", user), WorkingDir: "/var/lib/feedhistory",
		Env:          []string{"PATH=/usr/bin", "HOME=/var/lib/feedhistory", "FEEDHISTORY_DB=/var/lib/feedhistory/feeds.db", "ZONEINFO=/usr/share/zoneinfo.zip"},
		Volumes:      map[string]struct{}{"/var/lib/feedhistory": {}},
		ExposedPorts: map[string]struct{}{"8005/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title": "feedhistory", "org.opencontainers.image.version": d.version,
			"org.opencontainers.image.licenses": "MIT", "org.opencontainers.image.source": "https://github.com/feedhistory/feedhistory",
		},
	}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return err
	}
	tag, err := name.NewTag("feedhistory:" + strings.TrimPrefix(d.version, "v"))
	if err != nil {
		return err
	}
	return d.create(fmt.Sprintf("feedhistory-%s-%s-image.tar", d.version, b.target), func(w io.Writer) error {
		return tarball.Write(tag, image, w)
	})
}

// layer returns the files of an image.
func (d *dist) layer(b *build) ([]byte, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	t := tar.NewWriter(&buf)
	for _, dir := range []string{"etc", "etc/ssl", "etc/ssl/certs", "tmp", "usr", "usr/bin", "usr/share", "var", "var/lib"} {
		h := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: d.when}
		if dir == "tmp" {
			h.Mode = 0o1777
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "var/lib/feedhistory/", Mode: 0o750, Uid: user, Gid: user, ModTime: d.when}); err != nil {
		return nil, err
	}
	for _, f := range []struct{ name, path string }{
		{"usr/bin/feedhistory", b.files["feedhistory"]["feedhistory"]}, {"usr/bin/feedfleet", b.files["feedfleet"]["feedfleet"]},
		{"usr/share/zoneinfo.zip", filepath.Join(strings.TrimSpace(string(goroot)), "lib/time/zoneinfo.zip")},
		{"etc/ssl/certs/ca-certificates.crt", ""}, {"usr/share/LICENSE", b.files["feedhistory"]["LICENSE"]}, {"usr/share/NOTICES", b.files["feedhistory"]["NOTICES"]},
	} {
		text := roots()
		if f.path != "" {
			if text, err = os.ReadFile(f.path); err != nil {
				return nil, err
			}
		}
		if err := t.WriteHeader(&tar.Header{Name: f.name, Mode: mode(f.name), Size: int64(len(text)), ModTime: d.when}); err != nil {
			return nil, err
		}
		if _, err := t.Write(text); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// roots returns the certificates that Mozilla trusts, as the Go project keeps them.
func roots() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) //nolint:errcheck // a buffer takes all
		}
	}
	return b.Bytes()
}
