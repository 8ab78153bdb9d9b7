// Package kinds knows the kinds of sources, and tells from a file which one it is.
package kinds

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/memory"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/freshrss"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/greader"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/miniflux"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/newsboat"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/saved"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/subscriptions"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/takeout"
	"github.com/feedhistory/feedhistory/cmd/internal/readerapi"
)

// Names are the kinds of sources.
const Names = "newsboat, miniflux, freshrss, greader, google-reader, inoreader, feedly, opml, directory, git"

// A Source is a source to import from.
type Source struct {
	Kind  string
	Name  string   // a file, a directory, a repository or a URL
	Path  string   // of the file in a repository
	Feeds []string // the feeds to import; for documents that do not name theirs, this feed
}

// New returns the source named by the arguments after --from KIND. With the kind "", it
// looks at the file.
func New(ctx context.Context, kind string, args []string) (*Source, error) {
	if len(args) == 0 {
		return nil, errors.New("--from: name the source: a file, a directory or a URL")
	}
	s := &Source{Kind: kind, Name: args[0], Feeds: args[1:]}
	if kind == "" {
		if s.Kind = Recognise(ctx, s.Name); s.Kind == "" {
			return nil, fmt.Errorf("%s: not a recognised source: use --from KIND, one of %s", s.Name, Names)
		}
	}
	if !slices.Contains(strings.Split(Names, ", "), s.Kind) {
		return nil, fmt.Errorf("--from: %q is not a kind of source: %s", s.Kind, Names)
	}
	if s.Kind == "git" {
		if len(s.Feeds) == 0 {
			return nil, errors.New("--from git: name the repository and the path of the feed's file in it")
		}
		s.Path, s.Feeds = s.Feeds[0], s.Feeds[1:]
	}
	if s.isSaved() && len(s.Feeds) > 1 {
		return nil, errors.New("--from " + s.Kind + ": at most one feed: the documents are all of it")
	}
	if isServer := s.IsServer(); isServer != argument.IsURL(s.Name) || !isServer && (s.Kind == "miniflux" || s.Kind == "greader") {
		return nil, errors.New("--from " + s.Kind + ": " + argument.WithoutUser(s.Name) + " is not such a source")
	}
	for i, feed := range s.Feeds {
		if err := argument.CheckURL(feed); err != nil {
			return nil, err
		}
		s.Feeds[i] = argument.FeedName(feed)
	}
	return s, nil
}

// IsServer reports whether the source is a server, which needs credentials.
func (s *Source) IsServer() bool {
	switch s.Kind {
	case "miniflux", "greader", "freshrss", "inoreader":
		return argument.IsURL(s.Name)
	}
	return false
}

func (s *Source) isSaved() bool { return s.Kind == "git" || s.Kind == "directory" }

// feed returns the feed of documents that do not name theirs.
func (s *Source) feed() string {
	if len(s.Feeds) == 0 {
		return ""
	}
	return s.Feeds[0]
}

// Wants reports whether to import a feed.
func (s *Source) Wants(feed string) bool {
	return len(s.Feeds) == 0 || s.isSaved() || slices.Contains(s.Feeds, argument.FeedName(feed))
}

// Read yields the contents of the source after a mark. The server is the one for a URL.
func (s *Source) Read(ctx context.Context, server *readerapi.Server, mark string) iter.Seq2[memory.Found, error] {
	switch {
	case s.Kind == "miniflux":
		return miniflux.Read(ctx, server, s.Wants, mark)
	case s.IsServer():
		if s.Kind == "freshrss" && !strings.Contains(server.URL, "greader.php") {
			server.URL = strings.TrimSuffix(server.URL, "/") + "/api/greader.php"
		}
		return greader.Read(ctx, server, s.Wants, mark)
	case s.Kind == "newsboat":
		return newsboat.Read(ctx, s.Name, mark)
	case s.Kind == "freshrss":
		return freshrss.Read(ctx, s.Name, mark)
	case s.Kind == "opml":
		return subscriptions.Read(ctx, s.Name)
	case s.Kind == "directory":
		return saved.Directory(ctx, s.Name, s.feed())
	case s.Kind == "git":
		return saved.Git(ctx, s.Name, s.Path, s.feed())
	}
	return takeout.Read(ctx, s.Name, s.feed(), mark)
}

// start is how much of a file reveals its kind.
const start = 64 << 10

// Recognise returns the kind of a file or directory; "" if it is none of them.
func Recognise(ctx context.Context, name string) string {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return directory(name)
	case !info.Mode().IsRegular():
		return ""
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, start))
	text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\ufeff")), " \t\r\n")
	switch {
	case err != nil:
		return ""
	case bytes.HasPrefix(text, []byte("SQLite format 3\x00")):
		if newsboat.Is(ctx, name) {
			return "newsboat"
		}
		if freshrss.Is(ctx, name) {
			return "freshrss"
		}
		return ""
	case bytes.HasPrefix(text, []byte("<")):
		return document(name, text)
	case takeout.Is(text):
		return "google-reader"
	}
	return ""
}

// directory returns "git" for a repository.
func directory(name string) string {
	for _, inside := range []string{".git", "objects"} {
		if _, err := os.Stat(filepath.Join(name, inside)); err == nil {
			return "git"
		}
	}
	return "directory"
}

// document returns the kind of an XML document.
func document(name string, text []byte) string {
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
			case saved.IsDocument(name):
				return "directory" // of one document
			}
			return ""
		}
	}
}
