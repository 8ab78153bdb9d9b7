package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/readerapi"
)

// A Miniflux is an instance of the feed reader, version 2.2.16 or newer, with one of
// its users. Only URL and the credentials must be set.
type Miniflux struct {
	// URL is the address of the instance, such as https://reader.example.org/.
	URL string

	// Token is an API key of the user, created in the reader's settings. If it
	// is "", User and Password are used.
	Token          string
	User, Password string

	HTTP      *http.Client      // its Transport makes the requests; nil means one without a proxy
	UserAgent string            // "" means the library's
	Timeout   time.Duration     // for one request with its answer; zero means 60 s
	Retry     feedhistory.Retry // after a network error, a server error, or 429

	transport http.RoundTripper // used if HTTP has none
}

// String returns the address. It does not reveal the credentials.
func (m *Miniflux) String() string { return "Miniflux at " + m.URL }

// GoString returns the same as String.
func (m *Miniflux) GoString() string { return m.String() }

// A ReaderFeed is a subscription of the user.
type ReaderFeed struct {
	ID      int64  `json:"id"`       // the reader's number of the feed
	FeedURL string `json:"feed_url"` // the URL the reader polls
	SiteURL string `json:"site_url"` // the URL of the website
	Title   string `json:"title"`
}

// A readerEntry is an entry in the reader.
type readerEntry struct {
	ID          int64     `json:"id"`
	Hash        string    `json:"hash"`
	URL         string    `json:"url"`
	Title       string    `json:"title"`
	PublishedAt time.Time `json:"published_at"`
}

// A minifluxEntry is an entry to import.
type minifluxEntry struct {
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
func (a *article) miniflux() *minifluxEntry {
	return &minifluxEntry{
		URL: a.url, Title: a.title, Content: a.html + a.enclosed(), Author: a.author,
		PublishedAt: max(a.at.Unix(), 1), Tags: a.tags, ExternalID: a.id,
	}
}

// call sends a request to the reader.
func (m *Miniflux) call(ctx context.Context, method, path string, query url.Values, body, answer any) (readerapi.Outcome, error) {
	base, err := m.base()
	if err != nil {
		return readerapi.Outcome{}, err
	}
	s := readerapi.Server{
		URL: base, Header: http.Header{"Accept": {"application/json"}}, Transport: m.client().Transport,
		UserAgent: m.UserAgent, Timeout: cmp.Or(m.Timeout, time.Minute), Retry: m.Retry, Login: "--token-env, --token-file or --user",
	}
	if m.Token != "" {
		s.Header.Set("X-Auth-Token", m.Token)
	} else {
		s.SetUser(m.User, m.Password)
	}
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

// client returns a client whose connections the calls use.
func (m *Miniflux) client() *http.Client {
	if m.HTTP != nil && m.HTTP.Transport != nil {
		return &http.Client{Transport: m.HTTP.Transport}
	}
	if m.transport == nil {
		m.transport = &http.Transport{ForceAttemptHTTP2: true}
	}
	return &http.Client{Transport: m.transport}
}

// CloseIdle closes the unused connections.
func (m *Miniflux) CloseIdle() { m.client().CloseIdleConnections() }

// isAboutEntry reports whether the reader refuses only this entry, or a proxy
// in front of it does because the entry is too large.
func isAboutEntry(e *readerapi.Error) bool {
	switch e.Status {
	case http.StatusBadRequest:
		return !strings.Contains(e.Message, "feed does not exist") && !strings.Contains(e.Message, "invalid feed ID")
	case http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// isDeleted reports whether a 400 means the entry was deleted in the reader.
func isDeleted(e *readerapi.Error) bool {
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

// entriesAtOnce is the number of entries in one answer; they come with their
// content.
const entriesAtOnce = 100

// entries yields all entries of a feed except those deleted in the reader.
func (m *Miniflux) entries(ctx context.Context, feed int64) iter.Seq2[readerEntry, error] {
	return func(yield func(readerEntry, error) bool) {
		for after := int64(0); ; {
			query := url.Values{
				"order": {"id"}, "direction": {"asc"}, "limit": {strconv.Itoa(entriesAtOnce)},
			}
			if after > 0 {
				query.Set("after_entry_id", strconv.FormatInt(after, 10))
			}
			var answer struct{ Entries []readerEntry }
			path := fmt.Sprintf("feeds/%d/entries", feed)
			if _, err := m.call(ctx, http.MethodGet, path, query, nil, &answer); err != nil {
				yield(readerEntry{}, err)
				return
			}
			for _, e := range answer.Entries {
				if e.ID <= after {
					yield(readerEntry{}, fmt.Errorf("%s: the reader's entries are not in order", m.URL))
					return
				}
				if after = e.ID; !yield(e, nil) {
					return
				}
			}
			if len(answer.Entries) < entriesAtOnce {
				return
			}
		}
	}
}

// put imports an entry not listed by the reader. Repeating it has no
// effect.
func (m *Miniflux) put(ctx context.Context, feed int64, entry *minifluxEntry) (Outcome, error) {
	var answer struct{ ID int64 }
	path := fmt.Sprintf("feeds/%d/entries/import", feed)
	got, err := m.call(ctx, http.MethodPost, path, nil, entry, &answer)
	refusal, ok := errors.AsType[*readerapi.Error](err)
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
	var entry readerEntry
	if _, err := m.call(ctx, http.MethodGet, fmt.Sprintf("entries/%d", id), nil, nil, &entry); err != nil {
		return Refused, err
	}
	if entry.URL != "" {
		return Added, nil
	}
	change := map[string]any{"entry_ids": []int64{id}, "status": "removed"}
	if _, err := m.call(ctx, http.MethodPut, "entries", nil, change, nil); err != nil {
		return Refused, err
	}
	return Removed, nil
}
