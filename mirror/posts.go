package mirror

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// joinPosts puts an earlier copy of a post in the place of one under another ID, and
// reports whether there was any: see feedhistory.Entry.Post. The earlier ID stays.
func (mg *merger) joinPosts(m *mergeResult) (joined bool, err error) {
	if !slices.ContainsFunc(m.entries, (*item).isNew) {
		return false, nil
	}
	var names []string
	s, doc := m.source, m.source.doc
	isNew := func(e *feedhistory.Entry) bool { return m.at[e.ID].isNew() }
	here := sync.OnceValue(func() map[string]*feedhistory.Entry {
		here := make(map[string]*feedhistory.Entry, len(doc.Entries))
		for _, e := range slices.Backward(doc.Entries) {
			here[e.ID] = e
		}
		return here
	})
	for _, e := range doc.Entries {
		if isNew(e) && door.Root.PostID(e) != "" {
			names = append(names, postNames(e.ID)...)
		}
	}
	known := map[string]*Record{}
	if len(names) > 0 {
		if known, err = mg.records(names); err != nil {
			return false, err
		}
	}
	isMixed := mg.noteKinds(doc)
	entries, first := slices.Clone(doc.Entries), make(map[string]*feedhistory.Entry, len(names)) // by PostID, others by Post
	shown := sync.OnceValue(func() map[string]bool { return idsOf(mg.feed.Ledger.l.shown()) })
	for i, e := range entries {
		if !isNew(e) {
			continue
		}
		post := door.Root.PostID(e)
		if o := first[post]; o != nil && s.digests.postOf(o) != s.digests.postOf(e) {
			post = s.digests.postOf(e)
		}
		other := first[post]
		if other == nil {
			found, copied, err := mg.findPost(e, known)
			if err == nil && found == nil && !s.recalled && (isMixed || !s.archive && s.rank.isOfSubscription()) {
				found, copied, err = mg.findTwin(e, here, shown)
			}
			if err != nil {
				return false, err
			}
			switch {
			case found == nil:
				other = mg.underAlias(e, here)
			case here()[found.ID] != nil:
				other = here()[found.ID]
			default:
				other = found
				if copied != "" {
					s.digests.of(found).stored = copied
				}
			}
		}
		if other != nil && other.ID != e.ID {
			mg.feed.Ledger.l.remember(e.ID, other.ID)
			entries[i], joined = other, true
		} else if post != "" {
			first[post] = e
		}
	}
	doc.Entries = entries
	return joined, nil
}

// postNames returns the IDs under which a post may be stored, besides the one it has.
func postNames(id string) (names []string) {
	post := iri.Post(id)
	for _, name := range []string{"http://" + post, "https://" + post, iri.OtherScheme(id)} {
		if name != id && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// aliases has the stored IDs of entries by other IDs under which they have come.
type aliases map[string]string

// aliasLimit is the maximum number of aliases to remember.
const aliasLimit = 2000

// remember notes that an entry has come under another ID than the stored one: when it is edited,
// nothing else will tell. Beyond the limit, those go whose entries the latest reading does not show.
func (l *ledger) remember(alias, id string) {
	if l.Aliases[alias] == id {
		return
	}
	all := maps.Clone(l.Aliases)
	if len(all) >= aliasLimit {
		shown := idsOf(l.shown())
		maps.DeleteFunc(all, func(_, id string) bool { return !shown[id] })
	}
	if all == nil {
		all = aliases{}
	}
	if len(all) < aliasLimit {
		all[alias] = id
	}
	l.Aliases = all
}

// underAlias returns an entry under the ID that an earlier copy was stored with; nil if there is
// none, or the document has that entry, too.
func (mg *merger) underAlias(e *feedhistory.Entry, here func() map[string]*feedhistory.Entry) *feedhistory.Entry {
	id := mg.feed.Ledger.l.Aliases[e.ID]
	if id == "" || here()[id] != nil {
		return nil
	}
	if link, ok := e.Links.Rel("alternate"); ok && !e.WeakID && isOtherPost(link.Href, id) && iri.Post(e.ID) != iri.Post(id) {
		return nil // a guid shared by posts
	}
	return under(e, id)
}

// The kinds of IDs of entries.
const (
	publishedIDs = 1 << iota
	madeIDs
)

// noteKinds notes the kinds of IDs in a document, and reports whether the feed has had both: in
// others, no archive or page needs a search for twins.
func (mg *merger) noteKinds(doc *feedhistory.Document) bool {
	kinds := &mg.feed.Ledger.l.IDKinds
	for _, e := range doc.Entries {
		if e.WeakID {
			*kinds |= madeIDs
		} else {
			*kinds |= publishedIDs
		}
	}
	return mg.feed.Ledger.l.mixesIDs()
}

// mixesIDs reports whether the feed has had both kinds of IDs.
func (l *ledger) mixesIDs() bool { return l.IDKinds == publishedIDs|madeIDs }

// mayRename reports whether entries or tombstones of a document may be stored under other IDs than
// its own, beyond those of one post.
func (mg *merger) mayRename(doc *feedhistory.Document) bool {
	aliases := mg.feed.Ledger.l.Aliases
	return slices.ContainsFunc(doc.Deleted, func(t feedhistory.Tombstone) bool { return aliases[t.Ref] != "" }) ||
		slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return aliases[e.ID] != "" }) || mg.noteKinds(doc)
}

// isOtherPost reports whether a link leads to another page than the one that is an entry's ID.
func isOtherPost(link, id string) bool {
	post, own := iri.Post(link), iri.Post(id)
	return post != "" && own != "" && post != own
}

// renameDeleted puts the tombstones of entries stored under another ID under that one.
func (mg *merger) renameDeleted(doc *feedhistory.Document) {
	aliases := mg.feed.Ledger.l.Aliases
	isAlias := func(t feedhistory.Tombstone) bool { return aliases[t.Ref] != "" }
	if !slices.ContainsFunc(doc.Deleted, isAlias) {
		return
	}
	doc.Deleted = slices.Clone(doc.Deleted)
	for i, t := range doc.Deleted {
		doc.Deleted[i].Ref = cmp.Or(aliases[t.Ref], t.Ref)
	}
}

// findTwin returns an entry under the ID of a stored one that it is
// under another kind of ID, and the stored digest unless its texts have changed: guids come and go
// where two servers answer, and are added once for good. Link, title and time are equal, and just
// one of both has an ID of its own. An entry without ID, link and file may be edited where it was.
func (mg *merger) findTwin(e *feedhistory.Entry, here func() map[string]*feedhistory.Entry, shown func() map[string]bool) (twin *feedhistory.Entry, digest string, err error) {
	at := e.Time()
	_, hasLink := e.Links.Rel("alternate")
	if at.IsZero() || e.Title().Plain() == "" || mg.feed.Commits == 0 || !hasLink && !e.WeakID {
		return nil, "", nil
	}
	key, texts := twinKeys(e)
	if mg.program != nil {
		key, texts = shorter(key), shorter(texts)
	}
	var stored *feedhistory.Entry
	for r, err := range mg.store.Entries(mg.ctx, Query{Feed: mg.feed.URL, Since: at, Until: at.Add(1)}) {
		if err != nil {
			return nil, "", err
		}
		isKind := hasLink && r.Content.WeakID != e.WeakID || !hasLink && r.Content.WeakID && shown()[r.ID]
		if !isKind || here()[r.ID] != nil || r.Copy.Rank.isKept() {
			continue
		}
		var storedKey, storedTexts string
		if mg.program != nil {
			keys := keysOf(r.Content)
			storedKey, storedTexts = keys.twin, keys.texts
		} else if stored, err = r.Entry(); err == nil {
			storedKey, storedTexts = twinKeys(stored)
		} else {
			continue
		}
		switch {
		case storedKey != key:
		case twin != nil:
			return nil, "", nil // either may be it
		case storedTexts != texts:
			twin = under(e, r.ID)
		case mg.program != nil:
			twin, digest = under(e, r.ID), r.Copy.Digest
		default:
			twin, digest = stored, r.Copy.Digest
		}
	}
	return twin, digest, nil
}

// twinKeys returns a digest of an entry's link, title and time, and one of its texts.
func twinKeys(e *feedhistory.Entry) (key, texts string) {
	link, _ := e.Links.Rel("alternate")
	return shortKey(link.Href + "\n" + e.Title().Plain() + "\n" + e.Time().UTC().String()), shortKey(e.Summary().Body + "\n" + e.Content().Body)
}

// under returns an entry under another ID.
func under(e *feedhistory.Entry, id string) *feedhistory.Entry {
	e = clone(e)
	e.ID = id
	return e
}

// findPost returns the stored entry that is an entry's post under another ID, and its
// stored digest; nil if there is none. Campaigns can be any, so then all entries of that time are looked at.
func (mg *merger) findPost(e *feedhistory.Entry, known map[string]*Record) (other *feedhistory.Entry, digest string, err error) {
	post := door.Root.PostID(e)
	if post == "" {
		return nil, "", nil
	}
	query := Query{Feed: mg.feed.URL, Since: e.Time(), Until: e.Time().Add(1)}
	isIn := len(known) > 0 && slices.ContainsFunc(postNames(e.ID), func(name string) bool { return known[name] != nil })
	if scheme, ok := strings.CutSuffix(e.ID, post); !isIn && ok && strings.HasSuffix(scheme, "://") {
		return nil, "", nil
	}
	key := mg.digests.postOf(e)
	for r, err := range mg.store.Entries(mg.ctx, query) {
		if err != nil {
			return nil, "", err
		}
		if r.ID == e.ID || r.Copy.Rank.isKept() || iri.Post(r.ID) != post {
			continue
		}
		if mg.program != nil && keysOf(r.Content).post == postKey(key) { // there is no content, so this copy is used under the earlier ID
			return under(e, r.ID), r.Copy.Digest, nil
		}
		if other, err := r.Entry(); err == nil && other.Post() == key {
			return other, r.Copy.Digest, nil
		}
	}
	for _, r := range known { // an archive may have an earlier version
		if r.Copy.Digest == "" || r.Copy.Rank.isKept() || iri.Post(r.ID) != post {
			continue
		}
		for v, err := range mg.store.Versions(mg.ctx, mg.feed.URL, r.ID) {
			if err != nil {
				return nil, "", err
			}
			if version, err := v.Entry(); err == nil && version.Post() == key {
				return under(e, r.ID), v.Copy.Digest, nil
			}
		}
	}
	return nil, "", nil
}

// Whether two copies are of the same entry if one of them lacks the publisher's id, their links
// tell, else their titles and times. In doubt they are two entries.

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
	did := r.take(from.copyOf(e, e.Digest()), &item{entry: e}, from)
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
