package xmlscan

import (
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// An inheritance has the attributes elements pass on to their content: xml:base and
// xml:lang.
type inheritance struct {
	langs  []string
	bases  []Base
	reach  Reach // the largest reach of bases since it was last requested
	around Reach // the reach of the base around all of them
}

// A Base is the value of an xml:base attribute.
type Base struct {
	Ref   string // with its character references decoded, but not resolved
	At    int    // the offset of the attribute in the document
	Reach Reach  // its reach when resolved against the bases around it
}

// A BaseChain resolves the xml:base attributes in scope, each once while it is in scope.
// The zero value is ready to use.
type BaseChain struct{ resolved []resolvedBase }

// A resolvedBase is an xml:base attribute, identified by its place, and the URL it resolves
// to.
type resolvedBase struct {
	at  int
	url string
}

// Resolve returns the base inside attributes, outermost first, around which the base is
// root. A base longer than most bytes has no effect.
func (c *BaseChain) Resolve(root string, attributes []Base, most int) string {
	n := min(len(attributes), len(c.resolved))
	for n > 0 && c.resolved[n-1].at != attributes[n-1].At {
		n--
	}
	base := root
	if c.resolved = c.resolved[:n]; n > 0 {
		base = c.resolved[n-1].url
	}
	for _, b := range attributes[n:] {
		if inner := iri.Resolve(base, b.Ref); len(inner) <= most {
			base = inner
		}
		c.resolved = append(c.resolved, resolvedBase{b.At, base})
	}
	return base
}

// Reset forgets the attributes, and keeps the memory.
func (c *BaseChain) Reset() { c.resolved = c.resolved[:0] }

// A Reach is the maximum length of a base.
type Reach struct {
	Path  int // the length up to the last slash, which a relative path keeps
	Whole int
}

// ReachOf returns the reach of a base alone.
func ReachOf(base string) Reach {
	path := base
	if i := strings.IndexAny(base, "?#"); i >= 0 {
		path = base[:i]
	}
	return Reach{strings.LastIndexByte(path, '/') + 1, len(base)}
}

// Max returns the larger of two reaches in both fields.
func (r Reach) Max(other Reach) Reach {
	return Reach{max(r.Path, other.Path), max(r.Whole, other.Whole)}
}

// within returns the reach of a base resolved against another.
func (r Reach) within(outer Reach) Reach {
	return Reach{outer.Path + r.Path, max(outer.Path+r.Whole, outer.Whole)}
}

// Bases returns the values of xml:base in scope, outermost first. They are valid until the next
// call of Next.
func (h *inheritance) Bases() []Base { return h.bases }

// Around sets the base surrounding all others.
func (h *inheritance) Around(base string) { h.around = ReachOf(base) }

// Reach returns the largest reach of the bases new in scope since its last call; zero if there
// were none.
func (h *inheritance) Reach() (r Reach) {
	r, h.reach = h.reach, r
	return r
}

// Lang returns the value of xml:lang in scope, and whether there is one. An empty value ends the
// scope of another.
func (h *inheritance) Lang() (lang string, ok bool) {
	if len(h.langs) == 0 {
		return "", false
	}
	return h.langs[len(h.langs)-1], true
}
