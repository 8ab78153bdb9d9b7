package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
)

// description is that of cmd/packaging/feedhistory.yaml.
const description = "reads, mirrors and publishes the whole history of web feeds"

// manifests writes the files by which Homebrew, scoop and winget find the archives that were
// made.
func (d *dist) manifests() error {
	type archive struct{ System, CPU, URL, Sum string }
	var archives []archive
	for _, t := range []struct{ target, system, cpu string }{
		{"darwin-arm64.tar.gz", "macos", "arm"}, {"darwin-amd64.tar.gz", "macos", "intel"},
		{"linux-arm64.tar.gz", "linux", "arm"}, {"linux-amd64.tar.gz", "linux", "intel"}, {"windows-amd64.zip", "", ""},
	} {
		name := fmt.Sprintf("feedhistory-%s-%s", d.version, t.target)
		text, err := os.ReadFile(filepath.Join(d.out, name))
		if os.IsNotExist(err) {
			continue // it was not made
		} else if err != nil {
			return err
		}
		url := "https://github.com/feedhistory/feedhistory/releases/download/" + d.version + "/" + name
		archives = append(archives, archive{t.system, t.cpu, url, fmt.Sprintf("%x", sha256.Sum256(text))})
	}
	for _, t := range manifests.Templates() {
		values := map[string]any{"Version": strings.TrimPrefix(d.version, "v"), "Description": description, "Archives": archives}
		if t.Name() != "feedhistory.rb" {
			last := len(archives) - 1
			if last < 0 || archives[last].System != "" {
				continue // without the archive for Windows
			}
			values["URL"], values["Sum"] = archives[last].URL, archives[last].Sum
			values["Folder"] = strings.TrimSuffix(path.Base(archives[last].URL), ".zip")
		}
		if err := d.create(t.Name(), func(w io.Writer) error { return t.Execute(w, values) }); err != nil {
			return err
		}
	}
	return nil
}

var manifests = template.Must(template.New("feedhistory.rb").Parse(`class Feedhistory < Formula
  desc "Reads, mirrors and publishes the whole history of web feeds"
  homepage "https://github.com/feedhistory/feedhistory"
  version "{{.Version}}"
  license "MIT"
{{range .Archives}}{{if .System}}
  on_{{.System}} do
    on_{{.CPU}} do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
  end
{{end}}{{end}}
  def install
    bin.install "feedhistory"
    man1.install "feedhistory.1"
    bash_completion.install "completions/feedhistory.bash" => "feedhistory"
    zsh_completion.install "completions/_feedhistory"
    fish_completion.install "completions/feedhistory.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/feedhistory --version")
  end
end
{{define "feedhistory.json"}}{
  "version": "{{.Version}}",
  "description": "{{.Description}}",
  "homepage": "https://github.com/feedhistory/feedhistory",
  "license": "MIT",
  "bin": "feedhistory.exe",
  "checkver": "github",
  "architecture": {"64bit": {"url": "{{.URL}}", "hash": "{{.Sum}}", "extract_dir": "{{.Folder}}"}}
}
{{end}}{{define "feedhistory.feedhistory.yaml"}}PackageIdentifier: feedhistory.feedhistory
PackageVersion: {{.Version}}
DefaultLocale: en-US
ManifestType: version
ManifestVersion: 1.6.0
{{end}}{{define "feedhistory.feedhistory.installer.yaml"}}PackageIdentifier: feedhistory.feedhistory
PackageVersion: {{.Version}}
InstallerType: zip
NestedInstallerType: portable
NestedInstallerFiles:
  - RelativeFilePath: {{.Folder}}\feedhistory.exe
    PortableCommandAlias: feedhistory
Installers:
  - Architecture: x64
    InstallerUrl: {{.URL}}
    InstallerSha256: {{.Sum}}
ManifestType: installer
ManifestVersion: 1.6.0
{{end}}{{define "feedhistory.feedhistory.locale.en-US.yaml"}}PackageIdentifier: feedhistory.feedhistory
PackageVersion: {{.Version}}
PackageLocale: en-US
Publisher: feedhistory
PackageName: feedhistory
PackageUrl: https://github.com/feedhistory/feedhistory
License: MIT
ShortDescription: {{.Description}}
ManifestType: defaultLocale
ManifestVersion: 1.6.0
{{end}}`))
