package mirror

import (
	"cmp"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// Another feed may answer at the address: a parked domain, a captive portal, a new owner.
// It is set aside, until it has answered for a day or the known feed leads to it.

const (
	strangerPolls = 3
	strangerTime  = 24 * time.Hour
)

// isStranger reports whether a document is of another feed than the one known: another
// id, or without ids nothing of the head in common, no known entry, and no link to a known
// archive.
func (p *poll) isStranger(doc *feedhistory.Document) (bool, error) {
	if p.ledger.Known.URL == "" || !p.had && p.ledger.Known.Older == "" { // a feed without entries, which leads to none
		return false, nil
	}
	head, err := p.feed.Document()
	if err != nil {
		return false, nil // nothing to compare it with
	}
	if older, ok := olderOf(doc, feedhistory.KindArchived); ok && p.documents.get(older) != nil {
		return false, nil
	}
	if !door.Root.IsStranger(doc, head, p.ledger.IDs, p.ledger.Shown) {
		return false, p.documents.err
	}
	has, err := p.hasEntryOf(doc)
	return !has && !p.joins(doc, head), cmp.Or(err, p.documents.err)
}

// mostJoining is the maximum number of archives to request to find whether a document is of
// another feed.
const mostJoining = 10

// joins reports whether the chain from a document leads to a known archive, to one with a known
// entry, or to the own address of the document shown before: feeds of which each document has an id of its own show only the
// entries since the last archive was closed.
func (p *poll) joins(doc, before *feedhistory.Document) bool {
	own := map[string]bool{}
	for _, l := range before.Links {
		if url := iri.Address(l.Href); (l.Rel == "self" || l.Rel == "via") && url != p.request.url && url != p.feed.URL {
			own[url] = true
		}
	}
	client := p.m.clientFor(p.feed.URL)
	for range mostJoining {
		older, ok := olderOf(doc, feedhistory.KindArchived)
		if !ok {
			return false
		}
		if own[older] || p.documents.get(older) != nil {
			return true
		}
		var err error
		if doc, err = client.Get(p.ctx, older); err != nil {
			return false
		}
		if has, err := p.hasEntryOf(doc); has || err != nil {
			p.documents.err = cmp.Or(p.documents.err, err)
			return has
		}
	}
	return false
}

// hasEntryOf reports whether an entry of a document is known, of the feed at the address now.
func (p *poll) hasEntryOf(doc *feedhistory.Document) (bool, error) {
	ids := make([]string, len(doc.Entries))
	for i, e := range doc.Entries {
		ids[i] = e.ID
	}
	records, err := p.m.Store.Records(p.ctx, p.feed.URL, ids)
	for _, r := range records {
		if r.Copy.Digest != "" && r.FirstCommit > p.ledger.Since {
			return true, err
		}
	}
	return false, err
}

// meet decides about a subscription document that may be of another feed. It reports
// whether the document is set aside.
func (p *poll) meet(doc *feedhistory.Document, r feedhistory.Response) (aside bool, err error) {
	f := p.feed
	if doc == nil { // it has not changed
		p.answered()
		return false, nil
	}
	if past := p.ledger.Past; past != nil && slices.Contains(past.Ledger.IDs, doc.ID) && !slices.Contains(p.ledger.IDs, doc.ID) {
		p.revive(past)
		return false, nil
	}
	is, err := p.isStranger(doc)
	if err != nil || !is {
		p.answered()
		return false, err
	}
	signature := shortKey(doc.ID + "\n" + doc.Title)
	s := p.ledger.Stranger
	if s == nil || s.Digest != signature {
		s = &stranger{Digest: signature, Since: p.now}
	}
	s = &stranger{s.Digest, s.Polls + 1, s.Since}
	led := r.Requested != iri.WithoutFragment(p.request.url) || // current, say; a redirect proves nothing
		r.Permanent != "" && r.Permanent == f.NewAddress() // unless the feed has announced it
	if led || s.Polls >= strangerPolls && !p.now.Before(s.Since.Add(strangerTime)) {
		p.adopt()
		return false, nil
	}
	p.ledger.Stranger = s
	p.ledger.crossOut(isStrangerDebt)
	p.owe(debt{
		URL: r.Requested, Reason: feedhistory.ReasonForeign, Found: p.now,
		Message: "another feed answers at the address: neither its id nor any of its entries is known",
	})
	_ = p.failed(nil, &strangerError{f.URL}) // without a document, failed returns no error
	return true, nil
}

func isStrangerDebt(d debt) bool { return d.Kind == debtStranger }

// answered notes that the feed itself has answered.
func (p *poll) answered() {
	p.ledger.Stranger = nil
	p.ledger.crossOut(isStrangerDebt)
}

// adopt closes the ledger and begins an empty one, for the feed that answers now. Entries
// of the earlier one stay.
func (p *poll) adopt() {
	f := p.feed
	p.merger.window() // whose ranks keepRanks stores
	past := &generation{f.Title, f.Head, p.ledger.clone()}
	past.Ledger.Rank, past.Ledger.Stored = Rank{}, nil
	past.Ledger.crossOut(isStrangerDebt)
	past.Ledger.Past, past.Ledger.Stranger, past.Ledger.upkeep = nil, nil, upkeep{}
	if head, err := f.Document(); err == nil && head.ID != "" && !slices.Contains(past.Ledger.IDs, head.ID) {
		past.Ledger.IDs = append(slices.Clone(past.Ledger.IDs), head.ID)
	}
	*p.ledger = ledger{Past: past, Since: f.Commits, Census: past.Ledger.Census, upkeep: p.ledger.upkeep}
	f.Head = ""
}

// revive continues the ledger of the earlier feed, which answers again.
func (p *poll) revive(past *generation) {
	p.merger.window() // whose ranks keepRanks stores
	l := past.Ledger.clone()
	l.upkeep = p.ledger.upkeep
	p.feed.Title, p.feed.Head, *p.ledger = past.Title, past.Head, l
	p.feed.Ledger.Reset(false)
}
