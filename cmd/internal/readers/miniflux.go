package readers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
)

// A Miniflux is an instance of the feed reader with one of its users. Only the URL and the
// credentials must be set.
type Miniflux struct{ Server }

// NewMiniflux returns the instance at an address such as https://reader.example.org/. A
// bearer token in the header is an API key, created in the reader's settings.
func NewMiniflux(s Server) *Miniflux {
	if token, ok := strings.CutPrefix(s.Header.Get("Authorization"), "Bearer "); ok && token != "" {
		s.Header = s.Header.Clone()
		s.Header.Del("Authorization")
		s.Header.Set("X-Auth-Token", token)
	}
	return &Miniflux{s}
}

// String returns the address. It does not reveal the credentials.
func (m *Miniflux) String() string { return "Miniflux at " + m.URL }

// GoString returns the same as String.
func (m *Miniflux) GoString() string { return m.String() }

// A ReaderFeed is a subscription of the user.
type ReaderFeed struct {
	ID      int64  `json:"id"`       // the reader's number of the feed
	FeedURL string `json:"feed_url"` // the URL the reader polls
	Title   string `json:"title"`

	Category struct{ Title string } `json:"category"`
}

// A minifluxEntry is an entry in the reader.
type minifluxEntry struct {
	ID         int64     `json:"id"`
	Hash       string    `json:"hash"`
	URL        string    `json:"url"`
	Title      string    `json:"title"`
	Content    string    `json:"content"`
	Author     string    `json:"author"`
	Published  time.Time `json:"published_at"`
	Tags       []string  `json:"tags"`
	Enclosures []struct {
		URL  string `json:"url"`
		Type string `json:"mime_type"`
		Size int64  `json:"size"`
	} `json:"enclosures"`
}

// kept returns the entry. Miniflux keeps a hash of its id.
func (e *minifluxEntry) kept() *mirror.KeptEntry {
	k := &mirror.KeptEntry{Hash: e.Hash, Draft: compose.Draft{
		Title: plainText(e.Title), Content: htmlText(e.Content), Published: e.Published.UTC(),
		Links: alternate(e.URL), Authors: authors(e.Author), Categories: categories(e.Tags),
	}}
	for _, file := range e.Enclosures {
		length := ""
		if file.Size > 0 {
			length = strconv.FormatInt(file.Size, 10)
		}
		k.Links = enclosure(k.Links, file.URL, file.Type, length)
	}
	return k
}

// readMiniflux takes the entries of all wanted feeds, feed by feed, oldest first. The feeds are
// read in the order of their numbers: the reader's own may differ each time, so it does not
// tell which were read before a mark, which has the numbers of a feed and an entry.
func readMiniflux(ctx context.Context, s *Source, server *Server, mark string, yield func(Item) error) error {
	m := NewMiniflux(*server)
	feeds, err := m.Feeds(ctx)
	if err != nil {
		return err
	}
	var from, after int64
	_, _ = fmt.Sscan(mark, &from, &after) // "" leaves both zero
	slices.SortFunc(feeds, func(a, b ReaderFeed) int { return cmp.Compare(a.ID, b.ID) })
	for _, f := range feeds {
		if f.ID < from || !s.Wants(f.FeedURL) {
			continue
		}
		if f.ID > from {
			after = 0
		}
		found := Item{Feed: f.FeedURL, Title: f.Title}
		subscription := found
		if f.Category.Title != "" && f.Category.Title != "All" { // the reader's own name for none
			subscription.Folders = [][]string{{f.Category.Title}}
		}
		if err := yield(subscription); err != nil {
			return err
		}
		for e, err := range m.entries(ctx, f.ID, after) {
			if err != nil {
				return err
			}
			found.Entry, found.Mark = e.kept(), fmt.Sprint(f.ID, " ", e.ID)
			if err := yield(found); err != nil {
				return err
			}
		}
	}
	return nil
}

// A minifluxDraft is an entry to import.
type minifluxDraft struct {
	URL         string   `json:"url"`
	Title       string   `json:"title,omitempty"`
	Content     string   `json:"content,omitempty"`
	Author      string   `json:"author,omitempty"`
	PublishedAt int64    `json:"published_at,omitempty"` // in Unix seconds, above zero
	Status      string   `json:"status"`
	Starred     bool     `json:"starred,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	ExternalID  string   `json:"external_id"`
}

// miniflux returns the article in Miniflux's form. Miniflux
// cannot import enclosures, and considers entries from before 1970 to be new.
func (a *article) miniflux() *minifluxDraft {
	return &minifluxDraft{
		URL: a.url, Title: a.title, Content: a.html + a.enclosed(), Author: a.author,
		PublishedAt: max(a.at.Unix(), 1), Tags: a.tags, ExternalID: a.id,
	}
}

// call sends a request to the reader.
func (m *Miniflux) call(ctx context.Context, method, path string, query url.Values, body, answer any) (callResult, error) {
	base, err := m.base()
	if err != nil {
		return callResult{}, err
	}
	s := m.Server
	s.URL = base
	return s.Call(ctx, method, path, query, body, answer)
}

// base returns the URL that all addresses of the API begin with.
func (m *Miniflux) base() (string, error) {
	u, err := url.Parse(m.URL)
	switch {
	case err != nil:
		return "", errors.New("the reader's address is not a URL")
	case u.User != nil:
		return "", errors.New("the reader's address contains a user: give credentials separately")
	case !isWeb(m.URL) || u.Host == "":
		return "", fmt.Errorf("%s is not the address of a reader: it begins with https:// or http://", m.URL)
	}
	u.RawQuery, u.Fragment = "", ""
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")+"/v1", ""
	return u.String(), nil
}

// isAboutEntry reports whether the reader refuses only this entry, or a proxy
// in front of it does because the entry is too large.
func isAboutEntry(e *ServerError) bool {
	switch e.Status {
	case http.StatusBadRequest:
		return !strings.Contains(e.Message, "feed does not exist") && !strings.Contains(e.Message, "invalid feed ID")
	case http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// isDeleted reports whether a 400 means the entry was deleted in the reader.
func isDeleted(e *ServerError) bool {
	return e.Status == http.StatusBadRequest && strings.Contains(e.Message, "tombstone")
}

// ErrOld says a Miniflux is older than 2.2.16, and cannot import entries.
var ErrOld = errors.New("this Miniflux cannot import entries: version 2.2.16 or newer is required")

// Check asks the reader about itself: whether the credentials are valid, and
// whether it can import entries (ErrOld).
func (m *Miniflux) Check(ctx context.Context) error {
	var answer struct{ Version string }
	if _, err := m.call(ctx, http.MethodGet, "version", nil, nil, &answer); err != nil {
		return err
	}
	if isOld(answer.Version) {
		return fmt.Errorf("%w; it is %s", ErrOld, answer.Version)
	}
	return nil
}

// isOld reports whether a version is older than 2.2.16. A version without a number is a
// development version, and new.
func isOld(version string) bool {
	var have [3]int
	for i, part := range strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3) {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false
		}
		have[i] = n
	}
	for i, least := range [...]int{2, 2, 16} {
		if have[i] != least {
			return have[i] < least
		}
	}
	return false
}

// Feeds returns the subscriptions of the user.
func (m *Miniflux) Feeds(ctx context.Context) (feeds []ReaderFeed, err error) {
	_, err = m.call(ctx, http.MethodGet, "feeds", nil, nil, &feeds)
	return feeds, err
}

// entries yields the entries of a feed after one of them, except those deleted in the reader.
func (m *Miniflux) entries(ctx context.Context, feed, after int64) iter.Seq2[*minifluxEntry, error] {
	return func(yield func(*minifluxEntry, error) bool) {
		for more := true; more; {
			list, err := m.page(ctx, feed, after)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range list {
				if after = e.ID; !yield(e, nil) {
					return
				}
			}
			more = len(list) == atOnce
		}
	}
}

// page returns the next entries of a feed after one of them.
func (m *Miniflux) page(ctx context.Context, feed, after int64) ([]*minifluxEntry, error) {
	query := url.Values{"order": {"id"}, "direction": {"asc"}, "limit": {strconv.Itoa(atOnce)}}
	if after > 0 {
		query.Set("after_entry_id", strconv.FormatInt(after, 10))
	}
	var answer struct{ Entries []*minifluxEntry }
	if _, err := m.call(ctx, http.MethodGet, fmt.Sprintf("feeds/%d/entries", feed), query, nil, &answer); err != nil {
		return nil, err
	}
	for _, e := range answer.Entries {
		if e.ID <= after {
			return nil, fmt.Errorf("%s: the entries of feed %d are not in order: Miniflux 2.0.49 or newer is needed", m.URL, feed)
		}
		after = e.ID
	}
	return answer.Entries, nil
}

// importEntry imports an entry not listed by the reader. Repeating it has no
// effect.
func (m *Miniflux) importEntry(ctx context.Context, feed int64, entry *minifluxDraft) (Outcome, error) {
	var answer struct{ ID int64 }
	path := fmt.Sprintf("feeds/%d/entries/import", feed)
	got, err := m.call(ctx, http.MethodPost, path, nil, entry, &answer)
	refusal, ok := errors.AsType[*ServerError](err)
	switch {
	case ok && isDeleted(refusal):
		return Removed, nil
	case ok && (refusal.Status == http.StatusNotFound || refusal.Status == http.StatusMethodNotAllowed):
		return Refused, fmt.Errorf("%w (%w)", ErrOld, err)
	case err != nil:
		return Refused, err
	case got.Status != http.StatusCreated && got.Tries == 1:
		return m.settle(ctx, answer.ID)
	}
	return Added, nil
}

// settle handles an entry the reader knew but did not list. Before 2.3, Miniflux keeps
// deleted entries for a while, without their text and address, and importing such an
// entry restores only the shell: so settle deletes it again.
func (m *Miniflux) settle(ctx context.Context, id int64) (Outcome, error) {
	var entry minifluxEntry
	if _, err := m.call(ctx, http.MethodGet, fmt.Sprintf("entries/%d", id), nil, nil, &entry); err != nil {
		return Refused, err
	}
	if entry.URL != "" {
		return Added, nil
	}
	if err := m.setStatus(ctx, []int64{id}, "removed"); err != nil {
		return Refused, err
	}
	return Removed, nil
}
