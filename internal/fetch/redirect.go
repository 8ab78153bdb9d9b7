package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// MaxRedirects is how many redirects of one request are followed.
const MaxRedirects = 5

// follow makes one try: the request, and those that its redirects ask for.
func (c *Client) follow(ctx context.Context, first *url.URL, req *Request) (*Response, error) {
	var buf [MaxRedirects + 1]string
	visited := buf[:0]
	permanent, moved := "", true
	owner := req.owner(first)
	for u := first; ; {
		location := u.String()
		visited = append(visited, location)
		x, err := c.exchange(ctx, u, location, req, owner != nil && SameOrigin(owner, u), SameOrigin(first, u))
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

// target is where a redirect of u leads, if it may be followed.
func (x *exchange) target(u *url.URL, visited []string) (*url.URL, error) {
	location := x.resp.Header.Get("Location")
	if location == "" {
		return nil, &RefusedError{URL: x.url, Rule: RuleLocation}
	}
	next, err := x.client.parse(u, location)
	if err != nil {
		return nil, err
	}
	to := next.String()
	switch {
	case u.Scheme == "https" && next.Scheme == "http":
		return nil, &RefusedError{URL: to, Rule: RuleDowngrade, Err: errors.New("redirected from " + x.url)}
	case slices.Contains(visited, to):
		return nil, &RefusedError{URL: to, Rule: RuleLoop}
	case len(visited) > MaxRedirects:
		return nil, &RefusedError{URL: to, Rule: RuleRedirects}
	}
	return next, nil
}

// answer makes the Response of a final answer, or its error. All redirects to
// it were permanent if it is settled.
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
		resp.keepValidators(req)
		x.end()
		return resp, nil
	case resp.Status < 200 || resp.Status > 299 || resp.Status == http.StatusPartialContent && !req.Partial:
		// Where nobody asked for a part, a 206 is not the document either.
		err := x.statusError(now, settled)
		x.discard()
		return nil, err
	}
	return resp, x.open(resp, req)
}

// keepValidators fills in what a 304 did not repeat.
func (r *Response) keepValidators(req *Request) {
	if r.ETag == "" {
		r.ETag = req.ETag
	}
	if r.LastModified == "" {
		r.LastModified = req.LastModified
	}
}

// statusError reports the status, and remembers when the host wants to be
// asked again.
func (x *exchange) statusError(now time.Time, settled bool) error {
	status := x.resp.StatusCode
	err := &StatusError{URL: x.url, Status: status, Gone: status == http.StatusGone && settled}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		if wait, ok := RetryAfter(x.resp.Header, now); ok {
			err.RetryAfter, err.At = wait, now.Add(wait)
			x.client.shared().hosts.leaveAlone(x.host, err.At, status)
		}
	}
	return err
}
