package download

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory"
)

// mostRedirects is the maximum number of redirects a request follows.
const mostRedirects = 5

// request requests a file, from the byte at which an earlier download ended if the file is
// still the same.
func (d *Downloader) request(ctx context.Context, f File, size int64, validator string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil || req.URL.Host == "" || req.URL.Scheme != "https" && req.URL.Scheme != "http" || req.URL.User != nil {
		return nil, errors.New("not a downloadable address")
	}
	req.Header.Set("User-Agent", d.UserAgent)
	req.Header.Set("Accept-Encoding", "identity") // a range is one of the file's own bytes
	if size > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", size))
		req.Header.Set("If-Range", validator)
	}
	client := &http.Client{Transport: &loggedIn{d.Transport, d.credential(f.Feed)}, CheckRedirect: checkRedirect}
	resp, err := client.Do(req)
	if err != nil {
		if broken, ok := errors.AsType[*url.Error](err); ok {
			err = broken.Err // the message must not contain a secret of the address
		}
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && size > 0:
		_ = resp.Body.Close()
		return d.request(ctx, f, 0, "")
	case resp.StatusCode == http.StatusPartialContent && size > 0 && beginsAt(resp.Header.Get("Content-Range"), size),
		resp.StatusCode == http.StatusOK:
	case resp.StatusCode == http.StatusPartialContent && size > 0:
		_ = resp.Body.Close()
		return d.request(ctx, f, 0, "")
	default:
		_ = resp.Body.Close()
		return nil, feedhistory.NewStatusError(resp)
	}
	if isPage(resp.Header.Get("Content-Type")) && isMedia(f.Type) {
		_ = resp.Body.Close()
		return nil, errors.New("the server sends a web page instead of the file; does it require a login?")
	}
	return resp, nil
}

func (d *Downloader) credential(feed string) *feedhistory.Credential {
	if d.Credential == nil {
		return nil
	}
	return d.Credential(feed)
}

// A loggedIn transport adds a credential to the requests to its origin, and to no others.
type loggedIn struct {
	http.RoundTripper
	credential *feedhistory.Credential // nil if there is none
}

// RoundTrip implements http.RoundTripper.
func (t *loggedIn) RoundTrip(req *http.Request) (*http.Response, error) {
	if c := t.credential; c != nil && feedhistory.SameOrigin(c.Origin, req.URL.String()) {
		req = req.Clone(req.Context())
		for name, values := range c.Header {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
		if c.Authorization != "" {
			req.Header.Set("Authorization", c.Authorization)
		}
	}
	return t.RoundTripper.RoundTrip(req)
}

// checkRedirect refuses unsafe redirects.
func checkRedirect(req *http.Request, via []*http.Request) error {
	before := via[len(via)-1].URL
	switch {
	case len(via) > mostRedirects:
		return fmt.Errorf("more than %d redirects", mostRedirects)
	case req.URL.User != nil:
		return errors.New("it redirects to an address with a user")
	case before.Scheme == "https" && req.URL.Scheme != "https":
		return errors.New("it redirects from https to " + req.URL.Scheme)
	}
	req.Header.Del("Referer")
	return nil
}

// beginsAt reports whether a Content-Range begins at a byte.
func beginsAt(contentRange string, at int64) bool {
	return strings.HasPrefix(contentRange, "bytes "+strconv.FormatInt(at, 10)+"-")
}

// validatorOf returns the validator for resuming a download; "" if none identifies the
// bytes.
func validatorOf(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

func isPage(contentType string) bool { return mediaType(contentType) == "text/html" }

func isMedia(contentType string) bool {
	kind, _, _ := strings.Cut(mediaType(contentType), "/")
	return kind == "audio" || kind == "video" || kind == "image"
}

func mediaType(contentType string) string {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return strings.ToLower(strings.TrimSpace(contentType))
	}
	return kind
}

// differences says where a file is not as the feed says.
func differences(f File, size int64, contentType string) (all []string) {
	if f.Length > 0 && f.Length != size {
		all = append(all, fmt.Sprintf("the feed says %d bytes, the file has %d", f.Length, size))
	}
	if got, want := mediaType(contentType), mediaType(f.Type); want != "" && got != "" && got != want && got != "application/octet-stream" && got != "binary/octet-stream" {
		all = append(all, fmt.Sprintf("the feed says %s, the server %s", want, got))
	}
	return all
}
