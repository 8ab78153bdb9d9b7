package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/feedhistory/feedhistory/republish"
)

//go:embed static
var staticFiles embed.FS

// An asset is a static file under a name with a digest of its content.
type asset struct {
	name, mediaType string
	body            *republish.Body
}

// assets are the static files by their names in the directory.
var assets = loadAssets()

type assetSet map[string]*asset

func loadAssets() assetSet {
	set := assetSet{}
	entries, err := staticFiles.ReadDir("static")
	for _, entry := range entries {
		var data []byte
		if data, err = staticFiles.ReadFile("static/" + entry.Name()); err != nil {
			break
		}
		sum := sha256.Sum256(data)
		extension := path.Ext(entry.Name())
		set[entry.Name()] = &asset{
			name:      strings.TrimSuffix(entry.Name(), extension) + "-" + hex.EncodeToString(sum[:6]) + extension,
			mediaType: mime.TypeByExtension(extension), body: republish.NewBody(data),
		}
	}
	if err != nil {
		panic(fmt.Sprintf("the embedded files: %v", err)) // the files are part of the program
	}
	return set
}

// path returns the path of a file below the server's.
func (set assetSet) path(name string) string { return "static/" + set[name].name }

// serveStatic answers with a static file, which never changes under its name.
func (s *Server) serveStatic(w http.ResponseWriter, r *http.Request) error {
	for _, a := range assets {
		if a.name == r.PathValue("name") {
			w.Header().Set("Content-Type", a.mediaType)
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			a.body.Serve(w, r, http.StatusOK)
			return nil
		}
	}
	return s.noPage(w, r)
}
