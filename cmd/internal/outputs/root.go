package outputs

import (
	"io/fs"
	"os"
	"path/filepath"
)

// A Root is a directory. No name or symbolic link leads out of it. Open opens the
// directory again for each file, because a site's build may replace it.
type Root string

// Open opens a file of the directory.
func (dir Root) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(string(dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(filepath.FromSlash(name))
}
