package feedhistory

import (
	"context"
	"io"
	"net/http"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

// Ask requests a document with further header fields, for the protocols that
// say in them which part of a feed they want, and returns the status and header
// of the answer as well. Every 2xx is an answer, 206 included. The fields go to
// the origin of url only; those that a Client sets itself are refused. Errors
// are those of Get; a document may come with one.
func (c *Client) Ask(ctx context.Context, url string, fields http.Header) (doc *Document, status int, header http.Header, err error) {
	resp, err := c.do(ctx, fetch.Request{URL: requestURL(url), Accept: accept, Header: fields, Partial: true})
	if err != nil {
		return nil, 0, nil, err
	}
	defer resp.Body.Close()
	l := c.read(resp, url, Known{}, nil)
	return l.doc, resp.Status, resp.Header, l.err
}

// An Answer is a successful answer of Do.
type Answer struct {
	URL    string        // where it was found, after redirects
	Status int           // 200, or another 2xx but 206
	Header http.Header   // the header as sent
	Body   io.ReadCloser // the decoded body, which must be closed
}

// Do requests what is not a feed, such as a list of posts, by the rules of the
// Client. The method is GET or HEAD. An empty accept means "*/*". Errors, those
// of the Body included, are those of Get.
func (c *Client) Do(ctx context.Context, method, url, accept string) (*Answer, error) {
	resp, err := c.do(ctx, fetch.Request{URL: url, Method: method, Accept: accept})
	if err != nil {
		return nil, err
	}
	return &Answer{resp.URL, resp.Status, resp.Header, resp.Body}, nil
}

// do makes a request; errors, those of the body included, are this package's.
func (c *Client) do(ctx context.Context, req fetch.Request) (*fetch.Response, error) {
	resp, err := c.requester().Do(ctx, req)
	if err != nil {
		return nil, public(err)
	}
	resp.Body = publicBody{resp.Body}
	return resp, nil
}
