package feedhistory

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

// A Response is what HTTP said about a document. It is the zero value for a
// document that was not fetched.
type Response struct {
	Requested string    // the URL that was requested
	Permanent string    // the URL to request from now on, after permanent redirects (301, 308); "" means the same as before
	Received  time.Time // when the answer came
	Fresh     time.Time // how long the document is fresh, by Cache-Control or Expires; zero if they do not say
	Date      time.Time // the server's clock; zero if the answer does not say

	// ETag and LastModified are the validators, verbatim. Digest is a digest of the
	// body: it does not withstand forgery, but shows that nothing has changed.
	ETag, LastModified, Digest string
}

// A Known document is one that was read before. It makes the next request for it
// conditional, and lets a walk go beyond it if it has not changed.
type Known struct {
	URL                        string // the document's URL, after redirects
	ETag, LastModified, Digest string // as in its Response
	Kind                       Kind
	Older                      string // the URL of the next document back in time; "" if there is none
	Lost                       bool   `json:",omitempty"` // whether it links to an older document by a link that cannot be used
	Damaged                    bool   `json:",omitempty"` // whether something of it may be missing; see Document.Damage
	Begins                     string `json:",omitempty"` // its link to where the feed begins, which a walk found not to lead elsewhere
}

// Known returns what to remember of a document for the next poll. If a walk was
// given this document, and the feed does not begin here, or may not, the result
// has no validators, so that the next walk looks for the beginning again.
func (d *Document) Known() Known {
	feed := cmp.Or(d.place.feed, d.Kind())
	older, _ := d.Links.Rel(feed.older())
	k := Known{URL: d.URL, Kind: d.Kind(), Older: older.Href, Lost: d.loses(feed.older()), Damaged: d.Damage(feed) != nil, Begins: d.place.begins}
	if !d.place.again {
		k.ETag, k.LastModified, k.Digest = d.Response.ETag, d.Response.LastModified, d.Response.Digest
	}
	return k
}

// Unchanged is the error for a document that has not changed since it became
// Known: the server answered 304, or sent the same bytes again.
type Unchanged struct {
	Known    Known
	Response Response
}

// Error returns the document's URL.
func (u *Unchanged) Error() string { return fmt.Sprintf("unchanged: %s", u.Response.Requested) }

func newResponse(resp *fetch.Response) Response {
	now := time.Now()
	date, _ := http.ParseTime(resp.Header.Get("Date"))
	return Response{
		Requested: resp.Requested, Permanent: resp.Permanent, Received: now, Fresh: resp.Freshness.Until(now), Date: date.UTC(),
		ETag: resp.ETag, LastModified: resp.LastModified,
	}
}

// A bodyDigest sums up a body as it arrives, at the speed of memory: two
// checksums and the length.
type bodyDigest struct {
	castagnoli, ieee hash.Hash32
	length           int64
}

func newBodyDigest() *bodyDigest {
	return &bodyDigest{castagnoli: crc32.New(crc32.MakeTable(crc32.Castagnoli)), ieee: crc32.NewIEEE()}
}

func (d *bodyDigest) Write(p []byte) (int, error) {
	d.length += int64(len(p))
	_, _ = d.castagnoli.Write(p)
	return d.ieee.Write(p)
}

func (d *bodyDigest) String() string {
	return fmt.Sprintf("%x-%s", d.length, hex.EncodeToString(d.ieee.Sum(d.castagnoli.Sum(nil))))
}

// Ask requests a document with more header fields, for protocols that use them to
// select a part of a feed, and also returns the status and header of the answer.
// Every 2xx is an answer, 206 included. Ask sends the fields only to the origin of
// url, and refuses those that a Client sets itself. It returns the errors of Get,
// and a document may come with an error.
func (c *Client) Ask(ctx context.Context, url string, fields http.Header) (doc *Document, status int, header http.Header, err error) {
	resp, err := c.do(ctx, fetch.Request{URL: requestURL(url), Accept: accept, Header: fields, Partial: true})
	if err != nil {
		return nil, 0, nil, err
	}
	defer resp.Body.Close()
	l := c.read(resp, url, Known{}, nil)
	return l.doc, resp.Status, resp.Header, l.err
}

// An Answer is what Do returns for a successful request.
type Answer struct {
	URL    string        // the URL after redirects
	Status int           // 200 or another 2xx, but never 206
	Header http.Header   // the header as sent
	Body   io.ReadCloser // the decoded body; close it
}

// Do requests something else than a feed, such as a list of posts, by the rules of
// the Client. The method is GET or HEAD. An empty accept means "*/*". The errors,
// those of the Body included, are those of Get.
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
