package republish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Names once had too few digits: with 48 bits, two feeds could have the same
// name.
const (
	nameDigits = 32
	oldDigits  = 12
)

// Name returns the name of a feed in addresses: 128 bits of a digest of the
// feed's URL, so it never changes.
func Name(feed string) string {
	sum := sha256.Sum256([]byte(feed))
	return hex.EncodeToString(sum[:])[:nameDigits]
}

// oldName returns the name a feed once had.
func oldName(feed string) string { return Name(feed)[:oldDigits] }

// shared stands for the URL of a feed whose name several feeds have. It is not a
// valid URL.
const shared = "\x00"

// ErrNameTaken says another feed has one of the names of a feed.
var ErrNameTaken = &Error{
	http.StatusConflict, "another feed has this feed’s name",
	"The names of feeds are derived from their addresses, and these two happen to be the same. Add the feed by a different address.",
}

// A directory finds the feeds of a Store by their names.
type directory struct {
	store mirror.Store

	mu   sync.Mutex
	urls map[string]string // by name, as far as known
	read time.Time         // when all feeds were last read
}

// lookAgain is the minimum time between two reads of all feeds because of
// unknown names.
const lookAgain = time.Second

// feed returns the feed with a name. The error matches mirror.ErrNotFound if
// there is none, or more than one.
func (d *directory) feed(ctx context.Context, name string) (*mirror.Feed, error) {
	url, err := d.url(ctx, name)
	if err != nil {
		return nil, err
	}
	feed, err := d.store.Feed(ctx, url)
	if errors.Is(err, mirror.ErrNotFound) {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.urls, name)
	}
	return feed, err
}

// url returns the URL of the feed with a name.
func (d *directory) url(ctx context.Context, name string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.urls[name] == "" && time.Since(d.read) > lookAgain {
		if err := d.look(ctx); err != nil {
			return "", err
		}
	}
	url, ok := d.urls[name]
	if !ok || url == shared {
		return "", fmt.Errorf("feed %q: %w", name, mirror.ErrNotFound)
	}
	return url, nil
}

// expire makes the next unknown name read all feeds.
func (d *directory) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read = time.Time{}
}

// look reads all feeds.
func (d *directory) look(ctx context.Context) error {
	d.read, d.urls = time.Now(), map[string]string{}
	for feed, err := range d.store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			d.read = time.Time{}
			return err
		}
		d.note(feed.URL)
	}
	return nil
}

// add records a feed that all feeds may have been read without.
func (d *directory) add(feed string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.urls != nil { // otherwise all feeds are still to be read
		d.note(feed)
	}
}

// note records both names of a feed.
func (d *directory) note(feed string) {
	for _, name := range []string{Name(feed), oldName(feed)} {
		if known, ok := d.urls[name]; ok && known != feed {
			d.urls[name] = shared
			continue
		}
		d.urls[name] = feed
	}
}

// owns reports whether no other feed has a name of a feed.
func (d *directory) owns(ctx context.Context, feed string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read.IsZero() {
		if err := d.look(ctx); err != nil {
			return false, err
		}
	}
	for _, name := range []string{Name(feed), oldName(feed)} {
		if known, ok := d.urls[name]; ok && known != feed {
			return false, nil
		}
	}
	return true, nil
}

// Feed returns the feed with a name. The error matches mirror.ErrNotFound if
// there is none, or if several feeds share the name. The error may be the context's.
func (h *Handler) Feed(ctx context.Context, name string) (*mirror.Feed, error) {
	if err := h.ready(); err != nil {
		return nil, err
	}
	return h.names.feed(ctx, name)
}

// Reserve prepares for a feed about to join the Store. The error
// is ErrNameTaken if another feed has one of its names. The error may be the context's.
func (h *Handler) Reserve(ctx context.Context, feed string) error {
	if err := h.ready(); err != nil {
		return err
	}
	owns, err := h.names.owns(ctx, feed)
	if err != nil {
		return err
	}
	if !owns {
		return ErrNameTaken
	}
	h.names.add(feed)
	return nil
}

// Name returns the name under which a feed is published: its Name, or a shorter
// one under which something was published before names became longer, because
// the URLs of archives do not change (5005#10). The error may be the context's.
func (h *Handler) Name(ctx context.Context, feed string) (string, error) {
	if err := h.ready(); err != nil {
		return "", err
	}
	if name, ok := h.chains.names.Get(feed); ok {
		return name, nil
	}
	owns, err := h.names.owns(ctx, feed)
	if err != nil {
		return "", err
	}
	h.chains.all.add(feed)
	name := Name(feed)
	if old := oldName(feed); owns && (h.chains.isPublished(old, feedhistory.Atom) || h.chains.isPublished(old, feedhistory.RSS)) {
		name = old
	}
	h.chains.names.Put(feed, name)
	return name, nil
}

// Remove removes a feed from the Store, and everything published of it.
// The error may be the context's.
func (h *Handler) Remove(ctx context.Context, feed string) error {
	name, err := h.Name(ctx, feed)
	if err != nil {
		return err
	}
	if err := h.store.Remove(ctx, feed); err != nil && !errors.Is(err, mirror.ErrNotFound) {
		return err
	}
	return h.chains.remove(ctx, feed, name)
}
