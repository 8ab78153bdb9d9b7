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

// A Response is what HTTP said of a document. It is the zero value for a
// document that was not fetched.
type Response struct {
	Requested string    // the URL that was asked for
	Permanent string    // where its permanent redirects (301, 308) lead, to ask there from now on; "" for none
	Received  time.Time // when the answer came
	Fresh     time.Time // until when Cache-Control or Expires keep it good; zero if they do not say
	Date      time.Time // by the server's clock; zero if it does not say

	// The validators, verbatim, and a digest of the body: not against forgery,
	// but enough to see that nothing has changed.
	ETag, LastModified, Digest string
}

// A Known document has been read before. It lets the next request for it be
// conditional, and a walk go on beyond it if it has not changed.
type Known struct {
	URL                        string // where it came from, after redirects
	ETag, LastModified, Digest string // as in its Response
	Kind                       Kind
	Older                      string // the next document back in time; "" for none
	Lost                       bool   `json:",omitempty"` // it links to one, but the link cannot be used
	Damaged                    bool   `json:",omitempty"` // something of it may be missing; see Document.Damage
	Begins                     string `json:",omitempty"` // its link to where the feed begins, which a walk found not to lead elsewhere
}

// Known returns what to remember of a document for the next poll. Of one that a
// walk was given, and that is not where the feed begins, or may not be, it has no
// validators: the next walk that is given it looks for the beginning again.
func (d *Document) Known() Known {
	feed := cmp.Or(d.place.feed, d.Kind())
	older, _ := d.Links.Rel(feed.older())
	k := Known{URL: d.URL, Kind: d.Kind(), Older: older.Href, Lost: d.loses(feed.older()), Damaged: d.Damage(feed) != nil, Begins: d.place.begins}
	if !d.place.again {
		k.ETag, k.LastModified, k.Digest = d.Response.ETag, d.Response.LastModified, d.Response.Digest
	}
	return k
}

// Unchanged is the error that stands for a document which is still what Known
// said: the server answered 304, or sent the same bytes once more.
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
