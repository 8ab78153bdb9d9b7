package feedxml

import (
	"strings"

	"github.com/feedhistory/feedhistory/internal/vocab"
)

// Space returns the intended namespace of the current element, because feeds misspell
// namespaces. RFC 5005's must be exact, because the verdict depends on it.
func (r *Elements) Space() string {
	space := r.Cursor.Space()
	if space == r.exact {
		return space
	}
	switch space {
	case "", vocab.Atom, vocab.Content, vocab.DC, vocab.ITunes, vocab.Media, vocab.XHTML:
		r.exact = space
		return space
	}
	if meant, ok := r.spaces[space]; ok {
		if meant == space {
			r.exact = space
		}
		r.Odd = r.Odd || meant != space
		return meant
	}
	meant := vocab.MeantSpace(space)
	if meant == space {
		r.exact = space
	} else {
		r.Odd = true
		r.note("namespace-misspelt", "the namespace "+clip(space)+" is read as "+meant, r.Offset())
	}
	if r.spaces == nil {
		r.spaces = map[string]string{}
	}
	if len(r.spaces) < mostSpaces {
		r.spaces[space] = meant
	}
	return meant
}

// RSSLocal returns the name of the current element as RSS spells it, with a note if it
// is misspelt.
func (r *Elements) RSSLocal() string { return r.Spelt(vocab.RSSName(r.Local())) }

// AtomLocal returns the name of the current element as Atom spells it, likewise.
func (r *Elements) AtomLocal() string {
	local := r.Local()
	if name := vocab.AtomName(local); name != local {
		return r.Spelt(name)
	}
	return local
}

// Spelt returns the given name, with a note if the current element has another.
func (r *Elements) Spelt(name string) string {
	if local := r.Local(); name != local {
		r.Odd = true
		r.note("name-misspelt", "the element "+clip(local)+" is read as "+name, r.Offset())
	}
	return name
}

// IsRSS reports whether the current element belongs to RSS itself.
func (r *Elements) IsRSS() bool { return r.IsOfRSS(r.Space()) }

// IsOfRSS reports whether a namespace is RSS's own.
func (r *Elements) IsOfRSS(space string) bool {
	return space == "" || space == r.Native || vocab.RDFVersion(space) != "" || strings.HasPrefix(space, "http://backend.userland.com/rss")
}

// IsAtom reports whether the current element belongs to Atom itself, in an Atom document
// under whatever namespace the root has.
func (r *Elements) IsAtom() bool {
	space := r.Space()
	return vocab.IsAtom(space) || r.Format == Atom && space == r.Native
}

// IsOwn reports whether the current element belongs to Atom, or to RSS in an RSS
// document.
func (r *Elements) IsOwn() bool { return r.IsAtom() || r.Format == RSS && r.IsRSS() }

// IsMapped reports whether every format has its own element for the meaning of the
// current element.
func (r *Elements) IsMapped() bool {
	switch local := r.Local(); r.Space() {
	case vocab.DC:
		return local == "creator" || local == "date" || local == "subject"
	case vocab.DCTerms:
		return local == "modified" || local == "issued" || local == "created"
	case vocab.Content:
		return local == "encoded"
	}
	return false
}

// IsCarried reports whether a draft keeps the current element as published, although
// it belongs to Atom's own vocabulary.
func (r *Elements) IsCarried() bool {
	if r.Format != Atom {
		return false
	}
	switch vocab.AtomName(r.Local()) {
	case "contributor", "rights", "source":
		return true
	}
	return false
}

// isGroup reports whether the current element is media:group or media:content, which may
// have the texts of an entry for a video.
func (r *Elements) isGroup() bool {
	local := r.Local()
	return (local == "group" || local == "content") && r.Space() == vocab.Media
}

// Permalink returns the attribute of guid for whether it is a URL.
func (r *Elements) Permalink() (value string, ok bool) {
	for _, a := range r.Attrs() {
		if a.Space == "" && (a.Local == "isPermaLink" || strings.EqualFold(a.Local, "isPermaLink")) {
			return a.Value(), true
		}
	}
	return "", false
}
