package npm

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A project that installs the package can serve a case and read it.
func TestPack(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm")
	}
	archive, err := Pack("../..", t.TempDir())
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o644))
	install := exec.CommandContext(t.Context(), "npm", "install", "--offline", "--no-audit", "--no-fund", archive)
	install.Dir = dir
	out, err := install.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "test.js"), []byte(`
import { serve, manifest } from 'rfc5005-conformance'
const site = await serve('walk/archived')
const text = await (await fetch(site.url)).text()
await site.close()
if (!text.includes('prev-archive') || manifest.cases.length < 250) process.exit(1)
`), 0o644))
	run := exec.CommandContext(t.Context(), "node", "test.js")
	run.Dir = dir
	out, err = run.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
