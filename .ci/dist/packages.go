package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packages makes a command's packages for Debian and Fedora, and those that follow them, as its
// file in cmd/packaging says.
func (d *dist) packages(t target, command string) error {
	text, err := os.ReadFile(filepath.Join(d.root, "cmd/packaging", command+".yaml"))
	if err != nil {
		return err
	}
	values := map[string]string{
		"VERSION": strings.TrimPrefix(d.version, "v"), "ARCH": t.arch + t.arm, "TIME": d.when.Format(time.RFC3339),
		"ROOT": d.root, "BUILD": filepath.Dir(d.binary(t, command)), "DOCUMENTS": filepath.Join(d.work, "documents"),
	}
	config, err := nfpm.Parse(strings.NewReader(os.Expand(string(text), func(name string) string { return values[name] })))
	if err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		info, err := config.Get(format)
		if err != nil {
			return err
		}
		info = nfpm.WithDefaults(info)
		if err := d.create(packager.ConventionalFileName(info), func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
			return err
		}
	}
	return nil
}
