package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

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
