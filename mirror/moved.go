package mirror

import (
	"errors"
	"fmt"
	"net"
	"net/http"

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
// subscribed one.
func (p *poll) walks() error {
	f := p.feed
	if f.Address != "" {
		if alias, err := p.aliasOf(f.Address); alias || err != nil {
			return err
		}
	}
	p.request.doubted = f.Lost != "" && f.Lost != f.URL
	if err := p.walk(p.feed.address()); err != nil {
		return err
	}
	if p.failure == nil || f.Address == "" || f.Lost == f.URL ||
		!f.Gone && (f.Failures < triesElsewhere || !isAway(p.failure)) {
		return nil
	}
	p.request.doubted = true
	return p.walk(f.URL)
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
	status, ok := errors.AsType[*feedhistory.StatusError](err)
	return ok && status.Gone
}

// isAway reports whether the answer means the feed is no longer at an address.
func isAway(err error) bool {
	if feedhistory.IsStatus(err, http.StatusNotFound, http.StatusGone) {
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
	f.Alias, p.changes.Alias = address, address
	f.Failures, f.Error, f.Gone = 0, "", false
	p.ready, p.unended, p.cut = p.later(f.Next), false, true
	return true, nil
}

// canStandFor reports whether the other feed can be an Alias of this one: this
// one must be polled, and not have failed recently.
func (f *Feed) canStandFor(other *Feed) bool {
	return f.URL != other.URL && f.Alias == "" && !f.Gone && f.Failures < triesElsewhere
}
