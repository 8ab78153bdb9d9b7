package mirror

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
)

// A Quota limits how much of a Store one feed may fill. A Mirror does not store more;
// the rest is a gap, until you raise the Quota. The mirror still updates the entries it
// has, up to twice the Bytes.
type Quota struct {
	// Bytes is the maximum size of the entries and their earlier versions, as published,
	// plus the records of archive documents. A store needs more space, for example for
	// indexes. Zero means 2 GiB, a negative number no limit.
	Bytes int64 `json:"bytes"`

	// Entries is the maximum number of entries (deleted ones included), tombstones of
	// unknown entries, and archive documents, all together. Zero means five million, a
	// negative number no limit.
	Entries int64 `json:"entries"`
}

func (q Quota) withDefaults() Quota {
	q = Quota{Bytes: cmp.Or(q.Bytes, 2<<30), Entries: cmp.Or(q.Entries, 5_000_000)}
	if q.Bytes < 0 {
		q.Bytes = math.MaxInt64
	}
	if q.Entries < 0 {
		q.Entries = math.MaxInt64
	}
	return q
}

// ErrQuota is among the errors of a Gap caused by the Quota.
var ErrQuota = errors.New("the quota of the feed is used up")

// A usage is the part of its Quota a feed has used, counted since quotas exist.
type usage struct {
	Contents   int64 `json:"contents,omitempty"`   // bytes of entries and their earlier versions: the sum of Content.Size
	Tombstones int64 `json:"tombstones,omitempty"` // the number of tombstones of unknown entries
	Refs       int64 `json:"refs,omitempty"`       // bytes of the IDs of those entries
	Documents  int64 `json:"documents,omitempty"`  // bytes of the records of archive documents
}

func (u *usage) bytes() int64 { return u.Contents + u.Refs + u.Documents }

// An allowance is the rest of a feed's Quota.
type allowance struct {
	ctx      context.Context
	store    Store
	feed     *Feed
	keep     int // how many versions the store keeps of an entry
	quota    Quota
	full     bool            // the quota is used up
	entering int64           // the number of entries about to be counted
	rows     map[string]Copy // the copies in the rows of entries that have greater ranks, by ID; see merger.raise
}

// newAllowance returns the allowance at the start of a poll. It determines
// whether the quota is still used up.
func newAllowance(ctx context.Context, m *Mirror, f *Feed) *allowance {
	a := &allowance{ctx: ctx, store: m.Store, feed: f, keep: m.keep(), quota: m.Quota.withDefaults()}
	full := &f.Ledger.l.Full
	if a.quota.Bytes > full.Bytes || a.quota.Entries > full.Entries {
		*full = Quota{}
	}
	a.full = *full != Quota{}
	return a
}

// fits reports whether there is room for the given numbers of entries and
// bytes. Once there is not, nothing new fits until the Quota is raised.
func (a *allowance) fits(entries, bytes int64) bool {
	f := a.feed
	held := f.Entries + f.Deleted + f.Ledger.l.Usage.Tombstones + f.Documents + a.entering
	if a.full || entries > a.quota.Entries-held || bytes > a.quota.Bytes-f.Size() {
		a.fill()
		return false
	}
	return true
}

func (a *allowance) fill() {
	a.full = true
	a.feed.Ledger.l.Full = cmp.Or(a.feed.Ledger.l.Full, a.quota)
}

// admit reports whether there is room for the change of a record from was to r, and
// counts it. It drops an earlier version that does not fit.
func (a *allowance) admit(was, r *Record, did *effect, isStored bool) (bool, error) {
	if !did.content && !did.resigned && did.version == nil {
		return true, nil
	}
	u, isNew := &a.feed.Ledger.l.Usage, was.Copy.Digest == ""
	growth := r.Content.Size
	if !isNew {
		var err error
		if growth, err = a.growth(was, r, did); err != nil {
			return false, err
		}
	}
	switch {
	case isNew:
		if !a.fits(1, growth) {
			return false, nil
		}
		a.entering++
		if isStored { // until now only a tombstone was stored
			u.Tombstones, u.Refs = max(0, u.Tombstones-1), max(0, u.Refs-int64(len(r.ID)))
		}
	case did.version != nil && growth > 0 && (a.full || growth > a.quota.Bytes-u.bytes()):
		did.version = nil
		return true, nil
	case growth > 0 && growth/2 > a.quota.Bytes-u.bytes()/2:
		a.fill()
		return false, nil
	}
	u.Contents = max(0, u.Contents+growth)
	return true, nil
}

// reserveTombstone counts a tombstone of an unknown entry and reports whether
// it fits.
func (a *allowance) reserveTombstone(id string) bool {
	if !a.fits(1, int64(len(id))) {
		return false
	}
	a.feed.Ledger.l.Usage.Tombstones++
	a.feed.Ledger.l.Usage.Refs += int64(len(id))
	return true
}

// growth returns by how many bytes an entry and its earlier versions grow when
// r replaces was and a version is added. It follows the rules for stores in
// Change. It drops a version that is stored already, or for which there is no place.
func (a *allowance) growth(was, r *Record, did *effect) (int64, error) {
	if did.resigned {
		return r.Content.Size - was.Content.Size, nil
	}
	var before, after int64
	var kept []*Record
	for v, err := range a.store.Versions(a.ctx, a.feed.URL, r.ID) {
		if err != nil {
			return 0, err
		}
		before += v.Content.Size
		kept = append(kept, &Record{Copy: v.Copy, Content: Content{Size: v.Content.Size}})
	}
	add := func(v *Record) (isNew bool) {
		same := func(o *Record) bool { return o.Copy.Digest == v.Copy.Digest }
		if isNew = !slices.ContainsFunc(kept, same); isNew {
			kept = append(kept, v)
		}
		return isNew
	}
	if was.Copy.Digest != r.Copy.Digest && was.Content.Format != "" {
		add(&Record{Copy: cmp.Or(a.rows[was.ID], was.Copy), Content: was.Content})
	}
	if added := did.version; added != nil {
		if !add(added) {
			did.version = nil
		}
	}
	kept = slices.DeleteFunc(kept, func(v *Record) bool { return v.Copy.Digest == r.Copy.Digest })
	slices.SortFunc(kept, newer)
	kept = kept[:min(len(kept), a.keep)]
	for _, v := range kept {
		after += v.Content.Size
	}
	if !slices.Contains(kept, did.version) {
		did.version = nil // it is older than those
	}
	return after - before + r.Content.Size - was.Content.Size, nil
}

// reserveDocument counts the record of a document and reports whether it fits. The
// record replaces the one of other, unless other is nil.
func (a *allowance) reserveDocument(d, other *DocumentRecord) bool {
	growth, entries := d.size(), int64(1)
	if other != nil {
		growth, entries = growth-other.size(), 0
	}
	if growth > 0 && !a.fits(entries, growth) && other == nil {
		return false
	}
	u := &a.feed.Ledger.l.Usage
	u.Documents = max(0, u.Documents+growth)
	return true
}
