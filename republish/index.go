package republish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// chains publishes feeds as archived feeds when somebody requests them.
type chains struct {
	store mirror.Store
	busy  func(feed string) bool
	feeds string // the URL of the directory of all feeds, with a final slash
	size  int    // entries per archive; zero means 100
	log   *slog.Logger

	all     *directory // the feeds of the store, private ones included
	out     *dividedOutput
	handler http.Handler                  // serves out
	names   publish.Cache[string, string] // the names of directories, by the URLs of feeds
	locks   locks

	mu     sync.Mutex
	users  int // number of users who share the Output's lock
	unlock func() error
}

func newChains(h *Handler) *chains {
	sum := sha256.Sum256([]byte(h.base()))
	base := hex.EncodeToString(sum[:4]) // URLs are permanent, and contain Base
	all := &directory{store: h.Store}
	out := &dividedOutput{Output: subOutput{orMemory(h.Output), base}, isPrivate: all.isPrivate}
	if h.Private {
		out.private = subOutput{orMemory(h.PrivateOutput), base}
	}
	c := &chains{
		store: h.store, busy: h.Busy, feeds: h.base() + "feeds/", size: h.Size, log: h.Logger, all: all, out: out,
		handler: http.StripPrefix("/feeds", &publish.Handler{FS: out, MaxAge: time.Minute, Logger: h.Logger}),
	}
	if c.busy == nil {
		c.busy = func(string) bool { return false }
	}
	return c
}

func orMemory(out publish.Output) publish.Output {
	if out == nil {
		return &publish.MemoryOutput{}
	}
	return out
}

// isPrivate reports whether the feed with a name is private. A name that is to be written
// may be younger than the last look at all feeds, so they are read again for it. The error
// of an unknown name matches mirror.ErrNotFound: such a name may be that of a private feed.
func (d *directory) isPrivate(name string, written bool) (bool, error) {
	feed, err := d.feed(context.Background(), name)
	if written && errors.Is(err, mirror.ErrNotFound) {
		d.expire()
		feed, err = d.feed(context.Background(), name)
	}
	return err == nil && feed.Private, err
}

// locks has a lock for each name.
type locks struct {
	mu  sync.Mutex
	all map[string]*sync.Mutex
}

// lock makes the caller the only one with the lock of a name.
func (l *locks) lock(name string) (unlock func()) {
	l.mu.Lock()
	m := l.all[name]
	if m == nil {
		if m = (&sync.Mutex{}); l.all == nil {
			l.all = map[string]*sync.Mutex{}
		}
		l.all[name] = m
	}
	l.mu.Unlock()
	m.Lock()
	return m.Unlock
}

// share takes the Output's lock against other processes. Within this process,
// several feeds can be published at the same time.
func (c *chains) share(ctx context.Context) (release func() error, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users == 0 {
		if c.unlock, err = c.out.Lock(ctx); err != nil {
			return nil, err
		}
	}
	c.users++
	return func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.users--; c.users > 0 {
			return nil
		}
		return c.unlock()
	}, nil
}

// remove removes everything published of a feed under a name.
func (c *chains) remove(ctx context.Context, feed, name string) error {
	defer c.locks.lock(name)()
	defer c.names.Drop(feed)
	for _, out := range c.out.parts() {
		if _, err := removeAll(ctx, out, name); err != nil {
			return err
		}
	}
	return nil
}

// serveIndex answers with the subscription document of a feed, up to date.
func (h *Handler) serveIndex(w http.ResponseWriter, r *http.Request, asked request) error {
	if err := h.chains.update(r.Context(), asked.feed, asked.name, asked.format); err != nil {
		return err
	}
	if _, err := fs.Stat(h.chains.out, asked.name+"/"+indexName(asked.format)); errors.Is(err, fs.ErrNotExist) {
		return h.serveEmpty(w, r, asked)
	}
	h.serveArchive(w, r)
	return nil
}

// serveEmpty answers for a feed without entries, because publication begins with
// the first entry.
func (h *Handler) serveEmpty(w http.ResponseWriter, r *http.Request, asked request) error {
	head, err := heading(asked.feed, asked.format, coverageOf(asked.feed, loss{}))
	if err != nil {
		return err
	}
	d := feedhistory.NewSubscription(head, nil, h.chains.feeds+asked.name+"/"+indexName(asked.format), "")
	d.Complete, d.Updated = asked.feed.Verdict == feedhistory.Whole, asked.feed.Polled.UTC().Truncate(time.Second)
	var b bytes.Buffer
	if err := write(&b, d, asked.format); err != nil {
		return err
	}
	return serveBytes(w, r, b.Bytes(), asked.format, "no-cache")
}

// write writes a document in a format.
func write(b *bytes.Buffer, d *feedhistory.Document, format feedhistory.Format) error {
	if format == feedhistory.RSS {
		return feedhistory.WriteRSS(b, d)
	}
	return feedhistory.WriteAtom(b, d)
}

// update brings the published documents of a feed up to date. While the feed is
// being read for the first time, nothing is published, because archives must
// begin with the oldest entry.
func (c *chains) update(ctx context.Context, feed *mirror.Feed, name string, format feedhistory.Format) error {
	if done, err := readRecord(subOutput{c.out, name}, format); err == nil && done.Version == feed.Commits {
		return nil
	}
	defer c.locks.lock(name)()
	if c.busy(feed.URL) {
		if c.isPublished(name, format) {
			return nil // until the poll has ended
		}
		return &Error{http.StatusServiceUnavailable, "this feed is being read", "Try again later; its page shows the progress."}
	}
	feed, err := c.store.Feed(ctx, feed.URL)
	if err != nil {
		return err
	}
	p, err := c.publication(feed, name, format)
	if err != nil {
		return err
	}
	// The update goes on even if the client has gone: the next request finds it
	// done, however long the history is.
	err = p.update(context.WithoutCancel(ctx))
	switch {
	case errors.Is(err, publish.ErrLocked) && c.isPublished(name, format):
		return nil // another server is about to add to it
	case errors.Is(err, publish.ErrLocked):
		return &Error{http.StatusServiceUnavailable, "another server is publishing", "Try again in a moment."}
	case err != nil:
		return fmt.Errorf("publishing %s: %w", feed.URL, err)
	}
	return nil
}

func (c *chains) isPublished(name string, format feedhistory.Format) bool {
	_, err := readRecord(subOutput{c.out, name}, format)
	return err == nil
}

// serveArchive answers with a published document.
func (h *Handler) serveArchive(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", documentPolicy)
	h.chains.handler.ServeHTTP(w, r)
}
