package handover

import (
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
)

// A Miniflux is an instance of that feed reader, at least of version 2.2.16, and
// the user of it whose feeds these are. Only URL and the credentials must be set.
type Miniflux struct {
	// URL is the instance's address, such as https://reader.example.org/.
	URL string

	// Token is an API key of the user, who makes it in the reader's settings.
	// Without it, User and Password are used.
	Token          string
	User, Password string

	HTTP      *http.Client      // its Transport makes the requests; nil: one that knows no proxy
	UserAgent string            // "": the library's
	Timeout   time.Duration     // of one request with its answer; zero means 60 s
	Retry     feedhistory.Retry // after an error of the network or the server, and 429

	transport http.RoundTripper // if HTTP has none
}

// String returns the address: a Miniflux that is printed gives no secret away.
func (m *Miniflux) String() string { return "Miniflux at " + m.URL }

// GoString is String.
func (m *Miniflux) GoString() string { return m.String() }

// A ReaderFeed is a feed that the reader's user is subscribed to.
type ReaderFeed struct {
	ID      int64  `json:"id"`
	FeedURL string `json:"feed_url"`
	SiteURL string `json:"site_url"`
	Title   string `json:"title"`
}

// A readerEntry is what there is to know of an entry that the reader has.
type readerEntry struct {
	ID          int64     `json:"id"`
	Hash        string    `json:"hash"`
	URL         string    `json:"url"`
	Title       string    `json:"title"`
	PublishedAt time.Time `json:"published_at"`
}

// A minifluxEntry is one to be imported.
type minifluxEntry struct {
	URL         string   `json:"url"`
	Title       string   `json:"title,omitempty"`
	Content     string   `json:"content,omitempty"`
	Author      string   `json:"author,omitempty"`
	PublishedAt int64    `json:"published_at,omitempty"` // Unix seconds, above zero
	Status      string   `json:"status"`
	Starred     bool     `json:"starred,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	ExternalID  string   `json:"external_id"`
}

// miniflux returns the article as Miniflux imports it. It cannot be given
// enclosures, and takes what was published before 1970 for new.
func (a *article) miniflux() *minifluxEntry {
	return &minifluxEntry{
		URL: a.url, Title: a.title, Content: a.html + a.enclosed(), Author: a.author,
		PublishedAt: max(a.at.Unix(), 1), Tags: a.tags, ExternalID: a.id,
	}
}

// A ReaderError is an answer of the reader that is no success.
type ReaderError struct {
	URL        string
	Status     int
	Message    string        // the reader's own; "" if it gave none
	RetryAfter time.Duration // how long it asks to be left alone; zero: it does not say
}

func (e *ReaderError) Error() string {
	text := fmt.Sprintf("%s: %d %s", e.URL, e.Status, http.StatusText(e.Status))
	switch {
	case e.Message != "":
		text += ": " + e.Message
	case e.Status == http.StatusUnauthorized:
		text += ": the reader does not know this token, or this user and password"
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf("; it asks to be left alone for %s", e.RetryAfter.Round(time.Second))
	}
	return text
}

// isAboutEntry reports whether it is this one entry that the reader does not take,
// or a proxy in front of it, as too large.
func (e *ReaderError) isAboutEntry() bool {
	switch e.Status {
	case http.StatusBadRequest:
		return !strings.Contains(e.Message, "feed does not exist") && !strings.Contains(e.Message, "invalid feed ID")
	case http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// isDeleted reports whether a 400 says that the reader has deleted the entry.
func (e *ReaderError) isDeleted() bool {
	return e.Status == http.StatusBadRequest && strings.Contains(e.Message, "tombstone")
}

// ErrOld says that a Miniflux is older than 2.2.16, and cannot import entries.
var ErrOld = errors.New("this Miniflux cannot import entries: at least version 2.2.16 can")

// Check asks who the reader is: whether the credentials are right, and whether it
// can import entries (ErrOld).
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

// isOld compares a version with 2.2.16. What is no number is a version under
// development, and new.
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

// Feeds returns the feeds that the user is subscribed to.
func (m *Miniflux) Feeds(ctx context.Context) (feeds []ReaderFeed, err error) {
	_, err = m.call(ctx, http.MethodGet, "feeds", nil, nil, &feeds)
	return feeds, err
}

// entriesAtOnce is how many entries one answer has: they come with their content.
const entriesAtOnce = 100

// entries yields all entries of a feed but those that the reader has deleted.
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
					yield(readerEntry{}, fmt.Errorf("%s: the reader's entries are in no order", m.URL))
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

// put imports an entry that the reader does not list. To do so again does nothing.
func (m *Miniflux) put(ctx context.Context, feed int64, entry *minifluxEntry) (Outcome, error) {
	var answer struct{ ID int64 }
	path := fmt.Sprintf("feeds/%d/entries/import", feed)
	got, err := m.call(ctx, http.MethodPost, path, nil, entry, &answer)
	refusal, ok := errors.AsType[*ReaderError](err)
	switch {
	case ok && refusal.isDeleted():
		return Removed, nil
	case ok && (refusal.Status == http.StatusNotFound || refusal.Status == http.StatusMethodNotAllowed):
		return Refused, fmt.Errorf("%w (%w)", ErrOld, err)
	case err != nil:
		return Refused, err
	case got.status != http.StatusCreated && got.tries == 1:
		return m.settle(ctx, answer.ID)
	}
	return Added, nil
}

// settle sees to an entry that the reader knew, but did not list. Before 2.3 it
// keeps entries that were deleted for a while, without their words and address,
// and importing one brings back that shell: then it is deleted again.
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
