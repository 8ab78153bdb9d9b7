package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// The mirror remembers permanent redirects, but can go back. If the address they lead
// to fails for good, it also requests the subscribed one. If they lead to an already
// mirrored feed, one poll serves both feeds.

// triesElsewhere is the number of consecutive failed polls before the subscribed
// address is requested as well.
const triesElsewhere = 3

// An address is where the subscription document is requested.
type address struct {
	*session
	due     *due
	url     string // the address requested by the walk
	doubted bool   // the answer from there counts only if it is the same feed
	failure error  // why there is no subscription document
}

// requests calls walk with the feed's current address and, if that fails for good, at the
// subscribed one, or at the one where it says it is.
func (a *address) requests(walk func(address string) error) error {
	f := a.feed
	if f.Address != "" {
		if alias, err := a.aliasOf(f.Address); alias || err != nil {
			return err
		}
	}
	if err := a.goBack(); err != nil {
		return err
	}
	a.doubted = f.Lost != "" && f.Lost != f.URL
	if err := walk(a.feed.address()); err != nil {
		return err
	}
	if a.failure == nil || !f.Gone && (f.Failures < triesElsewhere || !isAway(a.failure)) {
		return nil
	}
	a.doubted = true
	if f.Address != "" && f.Lost != f.URL {
		if err := walk(f.URL); err != nil || a.failure == nil {
			return err
		}
	}
	url := f.NewAddress()
	if url == "" {
		return nil
	}
	err := walk(url)
	if a.failure == nil {
		a.changes.Moved = f.Address
	}
	return err
}

// A move is a permanent redirect followed by the mirror. One wrong answer must not lead it
// away for good, so the subscribed address is requested again: within three polls, at the next
// ones if it does not answer then, and each week for a month.
type move struct {
	Since time.Time `json:"since"`
	Poll  int64     `json:"poll"`           // the number of the poll to find it
	Asked time.Time `json:"asked,omitzero"` // when the subscribed address was last requested since; zero means never
	Wait  time.Time `json:"wait,omitzero"`  // until when its host has asked to be left alone (Retry-After); zero means it has not
}

const (
	moveChecked = 7 * 24 * time.Hour
	moveProved  = 30 * 24 * time.Hour
)

// goBack requests the subscribed address of a moved feed, if it is time to, and goes
// back there if it answers with the feed itself.
func (a *address) goBack() error {
	f, m := a.feed, a.ledger.Move
	switch {
	case m == nil || f.Address == "" || f.Lost != "":
		return nil
	case a.now.Sub(m.Since) > moveProved && !m.Asked.IsZero():
		a.ledger.Move = nil
		return nil
	case isAsked(m.Wait, a.now), m.Asked.IsZero() && f.Polls < m.Poll+2, !m.Asked.IsZero() && a.now.Sub(m.Asked) < moveChecked:
		return nil
	}
	doc, err := a.m.clientFor(f.URL).Get(a.ctx, f.URL)
	a.due.waitFor(err, f.address())
	moved, same := err == nil && doc.Response.Permanent != "", false
	if err == nil && !moved {
		if same, err = a.isSame(doc); err != nil {
			return err
		}
	}
	if moved || same || isMissing(err) || f.Polls >= m.Poll+5 { // otherwise the next poll asks again
		a.ledger.Move = &move{Since: m.Since, Poll: m.Poll, Asked: a.now}
	}
	if same {
		f.Address = ""
		a.ledger.Known.ETag, a.ledger.Known.LastModified = "", "" // those of another address
	}
	return a.ctx.Err()
}

// first inspects the answer to the request for the subscription document: it
// decides whether the answer belongs to this feed, and whether the walk should
// go on.
func (a *address) first(doc *feedhistory.Document, r feedhistory.Response) error {
	if r.Permanent != "" {
		if alias, err := a.aliasOf(r.Permanent); err != nil {
			return err
		} else if alias {
			return errEnded
		}
	}
	if !a.doubted {
		return nil
	}
	same, err := a.isSame(doc)
	if err != nil {
		return err
	}
	if !same {
		a.failed(&strangerError{a.feed.URL, doc.URL})
		return errEnded
	}
	a.failure, a.cut, a.doubted = nil, false, false
	return nil
}

// isSame reports whether a document belongs to the feed, or to the earlier one at the address: it
// has the feed's id, or a known entry with the same content or times. The address alone proves
// nothing, because a domain may have a new owner.
func (s *session) isSame(doc *feedhistory.Document) (bool, error) {
	if s.isEarlier(doc) {
		return true, nil
	}
	if head, err := s.feed.Document(); err == nil && head.ID != "" && head.ID == doc.ID {
		return true, nil
	}
	ids := make([]string, len(doc.Entries))
	for i, e := range doc.Entries {
		ids[i] = e.ID
	}
	records, err := s.m.Store.Records(s.ctx, s.feed.URL, ids)
	for _, e := range doc.Entries {
		r := records[e.ID]
		if r == nil || r.Copy.Digest == "" {
			continue
		}
		if c := r.Content; r.Copy.Digest == e.Digest() || !e.Updated.IsZero() && e.Updated.Equal(c.Updated) ||
			!e.Published.IsZero() && e.Published.Equal(c.Published) {
			return true, err
		}
	}
	return false, err
}

// A strangerError reports an address now serving a different feed.
type strangerError struct{ url, at string } // at is where the other feed is

func (e *strangerError) Error() string {
	leads := ""
	if at := iri.Redact(e.at); at != e.url {
		leads = "it leads to " + at + ": "
	}
	return e.url + ": " + leads + "not the feed that you subscribed to: neither its id nor any entry is known"
}

// failed notes the lack of a subscription document, or a damaged one. It reports whether it is
// the first of the poll.
func (a *address) failed(err error) (isFirst bool) {
	if a.failure != nil { // another address has no document either
		if a.url == a.feed.URL {
			a.lost(err)
		}
		return false
	}
	f := a.feed
	f.Failures++
	f.Error = feedhistory.Describe(err)
	a.failure, a.cut = err, true
	a.due.ready, a.due.unended = a.later(a.now.Add(backoff(a.m.every(), f.Failures, 24*time.Hour))), false
	f.Gone = isGone(err) || a.doubted && isAway(err) // the other address has been withdrawn
	return true
}

// lost notes a subscribed address that does not answer either.
func (a *address) lost(err error) {
	f := a.feed
	switch {
	case f.Gone && !isAway(err): // the feed may still come back
		f.Gone, f.Lost, f.Address = false, f.Address, ""
	case !f.Gone && isGone(err): // the subscribed address is not to be requested again
		f.Lost = f.URL
	}
	if stranger, ok := errors.AsType[*strangerError](err); ok {
		a.failure = fmt.Errorf("%w; %w", a.failure, stranger)
		f.Error += "; " + stranger.Error()
	}
}

// isGone reports whether the publisher has withdrawn a document for good.
func isGone(err error) bool {
	failed, ok := errors.AsType[*feedhistory.FetchError](err)
	return ok && failed.Gone
}

// isAway reports whether the answer means the feed is no longer at an address.
func isAway(err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	if _, ok := errors.AsType[*strangerError](err); ok {
		return true
	}
	parse, ok := errors.AsType[*feedhistory.ParseError](err)
	return ok && parse.Reason == feedhistory.ReasonNotFeed
}

// aliasOf makes the feed an alias of the feed subscribed to at an address, if
// there is one and it can serve as the other's target.
func (a *address) aliasOf(address string) (bool, error) {
	f := a.feed
	address = iri.WithoutFragment(address)
	if address == f.URL {
		return false, nil
	}
	other, err := a.m.Store.Feed(a.ctx, address)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case !other.canStandFor(f):
		return false, nil
	}
	f.Alias = address
	f.Failures, f.Error, f.Gone = 0, "", false
	a.due.ready, a.due.unended, a.cut = a.later(f.Next), false, true
	return true, nil
}

// canStandFor reports whether the other feed can be an Alias of this one: this
// one must be polled, and not have failed recently.
func (f *Feed) canStandFor(other *Feed) bool {
	return f.URL != other.URL && f.Alias == "" && !f.Gone && f.Failures < triesElsewhere
}

// readAt notes the reading of the subscription document, and where.
func (a *address) readAt(r feedhistory.Response) {
	f := a.feed
	address := f.Address
	f.Address = cmp.Or(r.Permanent, r.Requested)
	a.changes.Moved = cmp.Or(r.Permanent, a.changes.Moved)
	if f.Address == f.URL {
		f.Address = ""
	}
	switch {
	case f.Address == "":
		a.ledger.Move = nil
	case f.Address != address && r.Permanent != "":
		a.ledger.Move = &move{Since: a.now, Poll: f.Polls}
	}
	if f.Address == address {
		a.changes.Moved = ""
	}
	f.Failures, f.Error, f.Gone, f.Alias, f.Lost = 0, "", false, "", ""
	a.due.ready, a.due.unended = a.later(a.due.inTime(a.ledger.Schedule.Next(r))), false
}
