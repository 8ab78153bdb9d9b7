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

	"github.com/feedhistory/feedhistory/.ci/modules"
)

// notices returns the licences of all modules of others whose code is in the commands
// on any of the platforms, and that of Go.
func (d *dist) notices(targets []target) ([]byte, error) {
	dirs := map[string]string{} // "path version" -> folder
	for _, t := range targets {
		out, err := d.goCommand(t, "list", "-deps", "-json=Module", "./feedhistory", "./feedfleet")
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
	dirs["Go's standard library and runtime"] = goroot
	var b bytes.Buffer
	b.WriteString("The commands contain code of others. These are its licences.\n")
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		texts, err := licences(dirs[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", strings.Repeat("=", 78), name)
		for _, text := range texts {
			fmt.Fprintf(&b, "%s\n%s\n", strings.Repeat("-", 78), bytes.TrimSpace(text))
		}
	}
	return b.Bytes(), nil
}

var licenceFile = regexp.MustCompile(`(?i)^(un)?licen[cs]e|^copying|^notice|^copyright`)

// licences returns the licence and notice files of a module. Each module has one.
func licences(dir string) (texts [][]byte, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil, errors.New("no licence")
	}
	return texts, nil
}
