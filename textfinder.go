package feedhistory

import (
	"math"

	"github.com/feedhistory/feedhistory/internal/vocab"
)

// A textChoice is the best element so far for an entry's title, summary or content.
type textChoice struct {
	what   string
	text   Text
	rank   int
	medium int  // the offset of the media:content the title comes from; 0 if it comes from elsewhere
	beside Text // the description beside that title
}

// offer takes the current element, if it is better.
func (c *textChoice) offer(r *elements) (taken bool) {
	if n := r.textRank(c.what); n > c.rank {
		c.text, c.rank, taken = r.textConstruct(), n, true
	}
	return taken
}

// offerAll takes the best of the children of the current element, which is a group. A
// description of one of the media describes the entry only beside the entry's title.
func (c *textChoice) offerAll(r *elements) {
	at, isMedium := r.s.Offset(), r.s.Local() == "content"
	if isMedium && c.what != "title" && c.medium != at {
		return
	}
	for depth := r.s.Depth(); r.s.Child(depth); {
		switch {
		case r.isGroup():
			c.offerAll(r)
		case r.space() != vocab.Media:
		case isMedium && c.what != "title":
			if r.textRank("summary") > 0 {
				c.beside = r.textConstruct()
			}
		case c.offer(r) && isMedium:
			c.medium = at
		}
	}
}

// A textFinder finds the texts of an entry while it is read.
type textFinder struct {
	places textPlaces
	ranks  [len(textNames)]int
	group  bool // there is a media:group, or a media:content with elements
}

// look looks at the current child of the entry, which has the given name.
func (f *textFinder) look(r *entryReader, name string) {
	which := 0
	switch name {
	case "title":
	case "summary", "description":
		which = 1
	case "content", "encoded", "body", "fullitem":
		if which = 2; r.isGroup() {
			f.group = f.group || !r.s.Empty()
			return
		}
	case "group":
		f.group = f.group || r.isGroup()
		return
	default:
		return
	}
	if n := r.textRank(textNames[which]); n > f.ranks[which] {
		f.places[which], f.ranks[which] = int32(r.s.Offset()-r.start), n
	}
}

// found returns the places of the texts in an entry of n bytes.
func (f *textFinder) found(n int) textPlaces {
	if n > math.MaxInt32 {
		return textPlaces{}
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
