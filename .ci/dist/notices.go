package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

// A licence is a module's, with the texts of its files.
type licence struct {
	texts [][]byte
	names []string // as SPDX has them
}

// licences reads the licences of all modules of others whose code is in the commands on any of
// the platforms, and that of Go, by path and version.
func (d *dist) licences(targets []string) (map[string]licence, error) {
	dirs := map[string]string{}
	for _, t := range targets {
		out, err := d.command("cmd", platform(t), "go", "list", "-deps", "-json=Module", "./feedhistory", "./feedfleet")
		if err != nil {
			return nil, err
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var pkg struct {
				Module *struct{ Path, Version, Dir string }
			}
			if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if m := pkg.Module; m != nil && !strings.HasPrefix(m.Path, modules.Path) {
				dirs[m.Path+" "+m.Version] = m.Dir
			}
		}
	}
	goroot, err := modules.Env("GOROOT")
	if err != nil {
		return nil, err
	}
	dirs[ofGo] = goroot
	all := map[string]licence{}
	for name, dir := range dirs {
		if all[name], err = licenceOf(dir); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// ofGo names Go's own code among the modules.
const ofGo = "Go's standard library and runtime"

// notices returns the texts of licences.
func notices(all map[string]licence) []byte {
	var b bytes.Buffer
	b.WriteString("The commands contain code of others. These are its licences.\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "\n%s\n%s\n", strings.Repeat("=", 78), name)
		for _, text := range all[name].texts {
			fmt.Fprintf(&b, "%s\n%s\n", strings.Repeat("-", 78), bytes.TrimSpace(text))
		}
	}
	return b.Bytes()
}

var licenceFile = regexp.MustCompile(`(?i)^(un)?licen[cs]e|^copying|^notice|^copyright`)

// licenceOf returns the licence and notice files of a module. Each module has one, and a
// licence known by name.
func licenceOf(dir string) (l licence, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l, err
	}
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return l, err
		}
		l.texts = append(l.texts, text)
		for _, m := range licensecheck.Scan(text).Match {
			if !m.IsURL && !slices.Contains(l.names, m.ID) {
				l.names = append(l.names, m.ID)
			}
		}
	}
	if len(l.names) == 0 {
		return l, errors.New("no licence")
	}
	return l, nil
}
