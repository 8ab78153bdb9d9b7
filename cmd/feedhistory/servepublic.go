package main

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"strings"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/web"
)

// What the history server shows of private feeds: nothing, unless reading needs its
// token. It neither publishes nor polls them then: polls are for sync.

// A publicStore is a store without the private feeds.
type publicStore struct {
	mirror.Indexer
	mirror.Calendar
	keys *keyring
}

// isPrivate reports whether a feed is marked as private, or has credentials here.
// Where that cannot be found out, it is.
func (s *publicStore) isPrivate(f *mirror.Feed) bool {
	private, err := s.keys.private()
	return f.Private || err != nil || private[f.URL] != nil
}

// hides reports whether a feed is private. Where that cannot be found out, it is.
func (s *publicStore) hides(ctx context.Context, feed string) bool {
	f, err := s.Indexer.Feed(ctx, feed)
	if errors.Is(err, mirror.ErrNotFound) {
		f, err = &mirror.Feed{URL: feed}, nil
	}
	return err != nil || s.isPrivate(f)
}

// Feed implements mirror.Store.
func (s *publicStore) Feed(ctx context.Context, url string) (*mirror.Feed, error) {
	f, err := s.Indexer.Feed(ctx, url)
	if err == nil && s.isPrivate(f) {
		return nil, mirror.ErrNotFound
	}
	return f, err
}

// Feeds implements mirror.Store.
func (s *publicStore) Feeds(ctx context.Context, q mirror.FeedQuery) iter.Seq2[*mirror.Feed, error] {
	limit := q.Limit
	q.Limit = 0 // the number of hidden feeds is not known
	return visible(s.Indexer.Feeds(ctx, q), limit, func(f *mirror.Feed) bool { return !s.isPrivate(f) })
}

// Records implements mirror.Store.
func (s *publicStore) Records(ctx context.Context, feed string, ids []string) (map[string]*mirror.Record, error) {
	if s.hides(ctx, feed) {
		return map[string]*mirror.Record{}, nil
	}
	return s.Indexer.Records(ctx, feed, ids)
}

// Document implements mirror.Store.
func (s *publicStore) Document(ctx context.Context, feed, url string) (*mirror.Document, error) {
	if s.hides(ctx, feed) {
		return nil, mirror.ErrNotFound
	}
	return s.Indexer.Document(ctx, feed, url)
}

// Documents implements mirror.Store.
func (s *publicStore) Documents(ctx context.Context, feed string) iter.Seq2[*mirror.Document, error] {
	if s.hides(ctx, feed) {
		return nothing[*mirror.Document]
	}
	return s.Indexer.Documents(ctx, feed)
}

// Versions implements mirror.Store.
func (s *publicStore) Versions(ctx context.Context, feed, id string) iter.Seq2[*mirror.Version, error] {
	if s.hides(ctx, feed) {
		return nothing[*mirror.Version]
	}
	return s.Indexer.Versions(ctx, feed, id)
}

// Entries implements mirror.Store.
func (s *publicStore) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	if q.Feed != "" {
		if s.hides(ctx, q.Feed) {
			return nothing[*mirror.Record]
		}
		return s.Indexer.Entries(ctx, q)
	}
	limit, hidden := q.Limit, map[string]bool{}
	q.Limit = 0 // the number of hidden entries is not known
	return visible(s.Indexer.Entries(ctx, q), limit, func(r *mirror.Record) bool {
		hides, ok := hidden[r.Feed]
		if !ok {
			hides = s.hides(ctx, r.Feed)
			hidden[r.Feed] = hides
		}
		return !hides
	})
}

// Months implements mirror.Calendar.
func (s *publicStore) Months(ctx context.Context, q mirror.Query) ([]mirror.Month, error) {
	if s.hides(ctx, q.Feed) {
		return nil, nil
	}
	return s.Calendar.Months(ctx, q)
}

// Commit implements mirror.Store: a feed that is not shown cannot be added again.
func (s *publicStore) Commit(ctx context.Context, c *mirror.Change) error {
	if s.isPrivate(c.Feed) {
		return mirror.ErrConflict
	}
	return s.Indexer.Commit(ctx, c)
}

// Remove implements mirror.Store.
func (s *publicStore) Remove(ctx context.Context, url string) error {
	if s.hides(ctx, url) {
		return mirror.ErrNotFound
	}
	return s.Indexer.Remove(ctx, url)
}

func nothing[T any](func(T, error) bool) {}

// visible yields what may be seen of a sequence, up to a limit; zero: all.
func visible[T any](of iter.Seq2[T, error], limit int, isVisible func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for value, err := range of {
			if err == nil && !isVisible(value) {
				continue
			}
			if !yield(value, err) || err != nil {
				return
			}
			if n++; n == limit {
				return
			}
		}
	}
}

// A dividedOutput keeps what is published of private feeds apart, so that a server
// whose reading needs no token never has it.
type dividedOutput struct {
	publish.Output                // of the others
	private        publish.Output // nil: nothing is there
	keys           *keyring
}

// of returns the part that a name belongs to. Names begin with a directory for the
// server's address and the short name of the feed.
func (d *dividedOutput) of(op, name string) (publish.Output, error) {
	_, rest, _ := strings.Cut(name, "/")
	short, _, _ := strings.Cut(rest, "/")
	private, err := d.keys.private()
	switch {
	case err != nil:
		return nil, err
	case !hasShort(private, short):
		return d.Output, nil
	case d.private == nil:
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return d.private, nil
}

// hasShort reports whether a name is the short name of one of the feeds, or was at
// first: the beginning of it.
func hasShort(feeds map[string]http.Header, short string) bool {
	for feed := range feeds {
		if short != "" && strings.HasPrefix(web.ShortName(feed), short) {
			return true
		}
	}
	return false
}

// Open implements fs.FS.
func (d *dividedOutput) Open(name string) (fs.File, error) {
	out, err := d.of("open", name)
	if err != nil {
		return nil, err
	}
	return out.Open(name)
}

// Put implements publish.Output.
func (d *dividedOutput) Put(name string, data []byte) error {
	out, err := d.of("put", name)
	if err != nil {
		return err
	}
	return out.Put(name, data)
}

// Remove implements publish.Output.
func (d *dividedOutput) Remove(name string) error {
	out, err := d.of("remove", name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return out.Remove(name)
}

// Lock implements publish.Output.
func (d *dividedOutput) Lock() (unlock func() error, err error) {
	first, err := d.Output.Lock()
	if err != nil || d.private == nil {
		return first, err
	}
	second, err := d.private.Lock()
	if err != nil {
		return nil, errors.Join(err, first())
	}
	return func() error { return errors.Join(second(), first()) }, nil
}

// output returns where the history server keeps what it publishes again.
func (c *serveCommand) output(keys *keyring) (publish.Output, error) {
	out := &dividedOutput{Output: publish.Dir{Path: c.publishedDir()}, keys: keys}
	if c.Private {
		dir := c.publishedDir() + ".private"
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		out.private = publish.Dir{Path: dir}
	}
	return out, nil
}
