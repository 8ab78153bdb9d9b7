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

// strangers tell the feed from others.
type strangers struct{ *session }

// isStranger reports whether a document is of another feed than the one known: another
// id, or without ids nothing of the head in common, no known entry, and no link to a known
// archive.
func (st *strangers) isStranger(doc *feedhistory.Document, requested string) (bool, error) {
	if st.ledger.Known.URL == "" || !st.had && st.ledger.Known.Older == "" { // a feed without entries, which leads to none
		return false, nil
	}
	head, err := st.feed.Document()
	if err != nil {
		return false, nil // nothing to compare it with
	}
	if older, ok := olderOf(doc, feedhistory.KindArchived); ok && st.documents.get(older) != nil {
		return false, nil
	}
	if !door.Root.IsStranger(doc, head, st.ledger.IDs, st.ledger.Shown) {
		return false, st.documents.err
	}
	has, err := st.hasEntryOf(doc)
	return !has && !st.joins(doc, head, requested), cmp.Or(err, st.documents.err)
}

// mostJoining is the maximum number of archives to request to find whether a document is of
// another feed.
const mostJoining = 10

// joins reports whether the chain from a document leads to a known archive, to one with a known
// entry, or to the own address of the document shown before: feeds of which each document has an id of its own show only the
// entries since the last archive was closed.
func (st *strangers) joins(doc, before *feedhistory.Document, requested string) bool {
	own := map[string]bool{}
	for _, l := range before.Links {
		if url := iri.Address(l.Href); (l.Rel == "self" || l.Rel == "via") && url != requested && url != st.feed.URL {
			own[url] = true
		}
	}
	client := st.m.clientFor(st.feed.URL)
	for range mostJoining {
		older, ok := olderOf(doc, feedhistory.KindArchived)
		if !ok {
			return false
		}
		if own[older] || st.documents.get(older) != nil {
			return true
		}
		var err error
		if doc, err = client.Get(st.ctx, older); err != nil {
			return false
		}
		if has, err := st.hasEntryOf(doc); has || err != nil {
			st.documents.err = cmp.Or(st.documents.err, err)
			return has
		}
	}
	return false
}

// hasEntryOf reports whether an entry of a document is known, of the feed at the address now.
func (s *session) hasEntryOf(doc *feedhistory.Document) (bool, error) {
	ids := make([]string, len(doc.Entries))
	for i, e := range doc.Entries {
		ids[i] = e.ID
	}
	records, err := s.m.Store.Records(s.ctx, s.feed.URL, ids)
	for _, r := range records {
		if r.Copy.Digest != "" && r.FirstCommit > s.ledger.Since {
			return true, err
		}
	}
	return false, err
}

// meet decides about a subscription document that may be of another feed. It reports
// whether the document is set aside.
func (st *strangers) meet(doc *feedhistory.Document, r feedhistory.Response, requested string) (aside bool, err error) {
	f := st.feed
	if doc == nil { // it has not changed
		st.answered()
		return false, nil
	}
	if st.isEarlier(doc) {
		st.revive(st.ledger.Past)
		return false, nil
	}
	is, err := st.isStranger(doc, requested)
	if err != nil || !is {
		st.answered()
		return false, err
	}
	signature := shortKey(doc.ID + "\n" + doc.Title)
	s := st.ledger.Stranger
	if s == nil || s.Digest != signature {
		s = &stranger{Digest: signature, Since: st.now}
	}
	s = &stranger{s.Digest, s.Polls + 1, s.Since}
	led := r.Requested != iri.WithoutFragment(requested) || // current, say; a redirect proves nothing
		r.Permanent != "" && r.Permanent == f.NewAddress() // unless the feed has announced it
	if led || s.Polls >= strangerPolls && !st.now.Before(s.Since.Add(strangerTime)) {
		st.adopt()
		return false, nil
	}
	st.ledger.Stranger = s
	st.ledger.crossOut(isStrangerDebt)
	st.owe(debt{
		URL: r.Requested, Reason: feedhistory.ReasonForeign, Found: st.now,
		Message: "another feed answers at the address: neither its id nor any of its entries is known",
	})
	return true, nil
}

// isEarlier reports whether a document is of the earlier feed at the address, and not of the present
// one: by its id, or without one by its head section and the entries last shown.
func (s *session) isEarlier(doc *feedhistory.Document) bool {
	past := s.ledger.Past
	switch {
	case past == nil || slices.Contains(s.ledger.IDs, doc.ID):
		return false
	case doc.ID != "":
		return slices.Contains(past.Ledger.IDs, doc.ID)
	}
	head, err := s.feed.Document()
	before, failed := (&Feed{Head: past.Head, Ledger: Ledger{l: past.Ledger}}).Document()
	return err == nil && failed == nil && door.Root.IsStranger(doc, head, nil, s.ledger.Shown) && !door.Root.IsStranger(doc, before, nil, past.Ledger.Shown)
}

func isStrangerDebt(d debt) bool { return d.Kind == debtStranger }

// answered notes that the feed itself has answered.
func (st *strangers) answered() {
	st.ledger.Stranger = nil
	st.ledger.crossOut(isStrangerDebt)
}

// adopt closes the ledger and begins an empty one, for the feed that answers now. Entries
// of the earlier one stay.
func (st *strangers) adopt() {
	f := st.feed
	st.merger.window() // whose ranks keepRanks stores
	past := &generation{f.Title, f.Head, st.ledger.clone(), st.merger.program.closed()}
	st.merger.program.adopt()
	past.Ledger.Rank, past.Ledger.Stored, past.Ledger.Rows, past.Ledger.Ahead = Rank{}, nil, nil, 0
	past.Ledger.crossOut(isStrangerDebt)
	past.Ledger.Past, past.Ledger.Stranger, past.Ledger.upkeep = nil, nil, upkeep{}
	if head, err := f.Document(); err == nil && head.ID != "" && !slices.Contains(past.Ledger.IDs, head.ID) {
		past.Ledger.IDs = append(slices.Clone(past.Ledger.IDs), head.ID)
	}
	*st.ledger = ledger{succession: succession{Past: past, Since: f.Commits}, Census: past.Ledger.Census, upkeep: st.ledger.upkeep}
	f.Head = ""
}

// revive continues the ledger of the earlier feed, which answers again.
func (st *strangers) revive(past *generation) {
	st.merger.window() // whose ranks keepRanks stores
	st.merger.program.revive(past.Table)
	l := past.Ledger.clone()
	l.upkeep, l.Unsettled = st.ledger.upkeep, l.Kind == feedhistory.KindArchived // its archives may have been read as the other's
	st.feed.Title, st.feed.Head, *st.ledger = past.Title, past.Head, l
	st.feed.Ledger.Reset(false)
}
