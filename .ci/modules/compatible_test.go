package modules

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// The modules of an earlier commit compile with today's root, and today's with the
// root of then: no module needs more of another than its public packages promise.
func TestCompatible(t *testing.T) {
	root, then := trees(t)
	for name, of := range map[string][2]string{"then's modules, today's root": {then, root}, "today's modules, then's root": {root, then}} {
		t.Run(name, func(t *testing.T) {
			work := filepath.Join(t.TempDir(), "go.work")
			var b strings.Builder
			b.WriteString("go 1.26.0\n")
			all := slices.DeleteFunc(slices.Clone(All), func(m string) bool { // then had fewer
				_, err := os.Stat(filepath.Join(of[0], m, "go.mod"))
				return err != nil
			})
			for _, m := range all {
				dir := filepath.Join(of[0], m)
				if m == "" {
					dir = of[1]
				}
				fmt.Fprintf(&b, "use %s\nreplace %s => %[1]s\n", dir, strings.TrimSuffix(Path+"/"+m, "/")+" "+version(t, root))
			}
			require.NoError(t, os.WriteFile(work, []byte(b.String()), 0o644))
			for _, m := range all[1:] {
				command(t, filepath.Join(of[0], m), work, "go", "list", "-export", "./...") // compiles, and links no command
			}
		})
	}
}

// No exported name is gone or has changed incompatibly since that commit, by apidiff. It
// prints the new names, too.
func TestNames(t *testing.T) {
	root, then := trees(t)
	dir := t.TempDir()
	apidiff, was, is := filepath.Join(dir, "apidiff"), filepath.Join(dir, "was"), filepath.Join(dir, "is")
	command(t, "..", "off", "go", "build", "-o", apidiff, "golang.org/x/exp/cmd/apidiff")
	command(t, then, filepath.Join(then, "go.work"), apidiff, "-m", "-w", was, Path)
	command(t, root, filepath.Join(root, "go.work"), apidiff, "-m", "-w", is, Path)
	t.Log(command(t, dir, "off", apidiff, "-m", was, is))
	require.Empty(t, command(t, dir, "off", apidiff, "-m", "-incompatible", was, is), "docs/CONTRIBUTING.md says when .ci/compatible moves on")
}

// trees returns the folder of this checkout, and one with the files of the commit or tag that
// the file compatible names. It moves on when a promise changes.
func trees(t *testing.T) (root, then string) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	text, err := os.ReadFile("../compatible")
	require.NoError(t, err)
	commit := strings.TrimSpace(string(text))
	if exec.Command("git", "-C", root, "cat-file", "-e", commit+"^{commit}").Run() != nil {
		t.Skipf("this checkout does not have the commit %s", commit)
	}
	then = t.TempDir()
	archive := filepath.Join(t.TempDir(), "tree.tar")
	command(t, root, "", "git", "archive", "-o", archive, commit)
	command(t, then, "", "tar", "-xf", archive)
	return root, then
}

// command runs a command in a folder and a workspace, and returns its output.
func command(t *testing.T, dir, work, name string, args ...string) string {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK="+work, "GOFLAGS=-buildvcs=false -trimpath")
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	require.NoError(t, err, "%s in %s:\n%s%s", name, dir, out, &errors)
	return string(out)
}

// version returns the version by which the modules require each other.
func version(t *testing.T, root string) string {
	text, err := os.ReadFile(filepath.Join(root, "fleet", "go.mod"))
	require.NoError(t, err)
	mod, err := modfile.Parse("go.mod", text, nil)
	require.NoError(t, err)
	for _, r := range mod.Require {
		if r.Mod.Path == Path {
			return r.Mod.Version
		}
	}
	t.Fatal("fleet requires no root")
	return ""
}
