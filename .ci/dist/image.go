package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

// user is the owner of the state in an image. It has no name there.
const user = 65532

// image makes a container image from scratch: the commands, which are static, the
// roots of TLS, and the time zones. `docker load`, podman and containerd take it.
func (d *dist) image(t target) error {
	content, err := d.layer(t)
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
	file.Architecture, file.OS, file.Created = t.arch, t.os, v1.Time{Time: d.when}
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
	return d.create(fmt.Sprintf("feedhistory-%s-%s-image.tar", d.version, t), func(w io.Writer) error {
		return tarball.Write(tag, image, w)
	})
}

// layer returns the files of an image.
func (d *dist) layer(t target) ([]byte, error) {
	goroot, err := modules.Env("GOROOT")
	if err != nil {
		return nil, err
	}
	files, err := readFiles("usr/", map[string]string{
		"bin/feedhistory": d.binary(t, "feedhistory"), "bin/feedfleet": d.binary(t, "feedfleet"),
		"share/zoneinfo.zip": filepath.Join(goroot, "lib/time/zoneinfo.zip"),
		"share/LICENSE":      d.docs["LICENSE"], "share/NOTICES": d.docs["NOTICES"],
	})
	if err != nil {
		return nil, err
	}
	all := []packedFile{{name: "tmp/", mode: 0o1777}}
	for _, folder := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/", "usr/", "usr/bin/", "usr/share/", "var/", "var/lib/"} {
		all = append(all, packedFile{name: folder, mode: 0o755})
	}
	all = append(all, packedFile{name: "var/lib/feedhistory/", mode: 0o750, owner: user},
		packedFile{name: "etc/ssl/certs/ca-certificates.crt", text: roots(), mode: 0o644})
	var buf bytes.Buffer
	err = d.tar(&buf, append(all, files...))
	return buf.Bytes(), err
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
