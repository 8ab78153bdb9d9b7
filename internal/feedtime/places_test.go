package feedtime

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write places.txt from Go's own copy of the database")

// The files of places have the meaning of the whole database: the same offsets from 1970 to 2025.
func TestPlaces(t *testing.T) {
	if *update {
		writePlaces(t)
		return
	}
	files := placeFiles()
	require.Len(t, files, len(placeNames))
	for _, name := range placeNames {
		here, err := time.LoadLocationFromTZData(name, files[name])
		require.NoError(t, err, name)
		whole, err := time.LoadLocation(name)
		require.NoError(t, err, name)
		end := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
		for at := time.Unix(0, 0); at.Before(end); at = at.Add(12 * time.Hour) {
			_, offset := at.In(here).Zone()
			_, want := at.In(whole).Zone()
			require.Equal(t, want, offset, "%s in %s", at, name)
		}
	}
}

// writePlaces writes places.txt.
func writePlaces(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	database, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	defer database.Close()
	var compressed bytes.Buffer
	w, err := flate.NewWriter(&compressed, flate.BestCompression)
	require.NoError(t, err)
	for _, name := range placeNames {
		file, err := fs.ReadFile(database, name)
		require.NoError(t, err)
		_, err = w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(file))), file...))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	var lines strings.Builder
	text := base64.StdEncoding.EncodeToString(compressed.Bytes())
	for len(text) > 0 {
		line := text[:min(96, len(text))]
		lines.WriteString(line + "\n")
		text = text[len(line):]
	}
	require.NoError(t, os.WriteFile("places.txt", []byte(lines.String()), 0o644))
}
