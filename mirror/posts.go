package mirror

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/feedhistory/feedhistory"
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
	here := make(map[string]*feedhistory.Entry, len(doc.Entries))
	for _, e := range slices.Backward(doc.Entries) {
		here[e.ID] = e
	}
	for _, e := range doc.Entries {
		if post := iri.Post(e.ID); isNew(e) && e.Post() != "" {
			names = append(names, "http://"+post, "https://"+post, iri.OtherScheme(e.ID))
		}
	}
	known := map[string]*Record{}
	if len(names) > 0 {
		if known, err = mg.records(names); err != nil {
			return false, err
		}
	}
	isMixed := mg.noteKinds(doc)
	entries, first := slices.Clone(doc.Entries), map[string]*feedhistory.Entry{}
	shown := sync.OnceValue(func() map[string]bool { return idsOf(mg.feed.Ledger.l.shown()) })
	for i, e := range entries {
		if !isNew(e) {
			continue
		}
		post := e.Post()
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
			case here[found.ID] != nil:
				other = here[found.ID]
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
func (mg *merger) underAlias(e *feedhistory.Entry, here map[string]*feedhistory.Entry) *feedhistory.Entry {
	id := mg.feed.Ledger.l.Aliases[e.ID]
	if id == "" || here[id] != nil {
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
	return *kinds == publishedIDs|madeIDs
}

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
func (mg *merger) findTwin(e *feedhistory.Entry, here map[string]*feedhistory.Entry, shown func() map[string]bool) (twin *feedhistory.Entry, digest string, err error) {
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
		if !isKind || here[r.ID] != nil || r.Copy.Rank.isKept() {
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
	post := iri.Post(e.ID)
	if e.Post() == "" {
		return nil, "", nil
	}
	query := Query{Feed: mg.feed.URL, Since: e.Time(), Until: e.Time().Add(1)}
	isIn := known["http://"+post] != nil || known["https://"+post] != nil || known[iri.OtherScheme(e.ID)] != nil
	if !isIn && strings.HasSuffix(e.ID, "://"+post) {
		return nil, "", nil
	}
	for r, err := range mg.store.Entries(mg.ctx, query) {
		if err != nil {
			return nil, "", err
		}
		if r.ID == e.ID || r.Copy.Rank.isKept() || iri.Post(r.ID) != post {
			continue
		}
		if mg.program != nil && keysOf(r.Content).post == postKey(e) { // there is no content, so this copy is used under the earlier ID
			return under(e, r.ID), r.Copy.Digest, nil
		}
		if other, err := r.Entry(); err == nil && other.Post() == e.Post() {
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
			if version, err := v.Entry(); err == nil && version.Post() == e.Post() {
				return under(e, r.ID), v.Copy.Digest, nil
			}
		}
	}
	return nil, "", nil
}
