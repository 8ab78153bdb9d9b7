// Package modules serves the modules of this repository as a module proxy
// would serve them at a version.
package modules

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Path is the path of the root module.
const Path = "github.com/feedhistory/feedhistory"

// All are the folders of the modules, each after those that it requires.
var All = []string{"", "backfill/sitemap", "mirror/sqlstore", "publish/s3", "fleet", "examples/observed", "cmd"}

// Serve adds a module at a version to the proxy in a folder.
func Serve(root, m, version, proxy string) error {
	mod := module.Version{Path: strings.TrimSuffix(Path+"/"+m, "/"), Version: version}
	dir := filepath.Join(proxy, mod.Path, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	gomod, err := os.ReadFile(filepath.Join(root, m, "go.mod"))
	if err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339))
	for name, text := range map[string]string{"list": version + "\n", version + ".mod": string(gomod), version + ".info": info} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	if err := zip.CreateFromDir(f, mod, filepath.Join(root, m)); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Env returns a setting of the go command.
func Env(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output()
	return strings.TrimSpace(string(out)), err
}

// Go runs the go command in a folder that belongs to no workspace, with the
// modules of a proxy and, from this machine's cache, those of others.
func Go(dir, proxy, cache string, args ...string) (string, error) {
	shared, err := Env("GOMODCACHE")
	if err != nil {
		return "", err
	}
	proxy, err = filepath.Abs(proxy)
	if err != nil {
		return "", err
	}
	upstream, err := Env("GOPROXY")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw -trimpath", "GONOSUMDB="+Path+"/*,"+Path,
		"GOMODCACHE="+cache, "GOPROXY=file://"+filepath.ToSlash(proxy)+
			",file://"+filepath.ToSlash(shared)+"/cache/download,"+upstream)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
