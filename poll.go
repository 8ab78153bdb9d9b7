package feedhistory

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
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

// A Schedule is what a feed itself says about how often to ask for it: RSS's
// ttl, skipHours and skipDays, and the syndication module's updatePeriod and
// updateFrequency. The zero value says nothing.
type Schedule struct {
	Every     time.Duration // between polls, at least
	SkipHours uint32        // a bit for each hour of the day, UTC
	SkipDays  uint8         // a bit for each day of the week, UTC; the lowest is Sunday
}

// Next returns the earliest time at which asking again makes sense: when both
// the response's freshness and the feed's own interval have passed, in no
// skipped hour or day, and at most a month later. It is the zero time if
// nothing is said.
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

// unskipped returns the time, or the first hour after it that is not skipped;
// what skips everything skips nothing.
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

// NextPoll returns when to ask for the document again; the zero time if
// neither it nor the response says. See Schedule.Next.
func (d *Document) NextPoll() time.Time { return d.Schedule.Next(d.Response) }

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
