package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// A republisher publishes mirrored feeds again when somebody requests them.
type republisher struct {
	s       *Server
	out     *divided
	handler *publish.Handler
	names   cache[string, string]      // the names of directories, by the URLs of feeds
	orders  cache[string, frozenOrder] // the orders of replays

	mu     sync.Mutex
	feeds  map[string]*sync.Mutex // by name; held while working on a feed
	users  int                    // the number of users who share the Output's lock
	unlock func() error
}

func newRepublisher(s *Server) *republisher {
	sum := sha256.Sum256([]byte(s.base()))
	base := hex.EncodeToString(sum[:4]) // URIs are permanent, and contain Base
	out := &divided{Output: below{orMemory(s.Output), base}, isPrivate: s.isPrivate}
	if s.Private {
		out.private = below{orMemory(s.PrivateOutput), base}
	}
	return &republisher{
		s: s, out: out, feeds: map[string]*sync.Mutex{},
		handler: &publish.Handler{FS: out, MaxAge: time.Minute, Logger: s.Logger},
	}
}

func orMemory(out publish.Output) publish.Output {
	if out == nil {
		return &publish.Memory{}
	}
	return out
}

// lock makes the caller the only one that works on a feed.
func (p *republisher) lock(name string) (unlock func()) {
	p.mu.Lock()
	m := p.feeds[name]
	if m == nil {
		m = &sync.Mutex{}
		p.feeds[name] = m
	}
	p.mu.Unlock()
	m.Lock()
	return m.Unlock
}

// share takes the Output's lock against other processes. Within this process,
// several feeds can be published at the same time.
func (p *republisher) share() (release func() error, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users == 0 {
		if p.unlock, err = p.out.Lock(); err != nil {
			return nil, err
		}
	}
	p.users++
	return func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.users--; p.users > 0 {
			return nil
		}
		return p.unlock()
	}, nil
}

// remove removes what is published of a feed under a name.
func (p *republisher) remove(feed, name string) error {
	defer p.lock(name)()
	defer p.names.drop(feed)
	for _, out := range p.out.parts() {
		if _, err := removeAll(out, name); err != nil {
			return err
		}
	}
	return nil
}

// serveIndex answers with the subscription document of a feed, up to date.
func (s *Server) serveIndex(w http.ResponseWriter, r *http.Request) error {
	format := formatOf(r)
	feed, name, err := s.toPublish(r)
	if err != nil {
		return err
	}
	if err := s.published.update(r.Context(), feed, name, format); err != nil {
		return err
	}
	if _, err := fs.Stat(s.published.out, name+"/"+indexName(format)); errors.Is(err, fs.ErrNotExist) {
		return s.serveEmpty(w, feed, name, format)
	}
	return s.serveArchive(w, r)
}

// serveEmpty answers for a feed that has no entry yet, because publication
// begins with the first entry.
func (s *Server) serveEmpty(w http.ResponseWriter, feed *mirror.Feed, name string, format feedhistory.Format) error {
	head, err := heading(feed, format, true)
	if err != nil {
		return err
	}
	d := feedhistory.NewSubscription(head, nil, s.base()+"feeds/"+name+"/"+indexName(format), "")
	d.Complete, d.Updated = feed.Verdict == feedhistory.Whole, feed.Polled.UTC().Truncate(time.Second)
	write := feedhistory.WriteAtom
	if format == feedhistory.RSS {
		write = feedhistory.WriteRSS
	}
	w.Header().Set("Content-Type", mediaTypeOf(format))
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Content-Security-Policy", documentPolicy)
	return write(w, d)
}

// documentPolicy is the policy for published documents: a browser that shows
// them must not run their markup.
const documentPolicy = "default-src 'none'; sandbox"

// toPublish returns the requested feed, if it can be published, and the name
// under which it is published.
func (s *Server) toPublish(r *http.Request) (feed *mirror.Feed, name string, err error) {
	if feed, err = s.feeds.feed(r.Context(), r.PathValue("id")); err != nil {
		return nil, "", err
	}
	if name, err = s.published.name(r.Context(), feed.URL); err != nil {
		return nil, "", err
	}
	if feed.Head == "" {
		return nil, "", errUnread
	}
	return feed, name, at(r, name)
}

// update brings what is published up to date. While the feed is being read for
// the first time, nothing is published, because archives must begin with the
// oldest entry.
func (p *republisher) update(ctx context.Context, feed *mirror.Feed, name string, format feedhistory.Format) error {
	if done, err := readRecord(below{p.out, name}, format); err == nil && done.Version == feed.Version {
		return nil
	}
	defer p.lock(name)()
	if _, runs := p.s.polls.State(feed.URL); runs {
		if p.isPublished(name, format) {
			return nil // show what was published last until the poll has ended
		}
		return &problem{http.StatusServiceUnavailable, "This feed is being read", "Try again later; its page shows the progress."}
	}
	feed, err := p.s.store.Feed(ctx, feed.URL)
	if err != nil {
		return err
	}
	publication, err := p.publication(feed, name, format)
	if err != nil {
		return err
	}
	// The update goes on even if the client has gone: the next request finds it
	// done, however long the history is.
	err = publication.update(context.WithoutCancel(ctx))
	switch {
	case errors.Is(err, publish.ErrLocked) && p.isPublished(name, format):
		return nil // show what was published last; another server is about to add to it
	case errors.Is(err, publish.ErrLocked):
		return &problem{http.StatusServiceUnavailable, "Another server is publishing", "Try again in a moment."}
	case err != nil:
		return fmt.Errorf("publishing %s: %w", feed.URL, err)
	}
	return nil
}

func (p *republisher) isPublished(name string, format feedhistory.Format) bool {
	_, err := readRecord(below{p.out, name}, format)
	return err == nil
}

// serveArchive answers with a published document.
func (s *Server) serveArchive(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Security-Policy", documentPolicy)
	http.StripPrefix("/feeds", s.published.handler).ServeHTTP(w, r)
	return nil
}
