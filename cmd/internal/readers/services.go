package readers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
)

// A feedbinEntry is an entry of Feedbin, which does not keep its id. Any text may be null.
type feedbinEntry struct {
	ID        int64     `json:"id"`
	Title     string    `json:"title"`
	URL       string    `json:"url"`
	Author    string    `json:"author"`
	Content   string    `json:"content"`
	Summary   string    `json:"summary"`
	Published time.Time `json:"published"`
	Enclosure struct {
		URL    string `json:"enclosure_url"`
		Type   string `json:"enclosure_type"`
		Length string `json:"enclosure_length"`
	} `json:"enclosure"`
}

// readFeedbin takes the entries of all wanted feeds by the API of Feedbin, version 2. Each
// entry missing from the list of the unread ones is read.
func readFeedbin(ctx context.Context, s *Source, server *Server, mark string, yield func(Item) error) error {
	if !strings.HasSuffix(strings.TrimSuffix(server.URL, "/"), "/v2") {
		server.URL = strings.TrimSuffix(server.URL, "/") + "/v2"
	}
	var subscriptions []struct {
		Feed  int64  `json:"feed_id"`
		Title string `json:"title"`
		URL   string `json:"feed_url"`
	}
	var tags []struct {
		Feed int64 `json:"feed_id"`
		Name string
	}
	var unread, starred []int64
	for path, answer := range map[string]any{"subscriptions": &subscriptions, "taggings": &tags, "unread_entries": &unread, "starred_entries": &starred} {
		if err := server.Get(ctx, path+".json", nil, answer); err != nil {
			return err
		}
	}
	slices.Sort(unread)
	slices.Sort(starred)
	folders := map[int64][][]string{}
	for _, tag := range tags {
		folders[tag.Feed] = append(folders[tag.Feed], folder(tag.Name, "")...)
	}
	var feeds []remoteFeed[int64]
	for _, f := range subscriptions {
		feeds = append(feeds, remoteFeed[int64]{id: f.Feed, Item: Item{Feed: f.URL, Title: f.Title, Folders: folders[f.Feed]}})
	}
	return readPages(s, mark, feeds, func(feed int64, page string) (items []Item, next string, err error) {
		var answer []feedbinEntry
		query := url.Values{"page": {cmp.Or(page, "1")}, "per_page": {strconv.Itoa(atOnce)}, "include_enclosure": {"true"}}
		err = server.Get(ctx, fmt.Sprintf("feeds/%d/entries.json", feed), query, &answer)
		if failed, ok := err.(*ServerError); ok && failed.Status == http.StatusNotFound && page != "" {
			return nil, "", nil // the page before was the last one
		}
		for _, e := range answer {
			_, isUnread := slices.BinarySearch(unread, e.ID)
			_, isStarred := slices.BinarySearch(starred, e.ID)
			items = append(items, Item{Entry: &mirror.KeptEntry{Draft: compose.Draft{
				Title: titleText(e.Title), Content: htmlText(cmp.Or(e.Content, e.Summary)), Published: e.Published.UTC(), Authors: authors(e.Author),
				Links: enclosure(alternate(e.URL), e.Enclosure.URL, e.Enclosure.Type, e.Enclosure.Length),
			}, Marks: marks(!isUnread, isStarred, time.Time{})}})
		}
		return items, nextPage(items, page, atOnce), err
	}, yield)
}

// nextPage returns the number of the page after one, which the last of its items gets as
// their mark; "" if the page has fewer items than others.
func nextPage(items []Item, page string, others int) string {
	if len(items) < others {
		return ""
	}
	n, _ := strconv.Atoi(cmp.Or(page, "1"))
	next := strconv.Itoa(n + 1)
	items[len(items)-1].Mark = next
	return next
}

// A newsblurStory is an entry of NewsBlur.
type newsblurStory struct {
	ID        string   `json:"id"` // the publisher's
	Feed      int64    `json:"story_feed_id"`
	Title     string   `json:"story_title"`
	URL       string   `json:"story_permalink"`
	Author    string   `json:"story_authors"`
	Content   string   `json:"story_content"`
	Tags      []string `json:"story_tags"`
	Time      Number   `json:"story_timestamp"`
	Read      int      `json:"read_status"`
	Starred   bool     `json:"starred"`
	StarredAt Number   `json:"starred_timestamp"`
	Labels    []string `json:"user_tags"`
}

// item returns the story as an entry of a feed; as a saved one if it is in their list.
func (n *newsblurStory) item(feed string, saved bool) Item {
	return Item{Feed: feed, Entry: &mirror.KeptEntry{Draft: compose.Draft{
		ID: n.ID, Title: titleText(n.Title), Content: htmlText(n.Content), Published: unixTime(int64(n.Time)),
		Authors: authors(n.Author), Categories: categories(n.Tags), Links: alternate(n.URL),
	}, Marks: marks(n.Read == 1 || saved, n.Starred || saved, unixTime(int64(n.StarredAt)), n.Labels...)}}
}

// readNewsBlur takes the stories of all wanted feeds by the API of NewsBlur, and then the saved
// ones, which their feeds may show no more. It logs in if the server's header has a user and a
// password.
func readNewsBlur(ctx context.Context, s *Source, server *Server, mark string, yield func(Item) error) error {
	if err := newsblurLogin(ctx, server); err != nil {
		return err
	}
	var answer struct {
		Feeds map[string]struct {
			ID      int64  `json:"id"`
			Title   string `json:"feed_title"`
			Address string `json:"feed_address"`
		} `json:"feeds"`
		Folders map[string][]int64 `json:"flat_folders"`
	}
	if err := server.Get(ctx, "reader/feeds", url.Values{"flat": {"true"}, "update_counts": {"false"}}, &answer); err != nil {
		return err
	}
	const saved = 1 << 62 // after each feed
	feeds, addresses := []remoteFeed[int64]{{id: saved}}, map[int64]string{}
	for _, f := range answer.Feeds {
		found := Item{Feed: f.Address, Title: f.Title}
		for name, inside := range answer.Folders {
			if slices.Contains(inside, f.ID) {
				found.Folders = append(found.Folders, folder(strings.TrimSpace(name), "")...)
			}
		}
		addresses[f.ID] = f.Address
		feeds = append(feeds, remoteFeed[int64]{id: f.ID, Item: found})
	}
	return readPages(s, mark, feeds, func(feed int64, page string) (items []Item, next string, err error) {
		path, query := fmt.Sprint("reader/feed/", feed), url.Values{"page": {cmp.Or(page, "1")}, "read_filter": {"all"}, "order": {"oldest"}, "include_hidden": {"true"}}
		if feed == saved {
			path = "reader/starred_stories"
		}
		var answer struct{ Stories []newsblurStory }
		err = server.Get(ctx, path, query, &answer)
		for _, story := range answer.Stories {
			items = append(items, story.item(addresses[story.Feed], feed == saved))
		}
		return items, nextPage(items, page, 1), err // no page but the one after the last is empty
	}, yield)
}

// newsblurLogin exchanges a user and a password for a cookie.
func newsblurLogin(ctx context.Context, s *Server) (err error) {
	user, password, ok := s.User()
	if !ok {
		return nil
	}
	s.Header = s.Header.Clone()
	s.Header.Del("Authorization")
	if s.cookies, err = cookiejar.New(nil); err != nil {
		return err
	}
	var answer struct{ Authenticated bool }
	_, err = s.Call(ctx, http.MethodPost, "api/login", nil, url.Values{"username": {user}, "password": {password}}, &answer)
	if err == nil && !answer.Authenticated {
		err = &ServerError{URL: strings.TrimSuffix(s.URL, "/") + "/api/login", Status: http.StatusForbidden, Login: s.Login}
	}
	return err
}
