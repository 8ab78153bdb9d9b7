package handover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// A handover through a history server leaves no trace in the reader: the
// subscription leads to the documents of the server for a moment, so the reader
// finds the entries by itself, with its own hashes, enclosures and all.

// The size of documents: Miniflux refuses those of more than 15 MB.
const mostAccepted = 14_000_000

// restoreTime bounds the requests for putting the subscription's address back.
const restoreTime = 2 * time.Minute

// through makes the reader read a feed's documents at a history server. It
// returns an error if the reader has not read all of them; it has read some,
// perhaps.
func (h *Handover) through(ctx context.Context, f *mirror.Feed, to ReaderFeed) (err error) {
	documents, err := h.documents(ctx, f)
	if err != nil {
		return err
	}
	before, err := h.ids(ctx, to.ID)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, h.restore(ctx, to, before))
	}()
	for _, document := range documents {
		if err := h.Reader.point(ctx, to.ID, document); err != nil {
			return err
		}
		if err := h.Reader.refresh(ctx, to.ID); err != nil {
			return fmt.Errorf("the reader cannot read %s: %w", document, err)
		}
	}
	return nil
}

// documents returns the addresses of the documents with a feed's entries.
func (h *Handover) documents(ctx context.Context, f *mirror.Feed) ([]string, error) {
	server := &republish.Handler{Store: h.Store, Base: h.Through, Private: true}
	plan, err := server.Slices(ctx, f, mostAccepted)
	if err != nil {
		return nil, err
	}
	at := strings.TrimSuffix(h.Through, "/") + "/feeds/" + republish.Name(f.URL)
	if plan.Bytes <= mostAccepted {
		return []string{at + "/complete.atom"}, nil
	}
	var all []string
	for _, slice := range plan.Slices {
		all = append(all, at+"/slice.atom?"+slice.Query())
	}
	return all, nil
}

// restore puts the address of a subscription back, and gives the new
// entries the asked status, even if the context has ended.
func (h *Handover) restore(ctx context.Context, to ReaderFeed, before map[int64]bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
	defer cancel()
	if err := h.Reader.point(ctx, to.ID, to.FeedURL); err != nil {
		return fmt.Errorf("the subscription's address could not be put back: set it to %s in the reader: %w", to.FeedURL, err)
	}
	if !h.Gone {
		_ = h.Reader.refresh(ctx, to.ID) // the reader does this by itself, later
	}
	after, err := h.ids(ctx, to.ID)
	if err != nil {
		return err
	}
	var fresh []int64
	for id := range after {
		if !before[id] {
			fresh = append(fresh, id)
		}
	}
	slices.Sort(fresh)
	for ids := range slices.Chunk(fresh, entriesAtOnce) {
		if h.Status != Unread {
			if err := h.Reader.setStatus(ctx, ids, Read); err != nil {
				return err
			}
		}
		if !h.Starred {
			continue
		}
		for _, id := range ids {
			if err := h.Reader.star(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// ids returns the numbers of the entries the reader has of a feed.
func (h *Handover) ids(ctx context.Context, feed int64) (map[int64]bool, error) {
	ids := map[int64]bool{}
	for e, err := range h.Reader.entries(ctx, feed) {
		if err != nil {
			return nil, err
		}
		ids[e.ID] = true
	}
	return ids, nil
}

// AtServer returns the subscription of a feed whose address was not put back,
// because a handover through a server was killed. Its FeedURL is the feed's own.
func AtServer(f *mirror.Feed, server string, feeds []ReaderFeed) (ReaderFeed, bool) {
	at := strings.TrimSuffix(server, "/") + "/feeds/" + republish.Name(f.URL) + "/"
	for _, feed := range feeds {
		if server != "" && strings.HasPrefix(feed.FeedURL, at) {
			if feed.FeedURL = f.URL; f.Address != "" {
				feed.FeedURL = f.Address
			}
			return feed, true
		}
	}
	return ReaderFeed{}, false
}

// point changes the address of a subscription.
func (m *Miniflux) point(ctx context.Context, feed int64, url string) error {
	_, err := m.call(ctx, http.MethodPut, fmt.Sprintf("feeds/%d", feed), nil, map[string]string{"feed_url": url}, nil)
	return err
}

// refresh makes the reader poll a feed now.
func (m *Miniflux) refresh(ctx context.Context, feed int64) error {
	path := fmt.Sprintf("feeds/%d", feed)
	if _, err := m.call(ctx, http.MethodPut, path+"/refresh", nil, nil, nil); err != nil {
		return err
	}
	var state struct {
		Errors  int    `json:"parsing_error_count"`
		Message string `json:"parsing_error_message"`
	}
	if _, err := m.call(ctx, http.MethodGet, path, nil, nil, &state); err != nil {
		return err
	}
	if state.Errors > 0 && state.Message != "" {
		return errors.New(state.Message)
	}
	return nil
}

func (m *Miniflux) setStatus(ctx context.Context, ids []int64, status string) error {
	_, err := m.call(ctx, http.MethodPut, "entries", nil, map[string]any{"entry_ids": ids, "status": status}, nil)
	return err
}

// star stars an entry, unless it is starred.
func (m *Miniflux) star(ctx context.Context, id int64) error {
	path := fmt.Sprintf("entries/%d", id)
	var entry struct{ Starred bool }
	if _, err := m.call(ctx, http.MethodGet, path, nil, nil, &entry); err != nil || entry.Starred {
		return err
	}
	_, err := m.call(ctx, http.MethodPut, path+"/bookmark", nil, nil, nil)
	return err
}
