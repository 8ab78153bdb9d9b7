package modules

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// The modules of an earlier commit compile with today's root, and today's with the
// root of then: no module needs more of another than its public packages promise. The
// file compatible names the commit or tag; it changes when a promise does.
func TestCompatible(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	text, err := os.ReadFile("../compatible")
	require.NoError(t, err)
	then := strings.TrimSpace(string(text))
	if exec.Command("git", "-C", root, "cat-file", "-e", then+"^{commit}").Run() != nil {
		t.Skipf("this checkout does not have the commit %s", then)
	}
	trees := map[string]string{"then": extract(t, root, then), "now": root}
	for _, of := range [][2]string{{"then", "now"}, {"now", "then"}} {
		t.Run(fmt.Sprintf("modules of %s, root of %s", of[0], of[1]), func(t *testing.T) {
			work := filepath.Join(t.TempDir(), "go.work")
			var b strings.Builder
			b.WriteString("go 1.26.0\n")
			for _, m := range All {
				dir := filepath.Join(trees[of[0]], m)
				if m == "" {
					dir = trees[of[1]]
				}
				fmt.Fprintf(&b, "use %s\nreplace %s => %[1]s\n", dir, strings.TrimSuffix(Path+"/"+m, "/")+" "+version(t, root))
			}
			require.NoError(t, os.WriteFile(work, []byte(b.String()), 0o644))
			for _, m := range All[1:] {
				cmd := exec.Command("go", "build", "./...")
				cmd.Dir = filepath.Join(trees[of[0]], m)
				cmd.Env = append(os.Environ(), "GOWORK="+work, "GOFLAGS=-buildvcs=false -trimpath")
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s:\n%s", m, out)
			}
		})
	}
}

// extract returns a folder with the files of a commit.
func extract(t *testing.T, root, commit string) string {
	dir := t.TempDir()
	archive := filepath.Join(dir, "tree.tar")
	for _, args := range [][]string{
		{"git", "-C", root, "archive", "-o", archive, commit},
		{"tar", "-xf", archive, "-C", dir},
	} {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return dir
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
