package main

import (
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packages makes a command's packages for Debian and Fedora, and those that follow them.
func (d *dist) packages(b *build, command string) error {
	for _, format := range []string{"deb", "rpm"} {
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		info := nfpm.WithDefaults(d.info(b, command))
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return err
		}
		if err := d.create(packager.ConventionalFileName(info), func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
			return err
		}
	}
	return nil
}

// description has a line, and then more, for each command.
var description = map[string][2]string{
	"feedhistory": {
		"reads, mirrors and publishes the whole history of web feeds",
		"Follows complete, paged and archived feeds (RFC 5005), mirrors them,\nshows them in a browser, and publishes them.",
	},
	"feedfleet": {
		"mirrors web feeds on many machines, with PostgreSQL",
		"Polls each feed when it is due, from as many machines as are needed.",
	},
}

func (d *dist) info(b *build, command string) *nfpm.Info {
	about := description[command]
	info := &nfpm.Info{
		Name: command, Arch: b.arch + b.arm, Platform: "linux", Section: "web", Priority: "optional",
		Version: strings.TrimPrefix(d.version, "v"), VersionSchema: "semver", MTime: d.when,
		Maintainer:  "The feedhistory authors <feedhistory@users.noreply.github.com>",
		Description: about[0] + "\n" + about[1],
		Homepage:    "https://github.com/feedhistory/feedhistory", License: "MIT",
		Overridables: nfpm.Overridables{
			Contents:   d.contents(b, command),
			Recommends: []string{"ca-certificates"},
			RPM:        nfpm.RPM{BuildHost: "localhost", Summary: about[0]},
		},
	}
	if command == "feedhistory" {
		info.Recommends = append(info.Recommends, "sudo") // for feedhistory-service
		info.Scripts = nfpm.Scripts{PostInstall: d.packaging("postinstall.sh"), PreRemove: d.packaging("preremove.sh")}
	}
	return info
}

// packaging returns the path of a file that only packages have.
func (d *dist) packaging(name string) string { return filepath.Join(d.root, "cmd/packaging", name) }

// contents lists the files of a command's package.
func (d *dist) contents(b *build, command string) (contents files.Contents) {
	add := func(kind, source, to string, mode fs.FileMode) {
		contents = append(contents, &files.Content{
			Source: source, Destination: to, Type: kind, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: d.when},
		})
	}
	add("", b.files[command][command], "/usr/bin/"+command, 0o755)
	add("", b.files[command]["LICENSE"], path.Join("/usr/share/doc", command, "copyright"), 0o644)
	add("", b.files[command]["NOTICES"], path.Join("/usr/share/doc", command, "NOTICES"), 0o644)
	if command != "feedhistory" {
		return contents
	}
	for name, to := range map[string]string{
		"feedhistory.1":                "/usr/share/man/man1/feedhistory.1",
		"completions/feedhistory.bash": "/usr/share/bash-completion/completions/feedhistory",
		"completions/_feedhistory":     "/usr/share/zsh/vendor-completions/_feedhistory",
		"completions/feedhistory.fish": "/usr/share/fish/vendor_completions.d/feedhistory.fish",
	} {
		add("", b.files[command][name], to, 0o644)
	}
	for _, unit := range []string{"feedhistory.service", "feedhistory-sync.service", "feedhistory-sync.timer"} {
		add("", d.packaging(unit), path.Join("/usr/lib/systemd/system", unit), 0o644)
	}
	add("", d.packaging("feedhistory-service"), "/usr/bin/feedhistory-service", 0o755)
	add(files.TypeConfigNoReplace, d.packaging("sudoers"), "/etc/sudoers.d/feedhistory", 0o440)
	add("", d.packaging("sysusers.conf"), "/usr/lib/sysusers.d/feedhistory.conf", 0o644)
	add(files.TypeConfigNoReplace, d.packaging("feedhistory.env"), "/etc/default/feedhistory", 0o644)
	return contents
}
