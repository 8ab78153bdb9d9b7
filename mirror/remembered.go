package mirror

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/feedhistory/feedhistory"
)

// mostKnown is the number of entries that a Recall remembers, of all feeds. Of a larger
// feed it remembers the newest.
const mostKnown = 300_000

// knownEntries are the entries of a feed, by the parts of their identity readers keep.
type knownEntries struct {
	entries []knownEntry
	byID    map[[2]uint64]int
	byHash  map[[2]uint64]int
	byLink  map[[2]uint64][]int // those without a link by their titles
}

type knownEntry struct {
	id string
	likeness
}

// keyOf returns a short key for texts. Two texts share one by chance only if somebody
// could break SHA-256.
func keyOf(texts ...string) [2]uint64 {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	sum := h.Sum(nil)
	return [2]uint64{binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:])}
}

// add adds an entry; of several with one ID only the first.
func (k *knownEntries) add(id string, l likeness) {
	if _, ok := k.byID[keyOf(id)]; ok {
		return
	}
	n, place := len(k.entries), l.place()
	k.entries = append(k.entries, knownEntry{id, l.short()})
	k.byID[keyOf(id)] = n
	for _, hash := range hashesOf(id) {
		k.byHash[keyOf(hash)] = n
	}
	k.byLink[place] = append(k.byLink[place], n)
}

// short returns a likeness with a title that is only good for comparing.
func (l likeness) short() likeness {
	if l.title != "" {
		l.title = fmt.Sprint(keyOf(l.title))
	}
	return l
}

// place returns the key of the entries to which one may be the same.
func (l likeness) place() [2]uint64 {
	if l.link == "" {
		return keyOf(l.title)
	}
	return keyOf("", l.link)
}

// knownOf returns the entries of a feed. It reads them once.
func (r *Recall) knownOf(ctx context.Context, feed string) (*knownEntries, error) {
	if k := r.known[feed]; k != nil {
		return k, nil
	}
	if r.known == nil || r.entries >= mostKnown {
		r.known, r.entries = map[string]*knownEntries{}, 0
	}
	k := &knownEntries{byID: map[[2]uint64]int{}, byHash: map[[2]uint64]int{}, byLink: map[[2]uint64][]int{}}
	for _, q := range []Query{{Feed: feed, Deleted: true, Limit: mostKnown}, {Feed: feed, Bare: true, Limit: mostKnown}} {
		for rec, err := range r.Mirror.Store.Entries(ctx, q) {
			if err != nil {
				return nil, err
			}
			c := &rec.Content
			l := likenessOf(c.Link, c.Title, c.Published, c.Updated)
			if rec.State == Absent && rec.Copy.Rank.isKept() && l.isNameOf(rec.ID) {
				k.byID[keyOf(rec.ID)] = -1 // it is there under the publisher's id
				continue
			}
			k.add(rec.ID, l)
		}
	}
	r.known[feed], r.entries = k, r.entries+len(k.entries)
	return k, nil
}

// find returns the entry in the feed that a reader's copy is of; nil if there is none. Only
// says whether no other copy at hand has its link.
func (k *knownEntries) find(hash string, l likeness, only bool) (best *knownEntry) {
	if n, ok := k.byHash[keyOf(hash)]; hash != "" && ok {
		return &k.entries[n]
	}
	same := k.byLink[l.place()]
	only, l = only && len(same) == 1, l.short()
	for _, n := range same {
		switch e := &k.entries[n]; {
		case !l.isSame(e.likeness, only):
		case l == e.likeness:
			return e
		case best == nil:
			best = e
		}
	}
	return best
}

// document returns the entries of a reader as a document, without bad ones that cannot be
// stored. Made has the new IDs that entries without one have got.
func (r *Recall) document(ctx context.Context, feed string, kept []KeptEntry) (doc *feedhistory.Document, made map[string]bool, bad []*EntryError, err error) {
	links := map[[2]uint64]int{}
	for i := range kept {
		links[kept[i].likeness().place()]++
	}
	doc, made = &feedhistory.Document{Format: feedhistory.Atom}, map[string]bool{}
	for i := range kept {
		k := &kept[i]
		if k.ID == "" {
			isNew, err := r.name(ctx, feed, k, links[k.likeness().place()] == 1)
			if err != nil {
				return nil, nil, nil, err
			}
			made[k.ID] = isNew
		} else if known := r.known[feed]; known != nil {
			known.add(k.ID, k.likeness())
		}
		e, err := k.entry(r.Name)
		if err != nil {
			bad = append(bad, &EntryError{cmp.Or(k.ID, k.link(), k.Title.Plain()), err})
			continue
		}
		doc.Entries = append(doc.Entries, e)
	}
	return doc, made, bad, nil
}

// name gives an entry without an id the ID of the same entry in the feed, or a new one: its
// link or, if another entry has that, one made of link, title and time. It reports whether
// the ID is new.
func (r *Recall) name(ctx context.Context, feed string, k *KeptEntry, only bool) (isNew bool, err error) {
	known, err := r.knownOf(ctx, feed)
	if err != nil {
		return false, err
	}
	l := k.likeness()
	if e := known.find(k.Hash, l, only); e != nil {
		k.ID = e.id
		return false, nil
	}
	k.ID = l.first(k.link())
	if _, taken := known.byID[keyOf(k.ID)]; taken || l.link == "" {
		k.ID = l.name()
	}
	known.add(k.ID, l)
	r.entries++
	return true, nil
}

func (k *KeptEntry) link() string {
	i := slices.IndexFunc(k.Links, func(l feedhistory.Link) bool { return l.Rel == feedhistory.RelAlternate })
	if i < 0 {
		return ""
	}
	return k.Links[i].Href
}

func (k *KeptEntry) likeness() likeness {
	return likenessOf(k.link(), k.Title.Plain(), k.Published, k.Updated)
}

// entry returns the entry, which says which reader has kept it.
func (k *KeptEntry) entry(reader string) (*feedhistory.Entry, error) {
	d := k.Draft
	if k.Note != "" {
		reader += " (" + k.Note + ")"
	}
	d.Extensions = append(slices.Clone(d.Extensions), feedhistory.KeptByElement(reader))
	if d.Updated.IsZero() {
		d.Updated = d.Published
	}
	e, err := d.Undated()
	if err != nil {
		return nil, err
	}
	return e.Draft().Undated() // which stays the same under another ID, too: see merger.rename
}
