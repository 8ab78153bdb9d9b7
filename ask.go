package feedhistory

import (
	"context"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

// Ask requests a document with further header fields, for the protocols that
// say in them which part of a feed they want, and returns the status and header
// of the answer beside it. Every 2xx is an answer, 206 too. The fields go to
// the origin of url only; those that a Client sets itself are refused. Errors
// are those of Get; a document may come with one.
func (c *Client) Ask(ctx context.Context, url string, fields http.Header) (doc *Document, status int, header http.Header, err error) {
	resp, err := c.requester().Do(ctx, fetch.Request{URL: requestURL(url), Accept: accept, Header: fields, Partial: true})
	if err != nil {
		return nil, 0, nil, err
	}
	defer resp.Body.Close()
	l := c.read(resp, url, Known{}, nil)
	return l.doc, resp.Status, resp.Header, l.err
}

// NewGap returns the gap that an error leaves, with the reason that Walk would
// give it.
func NewGap(url string, err error) *Gap {
	return &Gap{URL: url, Reason: reasonOf(err), Err: err, Found: time.Now()}
}
