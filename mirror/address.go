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

// walks requests the feed at its current address and, if that fails for good, at the
// subscribed one, or at the one where it says it is.
func (p *poll) walks() error {
	f := p.feed
	if f.Address != "" {
		if alias, err := p.aliasOf(f.Address); alias || err != nil {
			return err
		}
	}
	if err := p.goBack(); err != nil {
		return err
	}
	p.request.doubted = f.Lost != "" && f.Lost != f.URL
	if err := p.walk(p.feed.address()); err != nil {
		return err
	}
	if p.failure == nil || !f.Gone && (f.Failures < triesElsewhere || !isAway(p.failure)) {
		return nil
	}
	p.request.doubted = true
	if f.Address != "" && f.Lost != f.URL {
		if err := p.walk(f.URL); err != nil || p.failure == nil {
			return err
		}
	}
	url := f.NewAddress()
	if url == "" {
		return nil
	}
	err := p.walk(url)
	if p.failure == nil {
		p.changes.Moved = f.Address
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
}

const (
	moveChecked = 7 * 24 * time.Hour
	moveProved  = 30 * 24 * time.Hour
)

// goBack requests the subscribed address of a moved feed, if it is time to, and goes
// back there if it answers with the feed itself.
func (p *poll) goBack() error {
	f, m := p.feed, p.ledger.Move
	switch {
	case m == nil || f.Address == "" || f.Lost != "":
		return nil
	case p.now.Sub(m.Since) > moveProved && !m.Asked.IsZero():
		p.ledger.Move = nil
		return nil
	case m.Asked.IsZero() && f.Polls < m.Poll+2, !m.Asked.IsZero() && p.now.Sub(m.Asked) < moveChecked:
		return nil
	}
	doc, err := p.m.clientFor(f.URL).Get(p.ctx, f.URL)
	moved, same := err == nil && doc.Response.Permanent != "", false
	if err == nil && !moved {
		if same, err = p.isSame(doc); err != nil {
			return err
		}
	}
	if moved || same || isMissing(err) || f.Polls >= m.Poll+5 { // otherwise the next poll asks again
		p.ledger.Move = &move{m.Since, m.Poll, p.now}
	}
	if same {
		f.Address = ""
		p.ledger.Known.ETag, p.ledger.Known.LastModified = "", "" // those of another address
	}
	return p.ctx.Err()
}

// first inspects the answer to the request for the subscription document: it
// decides whether the answer belongs to this feed, and whether the walk should
// go on.
func (p *poll) first(doc *feedhistory.Document, r feedhistory.Response) error {
	if r.Permanent != "" {
		if alias, err := p.aliasOf(r.Permanent); err != nil {
			return err
		} else if alias {
			return errEnded
		}
	}
	if !p.request.doubted {
		return nil
	}
	same, err := p.isSame(doc)
	if err != nil {
		return err
	}
	if !same {
		_ = p.failed(nil, &strangerError{p.feed.URL}) // without a document, failed returns no error
		return errEnded
	}
	p.failure, p.cut, p.request.doubted = nil, false, false
	return nil
}

// isSame reports whether a document belongs to the feed: it has the feed's id,
// or a known entry with the same content or times. The address alone proves
// nothing, because a domain may have a new owner.
func (p *poll) isSame(doc *feedhistory.Document) (bool, error) {
	if head, err := p.feed.Document(); err == nil && head.ID != "" && head.ID == doc.ID {
		return true, nil
	}
	ids := make([]string, len(doc.Entries))
	for i, e := range doc.Entries {
		ids[i] = e.ID
	}
	records, err := p.m.Store.Records(p.ctx, p.feed.URL, ids)
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
type strangerError struct{ url string }

func (e *strangerError) Error() string {
	return e.url + ": not the feed that you subscribed to: neither its id nor any entry is known"
}

// failed notes the lack of a subscription document, or a damaged one, whose entries
// count nevertheless.
func (p *poll) failed(doc *feedhistory.Document, err error) error {
	if p.failure != nil { // another address has no document either
		if p.request.url == p.feed.URL {
			p.lost(err)
		}
		return nil
	}
	f := p.feed
	f.Failures++
	f.Error = feedhistory.Describe(err)
	p.failure, p.cut = err, true
	p.ready, p.unended = p.later(p.now.Add(backoff(p.m.every(), f.Failures, 24*time.Hour))), false
	f.Gone = isGone(err) || p.request.doubted && isAway(err) // the other address has been withdrawn
	if doc == nil {
		return nil
	}
	url := iri.WithoutFragment(p.request.url)
	gap := feedhistory.NewGap(url, err)
	gap.From, gap.Found = url, p.now
	p.oweAgain(gap) // it may have more than the mirror
	m, err := p.merger.merge(source{doc: doc, rank: rankOf(doc, p.chain.rank)})
	if err == nil {
		p.commits.held = &m.change
		p.short(doc, m)
	}
	return err
}

// lost notes a subscribed address that does not answer either.
func (p *poll) lost(err error) {
	f := p.feed
	switch {
	case f.Gone && !isAway(err): // the feed may still come back
		f.Gone, f.Lost, f.Address = false, f.Address, ""
	case !f.Gone && isGone(err): // the subscribed address is not to be requested again
		f.Lost = f.URL
	}
	if stranger, ok := errors.AsType[*strangerError](err); ok {
		p.failure = fmt.Errorf("%w; %w", p.failure, stranger)
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
func (p *poll) aliasOf(address string) (bool, error) {
	f := p.feed
	address = iri.WithoutFragment(address)
	if address == f.URL {
		return false, nil
	}
	other, err := p.m.Store.Feed(p.ctx, address)
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
	p.ready, p.unended, p.cut = p.later(f.Next), false, true
	return true, nil
}

// canStandFor reports whether the other feed can be an Alias of this one: this
// one must be polled, and not have failed recently.
func (f *Feed) canStandFor(other *Feed) bool {
	return f.URL != other.URL && f.Alias == "" && !f.Gone && f.Failures < triesElsewhere
}

// readAt notes the reading of the subscription document, and where.
func (p *poll) readAt(r feedhistory.Response) {
	f := p.feed
	address := f.Address
	f.Address = cmp.Or(r.Permanent, r.Requested)
	p.changes.Moved = cmp.Or(r.Permanent, p.changes.Moved)
	if f.Address == f.URL {
		f.Address = ""
	}
	switch {
	case f.Address == "":
		p.ledger.Move = nil
	case f.Address != address && r.Permanent != "":
		p.ledger.Move = &move{Since: p.now, Poll: f.Polls}
	}
	if f.Address == address {
		p.changes.Moved = ""
	}
	f.Failures, f.Error, f.Gone, f.Alias, f.Lost = 0, "", false, "", ""
	p.ready, p.unended = p.later(p.inTime(p.ledger.Schedule.Next(r))), false
}
