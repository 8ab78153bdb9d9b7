package readers

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// A Source is a source to import from. NewSource makes one.
type Source struct {
	Kind  string
	Name  string   // a file, a directory, a repository or a URL
	Path  string   // of the file in a repository
	Files []string // further files like the one named
	Feeds []string // the feeds to import; if it is one, documents are all of this feed

	kind sourceKind
}

// A sourceKind is a kind of source: a file or a server.
type sourceKind struct {
	name   string
	file   func(ctx context.Context, s *Source, mark string, yield func(Item) error) error
	server func(ctx context.Context, s *Source, server *Server, mark string, yield func(Item) error) error
}

// sourceKinds has a row for each kind, in the order in which messages name them.
var sourceKinds = []sourceKind{
	{name: "newsboat", file: readNewsboat},
	{name: "miniflux", server: readMiniflux},
	{name: "freshrss", file: databaseForms[1].source},
	{name: "opml", file: readSubscriptions},
	{name: "directory", file: readDocuments},
	{name: "warc", file: readDocuments},
	{name: "git", file: readGit},
}

// KindNames returns the kinds of sources.
func KindNames() string {
	var names []string
	for _, k := range sourceKinds {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}

// NewSource returns the source of a kind, as Recognise returns it, that the arguments name.
func NewSource(kind string, args []string) (*Source, error) {
	if len(args) == 0 {
		return nil, errors.New("--from: name the source: a file, a directory or a URL")
	}
	s := &Source{Kind: kind, Name: args[0], Feeds: args[1:]}
	i := slices.IndexFunc(sourceKinds, func(k sourceKind) bool { return k.name == s.Kind })
	if i < 0 {
		return nil, fmt.Errorf("--from: %q is not a kind of source: %s", s.Kind, KindNames())
	}
	s.kind = sourceKinds[i]
	if s.Kind == "git" {
		if len(s.Feeds) == 0 {
			return nil, errors.New("--from git: name the repository and the path of the feed's file in it")
		}
		if s.Path, s.Feeds = s.Feeds[0], s.Feeds[1:]; len(s.Feeds) > 1 {
			return nil, errors.New("--from git: at most one feed: the documents are all of it")
		}
	}
	if s.Kind == "directory" || s.Kind == "warc" {
		for len(s.Feeds) > 0 {
			if _, err := os.Stat(s.Feeds[0]); err != nil {
				break
			}
			s.Files, s.Feeds = append(s.Files, s.Feeds[0]), s.Feeds[1:]
		}
	}
	if isURL := terminal.IsURL(s.Name); isURL && s.kind.server == nil || !isURL && s.kind.file == nil {
		return nil, errors.New("--from " + s.Kind + ": " + terminal.WithoutUser(s.Name) + " is not such a source")
	}
	for i, feed := range s.Feeds {
		if err := terminal.CheckURL(feed); err != nil {
			return nil, err
		}
		s.Feeds[i] = terminal.FeedName(feed)
	}
	return s, nil
}

// IsServer reports whether the source is a server, which needs credentials.
func (s *Source) IsServer() bool { return s.kind.server != nil && terminal.IsURL(s.Name) }

// feed returns the feed of all documents; "" if each names its own.
func (s *Source) feed() string {
	if len(s.Feeds) != 1 {
		return ""
	}
	return s.Feeds[0]
}

// Wants reports whether to import a feed.
func (s *Source) Wants(feed string) bool {
	return len(s.Feeds) == 0 || slices.Contains(s.Feeds, terminal.FeedName(feed))
}

// Read takes the contents of the source after a mark. The server is the one for a URL.
func (s *Source) Read(ctx context.Context, server *Server, mark string, yield func(Item) error) error {
	if s.IsServer() {
		return s.kind.server(ctx, s, server, mark, yield)
	}
	return s.kind.file(ctx, s, mark, yield)
}

// revealing is how much of a file reveals its kind.
const revealing = 64 << 10

// Recognise returns the kind of a file or directory; "" if it is none of them.
func Recognise(ctx context.Context, name string) string {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return directoryKind(name)
	case !info.Mode().IsRegular():
		return ""
	}
	text := start(name)
	switch {
	case bytes.HasPrefix(text, []byte("SQLite format 3\x00")):
		for i := range databaseForms {
			if databaseForms[i].isDatabase(ctx, name) {
				return databaseForms[i].kind
			}
		}
		return ""
	case isWARC(text):
		return "warc"
	case bytes.HasPrefix(text, []byte("<")):
		return documentKind(name, text)
	case isURLs(text):
		return "newsboat"
	}
	return ""
}

// start returns as much of a file as reveals its kind; nothing if it cannot be read.
func start(name string) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, revealing))
	if err != nil {
		return nil
	}
	return bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\ufeff")), " \t\r\n")
}

// directoryKind returns "git" for a repository.
func directoryKind(name string) string {
	for _, inside := range []string{".git", "objects"} {
		if _, err := os.Stat(filepath.Join(name, inside)); err == nil {
			return "git"
		}
	}
	return "directory"
}

// documentKind returns the kind of an XML document.
func documentKind(name string, text []byte) string {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.Strict = false
	decoder.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		token, err := decoder.Token()
		if err != nil {
			return ""
		}
		if root, ok := token.(xml.StartElement); ok {
			switch {
			case strings.EqualFold(root.Name.Local, "opml"):
				return "opml"
			case isDocument(name):
				return "directory" // of one document
			}
			return ""
		}
	}
}
