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
	text, cut := receive(resp.Body, resp.Header.Get("Content-Length"), nil)
	if doc, err = (Parser{Limits: c.Limits, Header: resp.Header}).parse(text, resp.URL); doc != nil {
		doc.Response = newResponse(resp)
		doc.Response.Requested = url
	}
	if cut != nil {
		err = cut // says more than that the document is truncated
	}
	return doc, resp.Status, resp.Header, err
}

// NewGap returns the gap that an error leaves, with the reason that Walk would
// give it.
func NewGap(url string, err error) *Gap {
	return &Gap{URL: url, Reason: reasonOf(err), Err: err, Found: time.Now()}
}
