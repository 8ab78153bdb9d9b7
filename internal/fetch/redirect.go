package fetch

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// MaxRedirects is the maximum number of redirects to follow for one request.
const MaxRedirects = 5

// follow makes one try: the request, and those to which it is redirected.
func (c *Client) follow(ctx context.Context, first *url.URL, req *Request) (*Response, error) {
	var buf [MaxRedirects + 1]string
	visited := buf[:0]
	permanent, moved := "", true
	owner := req.owner(first)
	for u := first; ; {
		location := u.String()
		visited = append(visited, location)
		x, err := c.exchange(ctx, u, location, req, owner != nil && iri.SameOrigin(owner, u), iri.SameOrigin(first, u))
		if err != nil {
			return nil, err
		}
		status := x.resp.StatusCode
		if !redirects(status) {
			return x.answer(req, permanent, moved)
		}
		next, err := x.target(u, visited)
		x.discard()
		if err != nil {
			return nil, err
		}
		c.logRedirect(ctx, location, next, status)
		moved = moved && (status == http.StatusMovedPermanently || status == http.StatusPermanentRedirect)
		if u = next; moved {
			permanent = next.String()
		}
	}
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// target returns the URL a redirect of u leads to, if it may be followed.
func (x *exchange) target(u *url.URL, visited []string) (*url.URL, error) {
	location := x.resp.Header.Get("Location")
	if location == "" {
		return nil, refused(x.url, RuleLocation, nil)
	}
	next, err := x.client.parse(u, location)
	if err != nil {
		return nil, err
	}
	to := next.String()
	switch {
	case u.Scheme == "https" && next.Scheme == "http":
		return nil, refused(to, RuleDowngrade, errors.New("redirected from "+x.url))
	case slices.Contains(visited, to):
		return nil, refused(to, RuleLoop, nil)
	case len(visited) > MaxRedirects:
		return nil, refused(to, RuleRedirects, nil)
	}
	return next, nil
}

// answer returns the Response for a final answer, or its error. If settled, all redirects
// to it were permanent.
func (x *exchange) answer(req *Request, permanent string, settled bool) (*Response, error) {
	now, h := time.Now(), x.resp.Header
	resp := &Response{
		URL: x.url, Requested: req.URL, Permanent: permanent,
		Status: x.resp.StatusCode, Header: h,
		ETag: h.Get("Etag"), LastModified: h.Get("Last-Modified"),
		Freshness: freshness(h, now), Body: http.NoBody,
	}
	switch {
	case resp.Status == http.StatusNotModified && x.conditional:
		resp.ETag, resp.LastModified = cmp.Or(resp.ETag, req.ETag), cmp.Or(resp.LastModified, req.LastModified) // a 304 need not repeat them
		x.end()
		return resp, nil
	case resp.Status < 200 || resp.Status > 299 || resp.Status == http.StatusPartialContent && !req.Partial:
		// A 206 is not the document if the request did not ask for a part.
		err := x.statusError(now, settled)
		x.discard()
		return nil, err
	}
	return resp, x.open(resp, req)
}

// statusError returns the error for a status, and remembers when the host allows the
// next request.
func (x *exchange) statusError(now time.Time, settled bool) error {
	status := x.resp.StatusCode
	err := &Failure{Kind: Status, URL: x.url, Status: status, Gone: status == http.StatusGone && settled}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		if wait, ok := RetryAfter(x.resp.Header, now); ok {
			err.RetryAfter, err.At = wait, now.Add(wait)
			x.client.shared().hosts.leaveAlone(x.host, err.At, status)
		}
	}
	return err
}
