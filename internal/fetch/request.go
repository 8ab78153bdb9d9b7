package fetch

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/feedhistory/feedhistory/internal/iri"
	"golang.org/x/net/http/httpguts"
)

// newRequest makes the request of one hop, with headers of its own, because a hop must not
// see the headers of another.
func (c *Client) newRequest(ctx context.Context, u *url.URL, req *Request, conditional bool) (*http.Request, error) {
	fields := [...]struct{ name, value string }{
		{"User-Agent", cmp.Or(c.UserAgent, fallbackAgent)},
		{"Accept", cmp.Or(req.Accept, "*/*")},
		{"Accept-Encoding", "gzip, zstd"},
		{"If-None-Match", req.ETag},
		{"If-Modified-Since", req.LastModified},
	}
	send := fields[:]
	if !conditional {
		send = fields[:3]
	}
	header := make(http.Header, len(fields))
	values := make([]string, len(fields)) // one array for all: polls are cheap
	for i, f := range send {
		if f.value == "" {
			continue
		}
		if !httpguts.ValidHeaderFieldValue(f.value) {
			return nil, refused(u.String(), RuleHeader, nil)
		}
		values[i] = f.value
		header[f.name] = values[i : i+1 : i+1]
	}
	if c.Secrets != nil {
		if err := addSecrets(u, header, c.Secrets(u)); err != nil {
			return nil, err
		}
	}
	r := http.Request{
		Method:     cmp.Or(req.Method, http.MethodGet),
		URL:        u,
		Host:       u.Host,
		Header:     header,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
	}
	return r.WithContext(ctx), nil
}

// owner returns the URL whose origin may see the validators; nil if there are none.
func (req *Request) owner(first *url.URL) *url.URL {
	switch {
	case req.ETag == "" && req.LastModified == "":
		return nil
	case req.Validated == "":
		return first
	}
	u, err := iri.ParseLeniently(req.Validated)
	if err != nil {
		return nil
	}
	return u
}
