package feedhistory

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Response describes the HTTP response with a document. It is the zero value for a
// document not fetched.
type Response struct {
	Requested string    // the URL requested
	Permanent string    // the URL to request from now on, after permanent redirects (301, 308); "" means it has not changed
	Received  time.Time // when the response arrived
	Fresh     time.Time // until when the document is fresh, by Cache-Control or Expires; zero if they do not say
	Date      time.Time // the server's clock; zero if the response does not say

	// ETag and LastModified are the validators, verbatim. Digest is a digest of the
	// body: it detects changes, but does not withstand forgery.
	ETag, LastModified, Digest string
}

// A Known is the memory of a document read before. It makes the next request for the
// document conditional, and lets a walk continue beyond it if it has not changed.
type Known struct {
	URL                        string // the document's URL, after redirects
	ETag, LastModified, Digest string // as in its Response
	Kind                       Kind   // the kind of feed the document declares
	Older                      string // the URL of the next document back in time; "" if there is none
	Instead                    string `json:",omitempty"` // the URL to try if Older leads to no document; "" if there is no second link
	Lost                       bool   `json:",omitempty"` // whether its link to an older document cannot be used
	Damaged                    bool   `json:",omitempty"` // whether a part of it may be missing; see Document.Damage
	ID                         string `json:",omitempty"` // the feed's id, of a subscription document
	Begins                     string `json:",omitempty"` // the URL of its link to the feed's beginning, if a walk found it not to lead elsewhere
}

// Known returns the memory of the document for the next poll. If a walk was given this
// document, and the feed begins elsewhere, or may do so, or if the document's marks
// contradict each other, the result has no validators, so the next walk looks again.
func (d *Document) Known() Known {
	feed := cmp.Or(d.place.feed, d.Kind())
	older, _ := d.Links.Rel(feed.Older())
	targets := d.Links.targets(feed.Older())
	k := Known{URL: d.URL, Kind: d.Kind(), Older: iri.WithoutFragment(older.Href), Lost: d.loses(feed.Older()), Damaged: d.Damage(feed) != nil, Begins: d.place.begins}
	if len(targets) > 1 {
		k.Instead = targets[1]
	}
	if d.isSubscription() {
		k.ID = d.ID
	}
	if !d.place.again && !d.contradicts(feed) {
		k.ETag, k.LastModified, k.Digest = d.Response.ETag, d.Response.LastModified, d.Response.Digest
	}
	return k
}

// Unchanged is the error for an unchanged document, compared with its Known: the server
// answered 304, or sent the same bytes again.
type Unchanged struct {
	Known    Known       // the memory of the document, for the next poll
	Response Response    // the response with this answer
	Header   http.Header // its fields, as received
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

// A bodyDigest is two checksums and the length of a body. It is computed while the
// body arrives, at the speed of memory.
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

// Poll is Get for a document you have read before. It makes a conditional request, and
// returns an *Unchanged error if the document has not changed.
func (c *Client) Poll(ctx context.Context, url string, known Known) (*Document, error) {
	l := c.load(ctx, url, known, nil)
	return l.doc, l.err
}

// A Schedule is when a feed asks to be polled, by RSS's ttl, skipHours and skipDays,
// and the syndication module's updatePeriod and updateFrequency. The zero value means
// the feed does not say.
type Schedule struct {
	Every     time.Duration // Every is the minimum time between polls; zero means the feed does not say.
	SkipHours uint32        // SkipHours has a bit for each hour of the day (UTC) in which not to poll; the lowest is midnight.
	SkipDays  uint8         // SkipDays has a bit for each day of the week (UTC) on which not to poll; the lowest is Sunday.
}

// Next returns the earliest time at which a poll makes sense: when the response is
// no longer fresh and the feed's interval has passed, outside the hours and days to
// skip, and at most a month after the response. It returns the zero time if neither
// the schedule nor the response says anything.
func (s Schedule) Next(r Response) time.Time {
	next := r.Fresh
	if at := r.Received.Add(s.Every); s.Every > 0 && at.After(next) {
		next = at
	}
	if latest := r.Received.Add(maxInterval); next.After(latest) && !r.Received.IsZero() {
		next = latest
	}
	if next.IsZero() && s.skips(r.Received) {
		next = r.Received
	}
	return s.unskipped(next)
}

func (s Schedule) skips(t time.Time) bool {
	t = t.UTC()
	return s.SkipDays>>t.Weekday()&1 == 1 || s.SkipHours>>t.Hour()&1 == 1
}

// unskipped returns the time, or the first hour after it that is not skipped. A
// schedule that skips everything skips nothing.
func (s Schedule) unskipped(t time.Time) time.Time {
	if t.IsZero() || !s.skips(t) {
		return t
	}
	hour := t.Truncate(time.Hour)
	for range 8 * 24 {
		if hour = hour.Add(time.Hour); !s.skips(hour) {
			return hour
		}
	}
	return t
}

// NextPoll returns when to request the document again, or the zero time if neither
// the document nor the response says. See Schedule.Next.
func (d *Document) NextPoll() time.Time { return d.Schedule.Next(d.Response) }

// maxInterval is the longest interval, so no feed can silence its readers for good.
const maxInterval = 31 * 24 * time.Hour
