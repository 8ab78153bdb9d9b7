package feedhistory

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/weblink"
)

// The link relations that tie a logical feed's documents together (RFC 5005
// §3 and §4), and the few others that this package acts upon.
const (
	RelAlternate   = "alternate"
	RelCurrent     = "current"
	RelEnclosure   = "enclosure"
	RelFirst       = "first"
	RelHub         = "hub"
	RelLast        = "last"
	RelNext        = "next"
	RelNextArchive = "next-archive"
	RelPrevArchive = "prev-archive"
	RelPrevious    = "previous"
	RelSelf        = "self"
)

// A Link is a link of a document's head section or of an entry.
type Link struct {
	Rel      string // the relation's registered name, or an IRI; never empty
	Href     string // absolute where the base allows, otherwise as published
	Type     string // media type, as a hint; "" if none is given
	Title    string // "" if none is given
	HrefLang string // language of the target; "" if none is given
	Length   string // length in octets, as published; "" if none is given
}

// Links are the links of one head section or entry, in document order.
type Links []Link

// Rel returns the first link with the given relation.
func (l Links) Rel(rel string) (Link, bool) {
	for _, link := range l {
		if link.Rel == rel {
			return link, true
		}
	}
	return Link{}, false
}

// has reports whether any of the relations is there.
func (l Links) has(rels ...string) bool {
	return slices.ContainsFunc(l, func(link Link) bool { return slices.Contains(rels, link.Rel) })
}

const ianaRelation = "http://www.iana.org/assignments/relation/"

// relation returns the registered name that one value of a rel attribute
// stands for, and whether it had to be read leniently: relations are
// case-sensitive (RFC 4287 §4.2.7.2), but feeds misspell them.
func relation(value string) (rel string, lenient bool) {
	if known(value) {
		return value, false
	}
	name := strings.TrimPrefix(value, ianaRelation)
	if known(name) {
		return name, false
	}
	switch lower := strings.ToLower(name); lower {
	case "prev", "prev-page", "previous-page":
		return RelPrevious, true
	case "next-page":
		return RelNext, true
	case "prev_archive", "previous-archive":
		return RelPrevArchive, true
	case "next_archive":
		return RelNextArchive, true
	default:
		if known(lower) {
			return lower, true
		}
		return name, false
	}
}

func known(rel string) bool {
	switch rel {
	case RelAlternate, RelCurrent, RelEnclosure, RelFirst, RelHub, RelLast, RelNext,
		RelNextArchive, RelPrevArchive, RelPrevious, RelSelf, "edit", "related", "replies", "via":
		return true
	}
	return false
}

// headerLinks reads Link header fields (RFC 8288). A link whose anchor names
// another context than the document itself is left out.
func headerLinks(fields []string, base string) (links Links) {
	for _, field := range fields {
		for len(links) < 1000 {
			var target string
			var params map[string]string
			if target, params, field = weblink.Cut(field); params == nil {
				break
			}
			if !utf8.ValidString(target) {
				target = fetch.Escape(target) // the same URL: these bytes would be sent so
			}
			if anchor, ok := params["anchor"]; ok && withoutFragment(resolve(base, anchor)) != withoutFragment(base) {
				continue
			}
			for rel := range strings.FieldsSeq(params["rel"]) {
				name, _ := relation(rel)
				links = append(links, Link{
					Rel: name, Href: resolve(base, target), Type: params["type"],
					Title: strings.ToValidUTF8(params["title"], "\uFFFD"), HrefLang: params["hreflang"],
				})
			}
		}
	}
	return links
}
