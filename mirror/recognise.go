package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/feedhistory/feedhistory"
)

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

// isNameOf reports whether an ID is one that the entry got because it had none.
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
		if part != "" && !isTracking(part) {
			query = append(query, part)
		}
	}
	key := strings.ToLower(u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
	if len(query) > 0 {
		key += "?" + strings.Join(query, "&")
	}
	if u.Fragment != "" && !isTracking(u.Fragment) {
		key += "#" + u.EscapedFragment()
	}
	if key == strings.ToLower(u.Host) {
		return ""
	}
	return key
}

// isTracking reports whether a query parameter tells the site where its reader comes from.
func isTracking(parameter string) bool {
	name, _, _ := strings.Cut(strings.ToLower(parameter), "=")
	return strings.HasPrefix(name, "utm_") || slices.Contains([]string{"fbclid", "gclid", "mc_cid", "mc_eid", "igshid", "yclid", "msclkid"}, name)
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
func (mg *merger) unnamed(entries []*feedhistory.Entry, records map[string]*Record) (map[string]*Record, error) {
	if mg.feed.Unnamed == 0 {
		return nil, nil
	}
	names, links := map[*feedhistory.Entry][]string{}, map[string]int{}
	var all []string
	likenesses := map[*feedhistory.Entry]likeness{}
	for _, e := range entries {
		link, _ := e.Links.Rel(feedhistory.RelAlternate)
		l := likenessOf(link.Href, e.Title().Plain(), e.Published, e.Updated)
		links[l.link]++
		if r := records[e.ID]; r != nil && r.Copy.Digest != "" {
			continue
		}
		likenesses[e], names[e] = l, l.names(link.Href)
		all = append(all, names[e]...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	known, err := mg.store.Records(mg.ctx, mg.feed.URL, all)
	if err != nil {
		return nil, err
	}
	found := map[string]*Record{}
	for _, e := range entries {
		for _, name := range names[e] {
			r := known[name]
			if r == nil || r.State != Live || !r.Copy.Rank.isKept() || mg.taken[name] || name == e.ID || records[name] != nil {
				continue
			}
			r, err := mg.same(r, likenesses[e], links[likenesses[e].link] == 1)
			if err != nil {
				return nil, err
			}
			if r != nil {
				if mg.taken == nil {
					mg.taken = map[string]bool{}
				}
				mg.taken[name], found[e.ID] = true, r
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
		named := m.records[id]
		if named.Copy.Digest == "" {
			continue // there was no room for it
		}
		copies := []*Version{{ID: r.ID, Copy: r.Copy, Content: r.Content}}
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
		m.records[r.ID], r.Absence = r, max(mg.feed.Polls<<32, 1)
		mg.settle(m, r, Live, &effect{touched: true})
		mg.changes.Added, mg.changes.Changed, mg.changes.Deleted = mg.changes.Added-1, mg.changes.Changed+1, mg.changes.Deleted-1
	}
	return nil
}

// rename adds a reader's copy to the record with the publisher's id.
func (mg *merger) rename(m *mergeResult, r *Record, v *Version) error {
	e, err := v.Entry()
	if err == nil {
		d := e.Draft()
		d.ID = r.ID
		e, err = d.Undated()
	}
	if err != nil {
		return fmt.Errorf("entry %s: %w", v.ID, err)
	}
	before, from := *r, source{recalled: true}
	did := r.take(from.copyOf(e), e, from)
	if did.content {
		did.version = &Version{ID: r.ID, Copy: before.Copy, Content: before.Content}
	}
	if did.version != nil && mg.allowance.keep > 0 {
		m.change.Versions = append(m.change.Versions, did.version)
		mg.feed.Usage.Contents += did.version.Content.Size
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
