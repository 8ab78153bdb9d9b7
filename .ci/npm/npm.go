// Package npm builds the npm package of the conformance suite. It publishes
// nothing.
package npm

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Pack builds the package from the folder conformance/data of a checkout, and
// returns the path of the archive in a folder, which it makes if necessary. The
// version of the package is that of the suite, not that of the release.
func Pack(root, dist string) (string, error) {
	dist, err := filepath.Abs(dist)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return "", err
	}
	cmd := exec.Command("npm", "pack", "--json", "--pack-destination", dist)
	cmd.Dir, cmd.Stderr = filepath.Join(root, "conformance", "data"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("npm pack: %w", err)
	}
	var packed []struct{ Filename string }
	if err := json.Unmarshal(out, &packed); err != nil || len(packed) != 1 {
		return "", fmt.Errorf("npm pack printed %q: %w", out, err)
	}
	return filepath.Join(dist, packed[0].Filename), nil
}
