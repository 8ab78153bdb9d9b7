package feedxml

import (
	"math"

	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A textChoice is the best element so far for an entry's title, summary or content.
type textChoice struct {
	name string // of the text in Atom
	text xmlscan.Construct
	rank int

	medium      int               // the offset of the media:content the title comes from; 0 if it comes from elsewhere
	description xmlscan.Construct // of the same medium
}

// offer takes the current element, if it is better.
func (c *textChoice) offer(r *Elements) (taken bool) {
	if n := r.rank(c.name); n > c.rank {
		c.text, c.rank, taken = r.Construct(), n, true
	}
	return taken
}

// offerAll takes the best of the children of the current element, which is a group. A
// description of one of the media describes the entry only if the title comes from the same medium.
func (c *textChoice) offerAll(r *Elements) {
	at, isMedium := r.Offset(), r.Local() == "content"
	if isMedium && c.name != "title" && c.medium != at {
		return
	}
	for depth := r.Depth(); r.Child(depth); {
		switch {
		case r.isGroup():
			c.offerAll(r)
		case r.Space() != vocab.Media:
		case isMedium && c.name != "title":
			if r.rank("summary") > 0 {
				c.description = r.Construct()
			}
		case c.offer(r) && isMedium:
			c.medium = at
		}
	}
}

// chosen returns the best of the current element's children for a text.
func (r *Elements) chosen(c textChoice) textChoice {
	for depth := r.Depth(); c.rank < vocab.FirstRank && r.Child(depth); {
		if r.isGroup() {
			c.offerAll(r)
		} else if c.offer(r) {
			c.medium = 0
		}
	}
	return c
}

// Text reads one of the three texts of an entry as published, whose place is not -1. A
// literal title of RSS has its references to characters as published.
func Text(raw string, sc *xmlscan.Scope, format Format, which int, place int32, literal bool) xmlscan.Construct {
	r := Again(raw, sc, format)
	defer r.Release()
	r.literal = literal
	if place > 0 {
		r.Seek(int(place))
		r.Next()
		return r.Construct()
	}
	choose := func(text, medium int) textChoice {
		defer r.readAgain(raw, sc, format)
		return r.chosen(textChoice{name: textNames[text], medium: medium})
	}
	if which == 0 {
		return choose(0, 0).text
	}
	choice := choose(which, choose(0, 0).medium)
	if choice.rank == 0 && (which == 1 || choose(1, 0).rank > 0) { // content, and a summary elsewhere
		return choice.description
	}
	return choice.text
}

// Places are the offsets at which an entry's title, summary and content begin: 0 if
// unknown, -1 if there is no such text.
type Places [len(textNames)]int32

// textNames are the names of an entry's texts in Atom.
var textNames = [...]string{"title", "summary", "content"}

// A TextFinder finds the texts of an entry while it is read.
type TextFinder struct {
	places Places
	ranks  [len(textNames)]int
	group  bool // there is a media:group, or a media:content with elements
}

// Look looks at the current child of the entry that begins at start. It has the given
// name.
func (f *TextFinder) Look(r *Elements, name string, start int) {
	which := 0
	switch name {
	case "title":
	case "summary", "description":
		which = 1
	case "content", "encoded", "body", "fullitem":
		if which = 2; r.isGroup() {
			f.group = f.group || !r.Empty()
			return
		}
	case "group":
		f.group = f.group || r.isGroup()
		return
	default:
		return
	}
	if n := r.rank(textNames[which]); n > f.ranks[which] {
		f.places[which], f.ranks[which] = int32(r.Offset()-start), n
	}
}

// Found returns the places of the texts in an entry of n bytes.
func (f *TextFinder) Found(n int) Places {
	if n > math.MaxInt32 {
		return Places{}
	}
	for which, rank := range f.ranks {
		switch {
		case f.group && rank < vocab.FirstRank:
			f.places[which] = 0
		case rank == 0:
			f.places[which] = -1
		}
	}
	return f.places
}
