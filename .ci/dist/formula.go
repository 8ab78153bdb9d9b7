package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
)

// asset returns the address and the checksum of an archive; "" if it was not made.
func (d *dist) asset(target string) (url, sum string, err error) {
	name := fmt.Sprintf("feedhistory-%s-%s", d.version, target)
	text, err := os.ReadFile(filepath.Join(d.out, name))
	if err != nil {
		if os.IsNotExist(err) {
			err = nil
		}
		return "", "", err
	}
	return "https://github.com/feedhistory/feedhistory/releases/download/" + d.version + "/" + name, fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

// scoop writes the manifest for scoop, if the archive for Windows was made.
func (d *dist) scoop() error {
	url, sum, err := d.asset("windows-amd64.zip")
	if url == "" || err != nil {
		return err
	}
	manifest := map[string]any{
		"version": strings.TrimPrefix(d.version, "v"), "description": description["feedhistory"][0],
		"homepage": "https://github.com/feedhistory/feedhistory", "license": "MIT", "bin": "feedhistory.exe", "checkver": "github",
		"architecture": map[string]any{"64bit": map[string]string{
			"url": url, "hash": sum, "extract_dir": strings.TrimSuffix(path.Base(url), ".zip"),
		}},
	}
	return d.create("feedhistory.json", func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(manifest)
	})
}

// formula writes a Homebrew formula for the archives that were made.
func (d *dist) formula() error {
	type archive struct{ System, CPU, URL, Sum string }
	var archives []archive
	for _, t := range []struct{ target, system, cpu string }{
		{"darwin-arm64", "macos", "arm"}, {"darwin-amd64", "macos", "intel"}, {"linux-arm64", "linux", "arm"}, {"linux-amd64", "linux", "intel"},
	} {
		url, sum, err := d.asset(t.target + ".tar.gz")
		if err != nil {
			return err
		}
		if url != "" {
			archives = append(archives, archive{t.system, t.cpu, url, sum})
		}
	}
	values := map[string]any{"Version": strings.TrimPrefix(d.version, "v"), "Archives": archives}
	return d.create("feedhistory.rb", func(w io.Writer) error { return formulaTemplate.Execute(w, values) })
}

var formulaTemplate = template.Must(template.New("").Parse(`class Feedhistory < Formula
  desc "Reads, mirrors and publishes the whole history of web feeds"
  homepage "https://github.com/feedhistory/feedhistory"
  version "{{.Version}}"
  license "MIT"
{{range .Archives}}
  on_{{.System}} do
    on_{{.CPU}} do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
  end
{{end}}
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
`))
