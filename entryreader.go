package feedhistory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// An entryReader reads the entries of an XML document.
type entryReader struct {
	*elements
	list *entryList

	start   int           // where the current entry begins
	reach   xmlscan.Reach // the reach of its own base
	repairs entryRepairs

	// The places of damage; -1 means none.
	leftOut  int // the first entry left out because its id is damaged
	twoInOne int // the first entry damage has merged from two
	linkAt   int // the first entry without an end tag whose link may be the feed's
}

// entryRepairs records the damage within one entry.
type entryRepairs struct {
	before      int  // the number of repairs before the entry
	idGarbled   bool // its id is damaged
	linkGarbled bool // its link is damaged
	ids         int  // the number of its id elements
	joined      bool // one of them differs from the first
}

// begin begins the current element as an entry.
func (r *entryReader) begin(sc *xmlscan.Scope) *Entry {
	r.repairs = entryRepairs{before: r.Mender.Mended()}
	r.start, r.reach = r.Offset(), xmlscan.Reach{}
	_ = r.Reach() // discard the part before the entry
	if own := r.Bases()[sc.Bases:]; len(own) > 0 {
		r.reach = own[len(own)-1].Reach
	}
	local := r.Local()
	r.Odd = r.doc.Format == RSS && vocab.RSSName(local) != local || r.doc.Format == Atom && vocab.AtomName(local) != local
	_ = r.Space() // which may set odd
	return r.list.add(sc)
}

// addLinks reads further links of the current entry.
func (r *entryReader) addLinks(read func(Links) Links) {
	if r.list.takesLinks() {
		from := len(r.list.own)
		links := read(r.list.own)
		r.list.setLinks(links, from, r.End()-r.start)
	}
}

// atomEntry reads the current entry element. Only its own children count: elements in
// atom:source or in the content describe something else.
func (r *entryReader) atomEntry(e *Entry) {
	depth, lenient := r.Depth(), r.Lenient()
	native := r.Space()
	var texts feedxml.TextFinder
	for r.Child(depth) {
		if r.Space() != native && !vocab.IsAtom(r.Space()) {
			r.keptBy(e)
			texts.Look(&r.Elements, r.Local(), r.start)
			continue
		}
		local := r.AtomLocal()
		texts.Look(&r.Elements, local, r.start)
		switch local {
		case "id":
			if id := r.idText(e); e.ID == "" {
				e.ID = id
			}
		case "updated", "modified":
			e.Updated = r.timeText()
		case "published", "issued", "created":
			if !e.Published.IsZero() && local == "created" {
				continue // Atom 0.3 has both; its issued is now called published
			}
			e.Published = r.timeText()
		case "link":
			r.addLinks(r.atomLink)
		case "author", "source": // a source has its own authors (RFC 4287 §4.2.1)
			e.signed = true
		}
	}
	e.Links = r.list.links()
	r.end(e, lenient, &texts)
}

// rssItem reads the current item.
func (r *entryReader) rssItem(e *Entry) {
	depth, lenient := r.Depth(), r.Lenient()
	about, _ := r.Attr(vocab.RDF, "about")
	rank, published, permalink, atomID := 0, 0, false, ""
	var texts feedxml.TextFinder
	for r.Child(depth) {
		if space := r.Space(); !r.IsOfRSS(space) {
			local := r.Local()
			r.keptBy(e)
			texts.Look(&r.Elements, local, r.start)
			switch {
			case vocab.UpdateRank(space, local) > rank:
				e.Updated, rank = r.timeText(), vocab.UpdateRank(space, local)
			case vocab.PublishedRank(space, local) > published:
				published = r.publish(e, vocab.PublishedRank(space, local), published)
			case local == "id" && atomID == "" && vocab.IsAtom(space):
				atomID = r.PlainText()
			case local == "link" && vocab.IsAtom(space):
				r.addLinks(r.atomLink)
			}
			continue
		}
		name := r.RSSLocal()
		texts.Look(&r.Elements, name, r.start)
		switch name {
		case "guid":
			value, ok := r.Permalink()
			if id := r.idText(e); e.ID == "" {
				e.ID = id
				permalink = !ok || strings.EqualFold(trim(value), "true")
			}
		case "pubDate": // not an update time: an updated item keeps it
			published = r.publish(e, vocab.FirstRank, published)
		case "link":
			if _, ok := r.Attr("", "href"); ok {
				r.addLinks(r.atomLink)
			} else {
				garbled := r.Mender.Garbled()
				r.addLinks(r.textLink)
				r.repairs.linkGarbled = r.repairs.linkGarbled || r.Mender.Garbled() > garbled
			}
		case "enclosure":
			r.addLinks(r.enclosure)
		case "id", "published", "updated":
			r.atomInRSS(e, &atomID, &rank)
		}
	}
	e.Links = r.list.links()
	if e.ID == "" {
		e.ID = cmp.Or(trim(about), atomID)
	} else if permalink && iri.IsHTTP(e.ID) && !e.Links.has(RelAlternate) {
		e.Links = append(e.Links, Link{Rel: RelAlternate, Href: e.ID})
	}
	r.end(e, lenient, &texts)
}

// publish reads a time of publication with the given rank, and returns the rank of the best
// one so far.
func (r *entryReader) publish(e *Entry, rank, best int) int {
	t := r.timeText()
	if t.IsZero() {
		return best
	}
	e.Published = t
	return rank
}

// atomInRSS reads an item's element of Atom without its namespace, unless the item has
// a better one.
func (r *entryReader) atomInRSS(e *Entry, id *string, rank *int) {
	local, offset := r.Local(), r.Offset()
	switch {
	case local == "id" && *id == "":
		*id = r.PlainText()
	case local == "published" && e.Published.IsZero():
		e.Published = r.timeText()
	case local == "updated" && *rank == 0:
		e.Updated = r.timeText()
	default:
		return
	}
	r.Odd = true
	r.note("name-misspelt", "the element "+local+", which is not in RSS, is read as Atom's", offset)
}

// end keeps an entry just ended.
func (r *entryReader) end(e *Entry, lenient int, texts *feedxml.TextFinder) {
	if r.Err() != nil || r.err != nil {
		return // the entry is incomplete
	}
	if r.repairs.idGarbled || r.repairs.linkGarbled && e.ID == "" || r.isIDLost(e) {
		r.leaveOut()
		return
	}
	e.raw, e.odd = r.text[r.start:r.End()], r.Odd
	e.texts = texts.Found(len(e.raw))
	if e.lenient = r.Lenient() > lenient; r.Mender.Mended() > r.repairs.before {
		r.mended(e)
	}
	r.list.keep(e, r.start, xmlscan.Loan{Markup: e.raw, Reach: r.reach.Max(r.Reach())})
}

// idText reads the current element as an entry's id, and notices if it is damaged, or
// differs from the entry's first.
func (r *entryReader) idText(e *Entry) string {
	garbled := r.Mender.Garbled()
	id := r.PlainText()
	switch r.repairs.ids++; {
	case e.ID == "":
		r.repairs.idGarbled = r.repairs.idGarbled || r.Mender.Garbled() > garbled
	case id != "" && id != e.ID:
		r.repairs.joined = true
	}
	return id
}

// isIDLost reports whether the entry ending here has only a part of an id.
func (r *entryReader) isIDLost(e *Entry) bool {
	if e.ID != "" || r.repairs.ids > 0 || r.Mender.Mended() == r.repairs.before {
		return false
	}
	name := "guid"
	if r.doc.Format == Atom {
		name = "id"
	}
	return xmlscan.HasEndTag(r.text[r.start:r.End()], name)
}

// leaveOut leaves out an entry whose id is damaged: it would be another entry.
func (r *entryReader) leaveOut() {
	r.list.drop()
	if r.leftOut < 0 {
		r.leftOut = r.start
	}
}

// mended makes an entry just ended well-formed.
func (r *entryReader) mended(e *Entry) {
	if r.Mender.Unclosed() && e.Links.has(RelPrevArchive, RelNext) && r.linkAt < 0 {
		r.linkAt = r.start
	}
	if (r.repairs.joined || r.repairs.ids == 0 && r.hasTwoLinks(e)) && r.twoInOne < 0 {
		r.twoInOne = r.start
	}
	e.raw, e.texts = r.Mended(e.raw, e.scope), feedxml.Places{}
	e.lenient = false
}

// hasTwoLinks reports whether an item of RSS, which should have one link, has two.
func (r *entryReader) hasTwoLinks(e *Entry) bool {
	link, _ := e.Links.Rel(RelAlternate)
	return r.doc.Format == RSS && slices.ContainsFunc(e.Links, func(l Link) bool { return l.Rel == RelAlternate && l.Href != link.Href })
}

// keptBy reads the current element, if it names the reader whose copy the entry is.
func (r *entryReader) keptBy(e *Entry) {
	if r.Local() != "kept" || r.Cursor.Space() != vocab.Coverage {
		return
	}
	by, _ := r.Attr("", "by")
	if by = clip(trim(by)); by == "" {
		by = unknown
	}
	e.KeptBy = by
}
