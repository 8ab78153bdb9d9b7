package xmlscan

import (
	"slices"
	"strings"
)

// Knowledge of feeds helps to tell where an element without an end tag ends: before its next
// sibling.

// A role is the role of an element in a feed.
type role uint8

const (
	roleNone      role = iota
	roleContainer      // its children are entries: feed, rss, RDF or channel
	roleEntry
	roleContent // atom:content, which may contain entries
	roleSource  // atom:source, whose children entries have, too
	roleLeaf    // a child of the first two in which their other children do not occur
)

const xhtmlNamespace = "http://www.w3.org/1999/xhtml"

// assignRole sets the role of the element just opened.
func (m *Mender) assignRole() {
	n := len(m.open) - 1
	f := &m.frames[n]
	local := m.Local()
	if n == 0 {
		f.role = m.rootRole()
		return
	}
	switch parent := m.frames[n-1].role; {
	case n == 1 && m.entry == "item" && parent == roleContainer && strings.EqualFold(local, "channel"):
		f.role, m.space = roleContainer, m.Space()
	case parent == roleContainer && m.isEntry():
		f.role = roleEntry
	case parent == roleEntry && m.entry == "entry" && strings.EqualFold(local, "content") && m.Space() == m.space:
		f.role = roleContent
	case parent == roleEntry && m.entry == "entry" && local == "source" && m.Space() == m.space:
		f.role, m.inSource = roleSource, m.inSource[:0]
	case (parent == roleContainer || parent == roleEntry) && m.isMember() && m.isLeaf():
		f.role = roleLeaf
	}
}

// rootRole returns the role of the root element, and sets the name of its entries.
func (m *Mender) rootRole() role {
	m.space = m.Space()
	switch local := m.Local(); {
	case m.fragment && (strings.EqualFold(local, "entry") || strings.EqualFold(local, "item")):
		m.entry = strings.ToLower(local)
		return roleEntry
	case m.fragment:
		return roleNone
	case strings.EqualFold(local, "feed"):
		m.entry = "entry"
	case strings.EqualFold(local, "rss"):
		m.entry = "item"
	case strings.EqualFold(local, "rdf"):
		m.entry, m.space = "item", ""
	default:
		return roleNone
	}
	return roleContainer
}

// isEntry reports whether the current element is an entry.
func (m *Mender) isEntry() bool {
	return m.entry != "" && strings.EqualFold(m.Local(), m.entry) && m.isNative()
}

// isEntryInXHTML recognises an entry to which markup without an end lends its namespace.
func (m *Mender) isEntryInXHTML() bool {
	return m.entry != "" && m.Local() == m.entry && m.Prefix() == "" && m.Space() == xhtmlNamespace
}

// isNative reports whether the current element is in the namespace of entries.
func (m *Mender) isNative() bool {
	return m.Space() == m.space || m.entry == "item" && m.Space() == ""
}

// isMember reports whether the current element may be a child of an entry or feed: it is of
// their own vocabulary, or of a usual extension.
func (m *Mender) isMember() bool {
	if m.isNative() {
		_, ok := leaves[strings.ToLower(m.Local())]
		return ok
	}
	_, ok := interned[m.Space()]
	return ok && m.Space() != xhtmlNamespace
}

// isLeaf reports whether the other children of a feed or entry do not occur in the current
// element. Persons have only children of their own, and the source of an item only text.
func (m *Mender) isLeaf() bool {
	switch local := strings.ToLower(m.Local()); local {
	case "author", "contributor":
		return true
	case "source":
		return m.entry == "item"
	default:
		return leaves[local]
	}
}

// isParent reports whether the current element is a child of a feed or entry, with
// children of its own.
func (m *Mender) isParent() bool {
	leaf, ok := leaves[strings.ToLower(m.Local())]
	return ok && !leaf && m.isNative()
}

// leaves are the children of feeds and entries usually absent from HTML. Those with false
// have children of the same names.
var leaves = map[string]bool{
	"author": false, "category": true, "cloud": true, "comments": true, "content": true, "contributor": false,
	"copyright": true, "created": true, "creator": true, "date": true, "description": true, "docs": true,
	"enclosure": true, "encoded": true, "generator": true, "guid": true, "icon": true, "id": true, "image": false,
	"issued": true, "language": true, "lastbuilddate": true, "link": true, "logo": true, "managingeditor": true,
	"modified": true, "pubdate": true, "published": true, "rating": true, "rights": true, "skipdays": false,
	"skiphours": false, "source": false, "subject": true, "subtitle": true, "summary": true, "tagline": true,
	"textinput": false, "title": true, "ttl": true, "updated": true, "webmaster": true,
}

// implied returns the number of elements still open around the one just opened. An element
// without an end tag ends before
//
//   - another of the same name, as paragraphs and list items do in HTML,
//   - the next child of the feed or entry, if it is such a child itself, or is anything
//     else directly inside the feed or entry,
//   - the next entry; so does an entry that directly contains it.
//
// But elements inside atom:content stay there, and so do those inside any element with an
// end tag.
func (m *Mender) implied() (keep int) {
	n := len(m.open) - 1
	if n == 0 {
		return 0
	}
	parent := m.frames[n-1]
	switch keep = n; {
	case m.isEntry() && m.empty: // it has nothing: no other entry ends here
		return n
	case m.isEntry() && parent.role == roleEntry:
		return n - 1
	case m.isEntry() && parent.ends > 0:
		return parent.ends
	case parent.role == roleSource && parent.unclosed && m.endsSource():
		return n - 1
	case m.isMember() && parent.leaf > 0:
		keep = parent.leaf
	}
	return min(keep, m.sameName())
}

// endsSource reports whether the current element cannot be a child of the open atom:source: it
// already has one of this name, or sources have none.
func (m *Mender) endsSource() bool {
	if !m.isNative() {
		return false
	}
	switch local := m.Local(); local {
	case "content", "summary", "published", "issued":
		return true
	case "id", "title", "updated":
		if slices.Contains(m.inSource, local) {
			return true
		}
		m.inSource = append(m.inSource, local)
	}
	return false
}

// findEnds finds the elements around the one just opened that an element within it could
// end: only those for which all elements in between lack end tags.
func (m *Mender) findEnds() {
	n := len(m.open) - 1
	f := &m.frames[n]
	if n == 0 || !f.unclosed || f.role == roleContainer {
		return
	}
	parent := m.frames[n-1]
	switch f.role {
	case roleLeaf:
		f.leaf = n
	case roleContent:
		f.leaf = n
		return
	default:
		f.leaf = parent.leaf
		if f.role == roleNone && (parent.role == roleContainer || parent.role == roleEntry) && !m.isParent() {
			f.leaf = n
		}
	}
	if f.ends = parent.ends; parent.role == roleContainer {
		f.ends = n
	}
}

// sameName returns the index of an open element ended by the one just opened, because
// both have the same name; otherwise the number of open elements.
func (m *Mender) sameName() int {
	// Unclosed elements accumulate only in hostile documents, and so do long names.
	const near, long = 16, 64
	n := len(m.open) - 1
	name, keep := m.written(m.open[n].name), n
	if len(name) > long {
		return n
	}
	for k := n - 1; k > 0 && n-k <= near && m.frames[k].unclosed; k-- {
		if role := m.frames[k].role; role == roleContainer || role == roleEntry || role == roleContent && m.isEntry() {
			break
		}
		m.looked++
		if strings.EqualFold(name, m.written(m.open[k].name)) {
			keep = k
		}
	}
	return keep
}

// findSwallowed notices an entry put inside something else by damage. A whole entry
// inside the content of an entry is no such case.
func (m *Mender) findSwallowed() {
	n := len(m.open) - 1
	if m.swallowedAt >= 0 || !m.isEntry() && !m.isEntryInXHTML() || m.frames[n].role == roleEntry || m.frames[0].role != roleContainer {
		return
	}
	damaged := false
	for k := n; k > 0 && m.frames[k].role != roleContainer; k-- {
		if m.frames[k].role == roleContent && !m.frames[k].unclosed {
			return
		}
		damaged = damaged || m.frames[k].unclosed
	}
	if damaged {
		m.swallowedAt = m.start
	}
}

// findHidden notices a comment, CDATA section or instruction, from i to the scanner's place,
// that joins two entries, or begins between entries and ends within one: it lacks its end.
// If it contains whole entries, its author meant it so.
func (m *Mender) findHidden(i int) {
	if m.swallowedAt >= 0 || m.entry == "" || m.fragment || m.part == ended {
		return
	}
	if open, joins := hidden(m.doc[i:m.end], m.entry); joins || m.entryAt == 0 && open != 0 {
		m.swallowedAt = i
	}
}

// JoinsEntries reports whether a comment contains the end of one entry and, after it, the
// beginning of another, of which neither is whole in it. Entries have the local name.
func JoinsEntries(comment, local string) bool {
	_, joins := hidden(comment, local)
	return joins
}

// hidden returns how many more entries begin than end in a comment or CDATA section, and
// whether the end of an entry comes before the beginning of one.
func hidden(text, local string) (open int, joins bool) {
	least := 0
	for text = text[len("<!"):]; ; {
		_, after, ok := strings.Cut(text, "<")
		if !ok {
			return open, joins
		}
		step := 1
		if strings.HasPrefix(after, "/") {
			after, step = after[1:], -1
		}
		end := nameEnd(after, 0)
		text = after[end:]
		if _, name, ok := splitName(after[:end]); !ok || !strings.EqualFold(name, local) {
			continue
		}
		if n := strings.IndexAny(text, "<>"); n > 0 && text[n-1:n+1] == "/>" {
			continue
		}
		open += step
		joins = joins || step > 0 && least < 0
		least = min(least, open)
	}
}
