package mirror

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Recall adds entries to feeds from the memory of others: feed readers, saved
// documents, or the repository of a website. Mirror and Name must be set. It adds feeds
// new to the Store; they are due at once.
//
// Its entries prove nothing about gaps: the verdict stays as it is, and a Recall is no
// poll. A missed window is closed only if the memory has entries from both sides of it:
// the newest from before and the oldest from after. An entry deleted by a feed's
// tombstone does not come back, and one missing from a complete feed is Absent.
//
// Use a Recall in one goroutine only, and the same one for everything from one source:
// it remembers the entries of a few feeds, to recognise those without an id.
type Recall struct {
	Mirror *Mirror
	Name   string // a word for the source, such as "newsboat"; it becomes the Source of each Copy
	DryRun bool   // count only, and store nothing

	known     map[string]*knownEntries   // by feed
	entries   int                        // the number of entries in known
	met       map[string]map[string]bool // by feed, the IDs of window sides that the memory has
	rehearsed map[[2]uint64]bool         // entries that a dry run has counted
}

// A KeptEntry is an entry as a feed reader has kept it.
type KeptEntry struct {
	// Draft is the entry. Its ID is the publisher's; "" if the reader does not have it. Both
	// times may be zero.
	compose.Draft

	Hash string // the reader's hash of the id, in hexadecimal; "" if there is none. See Miniflux's API
	Note string // a remark on the copy, such as "deleted there"; "" for none
}

// Entries adds entries that a feed reader has kept. Title is the feed's, for a feed that
// has none. The Report counts as Changed also an entry of which there is an older copy. An
// entry that cannot be stored is left out: Failure joins the errors of all (errors.Join).
// The error is the Store's or the context's.
func (r *Recall) Entries(ctx context.Context, url, title string, kept []KeptEntry) (*Report, error) {
	if r.Mirror == nil {
		return nil, errors.New("mirror: Recall.Mirror must be set")
	}
	if err := r.Mirror.check(); err != nil {
		return nil, err
	}
	doc, made, bad, err := r.document(ctx, iri.WithoutFragment(strings.TrimSpace(url)), kept)
	if err != nil {
		return nil, err
	}
	doc.Title = title
	done, err := r.add(ctx, url, doc, made, Rank{Time: r.Mirror.now()})
	if err != nil {
		return nil, err
	}
	done.Failure = errors.Join(bad...)
	return done, nil
}

// Document adds a document of the feed itself that somebody has saved, such as a version in
// a repository. Older is the number of documents that the source has from before; at is
// when it was saved, in case it does not say when it was updated.
func (r *Recall) Document(ctx context.Context, url string, doc *feedhistory.Document, older int, at time.Time) (*Report, error) {
	if doc == nil {
		return nil, errors.New("mirror: Recall.Document: the Document is nil")
	}
	rank := rankOf(doc, Rank{Time: at, Seq: int64(min(older, 1<<30)) + 1})
	return r.add(ctx, url, doc, nil, rank)
}

// triesToAdd is how often a Recall begins again if another mirror is at work on the feed.
const triesToAdd = 10

// add merges a document, and commits it. Made has the IDs that entries without one have got.
func (r *Recall) add(ctx context.Context, url string, doc *feedhistory.Document, made map[string]bool, rank Rank) (*Report, error) {
	if err := r.Mirror.check(); err != nil {
		return nil, err
	}
	for try := time.Duration(1); ; try++ {
		done, err := r.merge(ctx, iri.WithoutFragment(strings.TrimSpace(url)), doc, made, rank)
		if !errors.Is(err, ErrConflict) || try == triesToAdd {
			return done, err
		}
		select {
		case <-time.After(try * 50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *Recall) merge(ctx context.Context, url string, doc *feedhistory.Document, made map[string]bool, rank Rank) (*Report, error) {
	store := r.Mirror.Store
	f, err := store.Feed(ctx, url)
	if errors.Is(err, ErrNotFound) {
		f, err = NewFeed(url), nil
	}
	if err != nil {
		return nil, err
	}
	if err := f.fillSides(ctx, store); err != nil {
		return nil, err
	}
	fresh := *doc
	fresh.Entries = r.unrehearsed(url, doc.Entries)
	from := source{doc: &fresh, rank: rank, recalled: true, name: r.Name}
	if f.Kind == feedhistory.KindComplete && f.Ledger.l.Known.URL != "" {
		from.absence = max(f.Polls<<32, 1)
	}
	version, done := f.Commits, &Report{Feed: f}
	mg := merger{
		ctx: ctx, store: store, feed: f, from: version, now: r.Mirror.now(), changes: done, allowance: newAllowance(ctx, r.Mirror, f), digests: newDigests(false),
	}
	m, err := mg.merge(from)
	if err != nil {
		return nil, err
	}
	for _, e := range fresh.Entries {
		if got := m.record(e.ID); made[e.ID] && got != nil && got.FirstCommit > version {
			f.Ledger.l.Unnamed++
		}
	}
	done.Added, done.Changed, done.Refused = 0, done.Changed+len(m.change.Versions), m.refused
	for got := range m.records() {
		if got.FirstCommit > version {
			done.Added++
		}
	}
	done.Closed = r.close(f, doc.Entries)
	return done, r.commit(ctx, f, doc, m)
}

// close removes the missed windows of which the memory has entries from both sides, and
// returns their number.
func (r *Recall) close(f *Feed, entries []*feedhistory.Entry) (closed int) {
	if r.met == nil {
		r.met = map[string]map[string]bool{}
	}
	if r.met[f.URL] == nil {
		r.met[f.URL] = map[string]bool{}
	}
	met := r.met[f.URL]
	l := &f.Ledger.l
	for _, d := range l.Debts {
		for _, e := range entries {
			met[e.ID] = met[e.ID] || d.isMissed() && (slices.Contains(d.Before, e.ID) || slices.Contains(d.After, e.ID))
		}
	}
	n := len(l.Debts)
	l.crossOut(func(d debt) bool {
		return d.Kind == debtWindow && len(d.Before) > 0 && len(d.After) > 0 && met[d.Before[0]] && met[d.After[0]]
	})
	if closed = n - len(l.Debts); closed > 0 {
		l.Unsettled = l.Kind == feedhistory.KindArchived
		f.judge()
	}
	return closed
}

// commit stores a change, unless it changes nothing.
func (r *Recall) commit(ctx context.Context, f *Feed, doc *feedhistory.Document, m *mergeResult) error {
	c := &m.change
	titled := f.Title == "" && doc.Title != ""
	if titled {
		f.Title = doc.Title
	}
	if f.Head == "" && doc.URL != "" {
		f.Head = headOf(doc)
	}
	isChanged := titled || f.Commits == 0 || len(c.Put)+len(c.Touch)+len(c.Versions) > 0
	c.Feed = f
	if r.DryRun || !isChanged {
		return nil
	}
	return r.Mirror.Store.Commit(ctx, c)
}

// unrehearsed returns the entries that a dry run has not counted yet.
func (r *Recall) unrehearsed(feed string, entries []*feedhistory.Entry) []*feedhistory.Entry {
	if !r.DryRun {
		return entries
	}
	if r.rehearsed == nil {
		r.rehearsed = map[[2]uint64]bool{}
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e *feedhistory.Entry) bool {
		key := keyOf(feed, e.ID)
		was := r.rehearsed[key]
		r.rehearsed[key] = true
		return was
	})
}

// This file tells whether two copies are of the same entry if one of them lacks the
// publisher's id: by their links, else by their titles and times. In doubt they are two
// entries.

// A likeness has the parts of an entry's identity readers keep besides its id.
type likeness struct {
	link  string // see linkKey; "" if it does not tell entries apart
	title string // see titleKey
	times [2]int64
}

// likenessOf returns the likeness of an entry with the given link and title.
func likenessOf(link, title string, published, updated time.Time) likeness {
	l := likeness{link: linkKey(link), title: titleKey(title)}
	for i, t := range []time.Time{published, updated} {
		if !t.IsZero() {
			l.times[i] = t.Unix()
		}
	}
	return l
}

// zones is how far times may differ because a zone was read differently, in seconds.
const zones = 14 * 3600

// isSame reports whether two copies that share a link, or have none, are of one entry.
// Only says whether no other entry at hand has the link.
func (l likeness) isSame(other likeness, only bool) bool {
	titles := l.title == other.title && l.title != ""
	agree, near, dated := false, false, l.times != [2]int64{} && other.times != [2]int64{}
	for _, a := range l.times {
		for _, b := range other.times {
			if a != 0 && b != 0 {
				agree = agree || a == b
				near = near || max(a-b, b-a) <= zones
			}
		}
	}
	if l.link == "" || l.link != other.link {
		return l.link == "" && other.link == "" && titles && agree
	}
	return titles && (agree || near || !dated) || agree && only
}

// name returns the ID of an entry that has none, and has not got the one it would take
// first: its link.
func (l likeness) name() string {
	h := sha256.New()
	for _, part := range []string{l.link, l.title, fmt.Sprint(firstOf(l.times))} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return "urn:sha256:" + hex.EncodeToString(h.Sum(nil))
}

func firstOf(times [2]int64) int64 {
	if times[0] != 0 {
		return times[0]
	}
	return times[1]
}

// first returns the ID that an entry without one takes first: its link, without tracking.
func (l likeness) first(link string) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(link), "://")
	if strings.TrimSuffix(rest, "/") == l.link {
		return link
	}
	return strings.ToLower(scheme) + "://" + l.link
}

// isNameOf reports whether the entry got an ID because it had none.
func (l likeness) isNameOf(id string) bool {
	return l.link != "" && linkKey(id) == l.link || id == l.name()
}

// names returns the IDs that readers' copies of an entry may have got, the surest first.
func (l likeness) names(link string) []string {
	names := []string{l.name()}
	for _, t := range l.times {
		at := l
		at.times = [2]int64{t, 0}
		names = append(names, at.name())
		at.link = ""
		names = append(names, at.name())
	}
	if l.link != "" {
		names = append(names, link, "https://"+l.link, "http://"+l.link, "https://"+l.link+"/", "http://"+l.link+"/")
	}
	return slices.Compact(names)
}

// linkKey returns a link without the parts that readers change: the scheme, the case of
// the host, a final slash, and parameters for tracking. It returns "" for a link that
// all entries of a feed may share: that of a whole site.
func linkKey(link string) string {
	u, err := url.Parse(strings.TrimSpace(link))
	if err != nil || u.Host == "" {
		return ""
	}
	var query []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		if part != "" && !iri.IsCampaign(part) {
			query = append(query, part)
		}
	}
	key := strings.ToLower(u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
	if len(query) > 0 {
		key += "?" + strings.Join(query, "&")
	}
	if u.Fragment != "" && !iri.IsCampaign(u.Fragment) {
		key += "#" + u.EscapedFragment()
	}
	if key == strings.ToLower(u.Host) {
		return ""
	}
	return key
}

// titleKey returns the letters and digits of a title: readers change the rest.
func titleKey(title string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// hashesOf returns the hashes by which readers know an id: Miniflux keeps the SHA-256 of
// those it has found in feeds, and the FNV-128a of those it has imported.
func hashesOf(id string) []string {
	sum := sha256.Sum256([]byte(id))
	imported := fnv.New128a()
	imported.Write([]byte(id))
	return []string{hex.EncodeToString(sum[:]), hex.EncodeToString(imported.Sum(nil))}
}

// unnamed finds the entries that readers have brought without the publisher's ids, and
// that have come under them now, by the latter. Each is found once in a poll.
func (mg *merger) unnamed(m *mergeResult) (map[string]*Record, error) {
	if mg.feed.Ledger.l.Unnamed == 0 {
		return nil, nil
	}
	names, links := map[*item][]string{}, map[string]int{}
	var all []string
	likenesses := map[*item]likeness{}
	for _, it := range m.entries {
		e := it.entry
		if e == nil {
			continue
		}
		link, _ := e.Links.Rel("alternate")
		l := likenessOf(link.Href, e.Title().Plain(), e.Published, e.Updated)
		links[l.link]++
		if it.record != nil && it.record.Copy.Digest != "" {
			continue
		}
		likenesses[it], names[it] = l, l.names(link.Href)
		all = append(all, names[it]...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	known, err := mg.records(all)
	if err != nil {
		return nil, err
	}
	found := map[string]*Record{}
	for _, it := range m.entries {
		for _, name := range names[it] {
			r := known[name]
			if r == nil || r.State != Live || !r.Copy.Rank.isKept() || mg.taken[name] || name == it.id || m.record(name) != nil {
				continue
			}
			r, err := mg.same(r, likenesses[it], links[likenesses[it].link] == 1)
			if err != nil {
				return nil, err
			}
			if r != nil {
				if mg.taken == nil {
					mg.taken = map[string]bool{}
				}
				mg.taken[name], found[it.id] = true, r
				break
			}
		}
	}
	return found, nil
}

// replaceUnnamed makes the entries that unnamed has found Absent: they are there under the
// publisher's ids, with the readers' copies, as if these had come under them.
func (mg *merger) replaceUnnamed(m *mergeResult, unnamed map[string]*Record) error {
	for id, r := range unnamed {
		named := m.record(id)
		if named.Copy.Digest == "" {
			continue // there was no room for it
		}
		copies := []*Record{{ID: r.ID, Copy: r.Copy, Content: r.Content}}
		for v, err := range mg.store.Versions(mg.ctx, mg.feed.URL, r.ID) {
			if err != nil {
				return err
			}
			copies = append(copies, v)
		}
		for _, v := range copies {
			if err := mg.rename(m, named, v); err != nil {
				return err
			}
		}
		r.Absence = max(mg.feed.Polls<<32, 1)
		it := &item{id: r.ID, record: r, before: Live, did: effect{touched: true}}
		m.others, m.at[it.id] = append(m.others, it), it
		mg.settle(m, it)
		mg.changes.Added, mg.changes.Changed, mg.changes.Deleted = mg.changes.Added-1, mg.changes.Changed+1, mg.changes.Deleted-1
	}
	return nil
}

// rename adds a reader's copy to the record with the publisher's id.
func (mg *merger) rename(m *mergeResult, r *Record, v *Record) error {
	e, err := v.Entry()
	if err == nil {
		d := compose.DraftOf(e)
		d.ID = r.ID
		e, err = d.Undated()
	}
	if err != nil {
		return fmt.Errorf("entry %s: %w", v.ID, err)
	}
	before, from := *r, source{recalled: true}
	did := r.take(from.copyOf(e, e.Digest()), e, nil, from)
	if did.content {
		did.version = &Record{ID: r.ID, Copy: before.Copy, Content: before.Content}
	}
	if did.version != nil && mg.allowance.keep > 0 {
		m.change.Versions = append(m.change.Versions, did.version)
		mg.feed.Ledger.l.Usage.Contents += did.version.Content.Size
	}
	return nil
}

// same returns a record without the publisher's id, with its content, if it is of an entry;
// nil otherwise.
func (mg *merger) same(r *Record, l likeness, only bool) (*Record, error) {
	whole, err := Lookup(mg.ctx, mg.store, mg.feed.URL, r.ID)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := whole.Content
	if !likenessOf(c.Link, c.Title, c.Published, c.Updated).isSame(l, only) {
		return nil, nil
	}
	return whole, nil
}

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
	all := make([]byte, 0, 256)
	for _, text := range texts {
		all = append(strconv.AppendInt(all, int64(len(text)), 10), ':')
		all = append(all, text...)
	}
	sum := sha256.Sum256(all)
	return [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
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
	for _, q := range []Query{{Feed: feed, States: Current | Former, Limit: mostKnown}, {Feed: feed, States: Traces, Limit: mostKnown}} {
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
func (r *Recall) document(ctx context.Context, feed string, kept []KeptEntry) (doc *feedhistory.Document, made map[string]bool, bad []error, err error) {
	links := map[[2]uint64]int{}
	for i := range kept {
		links[kept[i].likeness().place()]++
	}
	doc, made = &feedhistory.Document{Format: feedhistory.FormatAtom}, map[string]bool{}
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
			bad = append(bad, fmt.Errorf("entry %q: %w", cmp.Or(k.ID, k.link(), k.Title.Plain()), err))
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
	i := slices.IndexFunc(k.Links, func(l feedhistory.Link) bool { return l.Rel == "alternate" })
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
	d.Extensions = append(slices.Clone(d.Extensions), compose.KeptBy(reader))
	if d.Updated.IsZero() {
		d.Updated = d.Published
	}
	e, err := d.Undated()
	if err != nil {
		return nil, err
	}
	return compose.DraftOf(e).Undated() // which stays the same under another ID, too: see merger.rename
}
