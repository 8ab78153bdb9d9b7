package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// A feedView is a feed as a page shows it.
type feedView struct {
	*mirror.Feed
	Name        string // the short name
	Waits, Runs bool   // whether it waits for a poll, or is being polled
	Newest      time.Time
	Oldest      time.Time // the month of the oldest entry
	Gaps        []gapView
	Missing     []gapView // the gaps except those still to be read
}

// Title returns the title of the feed.
func (v *feedView) Title() string { return titleOf(v.Feed) }

// titleOf returns the title of a feed for its reader: the reader's own one, or else the
// publisher's.
func titleOf(feed *mirror.Feed) string { return cmp.Or(feed.Named, republish.Title(feed)) }

// A folderView is a folder with a link to its feeds.
type folderView struct{ Says, Query string }

// InFolders returns the folders of the feed.
func (v *feedView) InFolders() (all []folderView) {
	for _, path := range v.Folders {
		all = append(all, folderView{strings.Join(path, " › "), listing{Folder: folderKey(path)}.page("")})
	}
	return all
}

// Busy reports whether the feed is about to change.
func (v *feedView) Busy() bool { return v.Waits || v.Runs }

// Fresh reports whether the feed has never been read.
func (v *feedView) Fresh() bool { return isFresh(v.Feed) }

func isFresh(f *mirror.Feed) bool { return f.Known.URL == "" && f.Entries == 0 }

// Due reports whether the feed will be polled as soon as its turn comes.
func (v *feedView) Due() bool { return !v.Gone && v.Alias == "" && !v.Next.After(time.Now()) }

// view returns a feed as a page shows it.
func (s *Server) view(ctx context.Context, feed *mirror.Feed) (*feedView, figures, error) {
	v := &feedView{Feed: feed, Name: republish.Name(feed.URL)}
	v.Waits, v.Runs = s.polls.Status(feed.URL)
	f, err := s.feeds.figuresOf(ctx, feed)
	v.Newest, v.Oldest = f.newest, f.oldest()
	v.Gaps = gapsOf(feed)
	v.Missing = slices.DeleteFunc(slices.Clone(v.Gaps), func(g gapView) bool { return g.Todo })
	return v, f, err
}

const feedsPerPage = 100

type feedsView struct {
	listing
	Feeds   []*feedView
	After   string // where the page begins; "" for the first page
	Next    string // where the next page begins; "" for none
	Found   int    // the number of selected feeds
	Said    string
	Address string    // the typed address
	Wrong   string    // why it was refused
	Known   *feedView // the feed it probably leads to; nil for none
	Insist  string    // the address to add although it is wrong; "" for none
}

// Many reports whether there are enough feeds for a search.
func (v *feedsView) Many() bool { return v.Asked() || v.After != "" || len(v.Feeds) > 5 }

// First and More return the queries of the first and of the next page.
func (v *feedsView) First() string { return v.page("") }
func (v *feedsView) More() string  { return v.page(v.Next) }

// refresh reports whether the page must be loaded again, because a feed is
// being read for the first time.
func (v *feedsView) refresh() bool {
	return slices.ContainsFunc(v.Feeds, func(f *feedView) bool { return f.Busy() && f.Fresh() })
}

// said are the messages after an action.
var said = map[string]string{
	"removed": "The feed has been removed, with everything that belonged to it.",
	"leads":   "The address that you added leads to this feed.",
}

// showFeeds shows the list of feeds.
func (s *Server) showFeeds(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	v := &feedsView{listing: listingOf(q), After: q.Get("after"), Said: said[q.Get("said")]}
	if message, ok := s.adder.outcomes.Get(q.Get("outcome")); ok {
		v.Said = message
	}
	return s.listFeeds(w, r, http.StatusOK, v)
}

func (s *Server) listFeeds(w http.ResponseWriter, r *http.Request, status int, v *feedsView) error {
	list := s.usualFeeds
	if v.Asked() {
		list = s.askedFeeds
	}
	if err := list(r.Context(), v); err != nil {
		return err
	}
	return s.render(w, r, status, "feeds", "Feeds", v)
}

// usualFeeds lists all feeds. If they do not fit on one page, it orders them by URL, so
// it need not read all of them.
func (s *Server) usualFeeds(ctx context.Context, v *feedsView) error {
	for feed, err := range s.store.Feeds(ctx, mirror.FeedQuery{After: v.After, Limit: feedsPerPage + 1}) {
		if err != nil {
			return err
		}
		if len(v.Feeds) == feedsPerPage {
			v.Next = v.Feeds[len(v.Feeds)-1].URL
			break
		}
		view, _, err := s.view(ctx, feed)
		if err != nil {
			return err
		}
		v.Feeds = append(v.Feeds, view)
	}
	if v.After == "" && v.Next == "" {
		slices.SortStableFunc(v.Feeds, func(a, b *feedView) int {
			return cmp.Compare(strings.ToLower(a.Title()), strings.ToLower(b.Title()))
		})
	}
	return nil
}

// askedFeeds lists the selected feeds.
func (s *Server) askedFeeds(ctx context.Context, v *feedsView) error {
	rows, err := s.rows(ctx, v.listing)
	if err != nil {
		return err
	}
	v.Found = len(rows)
	rows, v.Next = pageOf(rows, v.After)
	for _, row := range rows {
		feed, err := s.store.Feed(ctx, row.url)
		if errors.Is(err, mirror.ErrNotFound) {
			continue // it has just been removed
		}
		if err != nil {
			return err
		}
		view, _, err := s.view(ctx, feed)
		if err != nil {
			return err
		}
		v.Feeds = append(v.Feeds, view)
	}
	return nil
}
