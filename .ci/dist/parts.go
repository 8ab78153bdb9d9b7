package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

// parts lists the modules whose code is in the commands, in CycloneDX. It reads them
// from the commands themselves, so the list is of what people run.
func (d *dist) parts() error {
	for _, command := range commands {
		builds, err := filepath.Glob(filepath.Join(d.work, "*-*", command+"*"))
		if err != nil || len(builds) == 0 {
			return fmt.Errorf("no build of %s to list the parts of: %w", command, err)
		}
		bom, err := d.bom(command, builds)
		if err != nil {
			return err
		}
		err = d.create(fmt.Sprintf("%s-%s.cdx.json", command, d.version), func(w io.Writer) error {
			return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bom merges the parts of a command's builds for all platforms.
func (d *dist) bom(command string, builds []string) (*cyclonedx.BOM, error) {
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: d.when.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			Type: cyclonedx.ComponentTypeApplication, Name: command, Version: d.version, BOMRef: command,
			PackageURL: "pkg:golang/" + modules.Path + "/cmd@" + d.version + "#" + command,
		},
	}
	var components []cyclonedx.Component
	var refs []string
	seen := map[string]bool{}
	add := func(path, version, sum string) {
		purl := "pkg:golang/" + path + "@" + version
		if seen[purl] {
			return
		}
		seen[purl] = true
		refs = append(refs, purl)
		c := cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl, BOMRef: purl}
		if digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(digest) > 0 {
			c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(digest)}} // of go.sum
		}
		names := d.modules[path+" "+version].names
		if path == "std" {
			names = d.modules[ofGo].names
		}
		c.Licenses = &cyclonedx.Licenses{{Expression: cmp.Or(strings.Join(names, " AND "), "MIT")}} // that of this repository's modules
		components = append(components, c)
	}
	for _, build := range builds {
		info, err := buildinfo.ReadFile(build)
		if err != nil {
			return nil, err
		}
		add("std", strings.TrimPrefix(info.GoVersion, "go"), "")
		for _, m := range info.Deps {
			version := m.Version
			if strings.HasPrefix(m.Path, modules.Path) {
				version = d.version // of this checkout
			}
			add(m.Path, version, m.Sum)
		}
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: command, Dependencies: &refs}}
	return bom, nil
}

// suite packs the conformance suite for npm, from the folder conformance/data. The version
// of the package is that of the suite.
func (d *dist) suite() error {
	out, err := filepath.Abs(d.out)
	if err != nil {
		return err
	}
	pack := exec.Command("npm", "pack", "--silent", "--pack-destination", out)
	pack.Dir, pack.Stderr = filepath.Join(d.root, "conformance", "data"), os.Stderr
	if err := pack.Run(); err != nil {
		return fmt.Errorf("npm pack: %w", err)
	}
	return nil
}
