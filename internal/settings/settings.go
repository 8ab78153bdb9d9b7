// Package settings checks settings, has the Client of callers that set none, and makes
// their requests.
package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Number is a setting that may not be negative.
type Number struct {
	Name  string // Name is the field, with its type, such as "Handler.Size".
	Value int64
}

// Check returns an error naming the first negative number of a package's settings.
func Check(pkg string, numbers ...Number) error {
	for _, n := range numbers {
		if n.Value < 0 {
			return fmt.Errorf("%s: %s is negative", pkg, n.Name)
		}
	}
	return nil
}

// CheckBase returns an error naming a setting if it cannot be the URL below which documents
// are published: their names are appended to it.
func CheckBase(name, base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsAny(base, "?#") {
		return fmt.Errorf("%s is not an absolute URL of a directory, http or https without query and fragment: %q", name, iri.Shown(base))
	}
	return nil
}

// MaxLine is the maximum size of a line of JSON with an entry, in bytes. It has the entry twice,
// each time with escapes, and in exports of a mirror also the earlier versions.
const MaxLine = 256 << 20

// Now returns the time by a clock; nil means time.Now.
func Now(clock func() time.Time) time.Time {
	if clock == nil {
		return time.Now()
	}
	return clock()
}

// Shared returns c or, if c is nil, a new Client with default settings. Call done when the
// Client is no longer needed: it closes the connections of a new one.
func Shared(c *feedhistory.Client) (client *feedhistory.Client, done func()) {
	if c != nil {
		return c, func() {}
	}
	c = new(feedhistory.Client)
	return c, c.CloseIdle
}

// Cloned is Shared, but clones c, so its settings may be changed.
func Cloned(c *feedhistory.Client) (clone *feedhistory.Client, done func()) {
	if c != nil {
		c = c.Clone()
	}
	return Shared(c)
}

// Get makes a request with c. The error of a failed one is that of [feedhistory.Client.Get],
// and so is the error of the body, whose length is limited by c's MaxBytes.
func Get(ctx context.Context, c *feedhistory.Client, method, address string, header http.Header) (*http.Response, error) {
	u, err := iri.ParseLeniently(address)
	if err != nil {
		u = &url.URL{Path: address} // the client refuses it
	}
	resp, err := c.HTTPClient().Do((&http.Request{Method: method, URL: u, Header: header}).WithContext(ctx))
	if failed, ok := errors.AsType[*feedhistory.FetchError](err); ok {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		resp.Body.Close()
		return nil, feedhistory.NewFetchError(resp)
	}
	most := cmp.Or(c.MaxBytes, fetch.DefaultBytes)
	limited := &limitedBody{resp.Body, http.MaxBytesReader(nil, resp.Body, most), resp.Request.URL.String()}
	if resp.Body = limited; resp.ContentLength > most && method != http.MethodHead {
		return nil, errors.Join(limited.tooLarge(&http.MaxBytesError{Limit: most}), limited.Close())
	}
	return resp, nil
}

// Read makes a GET request as Get does, and reads the body, as far as it comes. Without an
// answer, the response is nil.
func Read(ctx context.Context, c *feedhistory.Client, address string, header http.Header) ([]byte, *http.Response, error) {
	resp, err := Get(ctx, c, http.MethodGet, address, header)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return body, resp, err
}

// A limitedBody is a body of limited length.
type limitedBody struct {
	io.Closer
	body io.Reader
	url  string
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if most, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = b.tooLarge(most)
	}
	return n, err
}

func (b *limitedBody) tooLarge(err *http.MaxBytesError) error {
	return &feedhistory.FetchError{URL: b.url, Reason: feedhistory.ReasonLimit, Err: err}
}
