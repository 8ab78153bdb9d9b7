package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Names once had too few digits: with 48 bits, two feeds could have the same
// name.
const (
	nameDigits = 32
	oldDigits  = 12
)

// ShortName returns the name of a feed in this server's URLs: 128 bits of a
// digest of the feed's URL, so it never changes.
func ShortName(feed string) string {
	sum := sha256.Sum256([]byte(feed))
	return hex.EncodeToString(sum[:])[:nameDigits]
}

// oldName returns the short name that a feed once had.
func oldName(feed string) string { return ShortName(feed)[:oldDigits] }

// shared is recorded for a name that several feeds have. It is not a valid URL.
const shared = "\x00"

// note records both names of a feed.
func (d *directory) note(feed string) {
	for _, name := range []string{ShortName(feed), oldName(feed)} {
		if known, ok := d.urls[name]; ok && known != feed {
			d.urls[name] = shared
			continue
		}
		d.urls[name] = feed
	}
}

// collides reports whether another feed has one of the names of a feed.
func (d *directory) collides(feed string) bool {
	for _, name := range []string{ShortName(feed), oldName(feed)} {
		if known, ok := d.urls[name]; ok && known != feed {
			return true
		}
	}
	return false
}

// ownsOldName reports whether no other feed has the old name of a feed.
func (d *directory) ownsOldName(ctx context.Context, feed string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read.IsZero() {
		if err := d.look(ctx); err != nil {
			return false, err
		}
	}
	return !d.collides(feed), nil
}

// name returns the name under which a feed is published. What is published
// under the old name stays there, because the URIs of archives do not change
// (5005#10).
func (p *republisher) name(ctx context.Context, feed string) (string, error) {
	if name, ok := p.names.get(feed); ok {
		return name, nil
	}
	owns, err := p.s.feeds.ownsOldName(ctx, feed)
	if err != nil {
		return "", err
	}
	name := ShortName(feed)
	if old := oldName(feed); owns && (p.isPublished(old, feedhistory.Atom) || p.isPublished(old, feedhistory.RSS)) {
		name = old
	}
	p.names.put(feed, name)
	return name, nil
}

// A moved says that a page is at another path of this server.
type moved struct {
	path    string
	forGood bool
}

// Error says where it is.
func (m *moved) Error() string { return "moved to " + m.path }

// at returns a *moved error, unless the page was requested by this name.
func at(r *http.Request, name string) error {
	asked := r.PathValue("id")
	if asked == name {
		return nil
	}
	u := *r.URL
	u.Path, u.RawPath = "/feeds/"+name+strings.TrimPrefix(u.Path, "/feeds/"+asked), ""
	return &moved{u.RequestURI(), true}
}

// feedOf returns the feed whose page a request is for.
func (s *Server) feedOf(r *http.Request) (*mirror.Feed, error) {
	feed, err := s.feeds.feed(r.Context(), r.PathValue("id"))
	if err != nil {
		if other := s.feeds.successor(r.PathValue("id")); other != "" && errors.Is(err, mirror.ErrNotFound) && r.Method != http.MethodPost {
			return nil, &moved{"/feeds/" + other + "?said=leads", false}
		}
		return nil, err
	}
	return feed, at(r, ShortName(feed.URL))
}
