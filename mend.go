package feedhistory

import (
	"errors"
	"net/http"
	"strings"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// An ill-formed document is read a second time and mended; package xmlscan says how.
// Well-formed documents never come here.

// mend returns a reader that has read the document of r again, mended, if it is not
// well-formed. It returns r if it is, or if mending does not help.
func (p Parser) mend(r *documentReader) *documentReader {
	if p.Strict || !r.isBroken() {
		return r
	}
	scanned, begin := r.text, 0
	if r.doc.Format == 0 {
		var page bool
		if begin, page = xmlscan.FindFeed(r.text); page {
			r.failPage(0)
			return r
		}
		switch {
		case begin < 0:
			return r
		case begin > 0 && (xmlscan.IsQuoted(r.text, begin) || isProse(p.Header)):
			r.failAt(begin, ReasonNotFeed, clauseFeed, "the document only quotes a feed")
			return r
		}
		scanned = strings.Repeat(" ", begin) + r.text[begin:] // which keeps the offsets
	}
	again := p.newDocumentReader(r.text, r.doc.URL)
	again.decoding = r.decoding
	again.addNotes(r.decoding)
	if begin > 0 {
		again.note("content-before-root", "there is something before the feed", 0)
	}
	again.Cursor = xmlscan.Mend(scanned, p.scanLimits())
	again.Around(r.doc.URL)
	again.document()
	if again.doc.Format == 0 || len(again.doc.Entries) < len(r.doc.Entries) || r.isTruncated() && is[*xmlscan.LimitError](again.Err()) {
		return r
	}
	return again
}

// isProse reports whether a document has a media type no feed has: its text may quote one.
func isProse(header http.Header) bool {
	kind, subtype, _ := strings.Cut(mediaType(header), "/")
	switch kind {
	case "message", "multipart", "image", "audio", "video", "font":
		return true
	}
	return strings.Contains(subtype, "javascript") || strings.Contains(subtype, "markdown") || subtype == "css" || subtype == "csv"
}

// isBroken reports whether mending may help.
func (r *documentReader) isBroken() bool {
	if r.err != nil {
		return r.err.Reason == ReasonNotFeed
	}
	if limit, ok := errors.AsType[*xmlscan.LimitError](r.Err()); ok {
		return limit.Limit == "depth" || limit.Limit == "namespaces" // which elements without end tags may reach
	}
	return is[*xmlscan.SyntaxError](r.Err())
}

func (r *documentReader) isTruncated() bool {
	syntax, ok := errors.AsType[*xmlscan.SyntaxError](r.Err())
	return ok && syntax.Truncated
}

// notice remembers the current element of the head section, if only entries have such
// elements.
func (r *documentReader) notice() {
	if r.loose >= 0 || len(r.doc.Entries) == 0 {
		return
	}
	switch local := r.Local(); {
	case r.doc.Format == RSS && r.IsRSS() && (local == "guid" || local == "enclosure"),
		r.doc.Format == Atom && r.Space() == r.Native && (local == "summary" || local == "content" || local == "published" || local == "issued"):
		r.loose = r.Offset()
	}
}

// findDamage finds the losses mending has not restored, or may not have restored.
func (r *documentReader) findDamage() {
	if r.err != nil || r.Err() != nil {
		return
	}
	if at, ok := r.swallowed(); ok {
		r.failAt(at, ReasonMalformed, clauseXML, "because of damage, an entry is inside another element, where it is not read")
	} else if r.entries.leftOut >= 0 {
		r.failAt(r.entries.leftOut, ReasonMalformed, clauseXML, "an entry is left out because its id is damaged")
	} else if r.entries.twoInOne >= 0 {
		r.failAt(r.entries.twoInOne, ReasonMalformed, clauseXML, "an entry has two ids, or two links instead of an id: damage has merged two entries")
	} else if r.loose >= 0 && r.Mender.Mended() > 0 {
		r.damaged(r.loose, true, "a part of an entry is outside all entries: the rest is not read")
	} else if at, ok := r.hidden(true); ok {
		r.damaged(at, true, "a CDATA section without its end has the beginning of another entry, which is not read")
	} else if at, ok := r.entryAfterRoot(); ok {
		r.damaged(at, true, "there are entries after the end of the root element, where they are not read")
	} else if at, ok := r.Mender.Outside(); ok {
		r.damaged(at, false, "damage outside the entries: a link to older entries may be lost")
	} else if r.entries.linkAt >= 0 {
		r.damaged(r.entries.linkAt, false, "an entry without an end tag has a link that may belong to the feed")
	}
}

// swallowed returns the place of the first entry inside something else.
func (r *documentReader) swallowed() (at int, ok bool) {
	if at, ok = r.Mender.Swallowed(); ok {
		return at, true
	}
	return r.hidden(false)
}

// hidden returns the place of the first comment, or CDATA section, that joins two entries:
// it lacks its end.
func (r *documentReader) hidden(cdata bool) (at int, ok bool) {
	local := "item"
	if r.doc.Format == Atom {
		local = "entry"
	}
	for _, section := range r.OddSections() {
		if strings.HasPrefix(section, "<![CDATA[") == cdata && xmlscan.JoinsEntries(section, local) {
			return strings.Index(r.text, section), true
		}
	}
	return 0, false
}

func (r *documentReader) damaged(at int, entries bool, what string) {
	r.failAt(at, ReasonMalformed, clauseXML, what)
	r.doc.damage, r.err = &damage{r.err, entries}, nil
}

// entryAfterRoot returns the place of the first entry after the root element.
func (r *documentReader) entryAfterRoot() (at int, ok bool) {
	end := r.Offset()
	tag := "<item"
	if r.doc.Format == Atom {
		tag = "<entry"
	}
	at = xmlscan.IndexTag(r.text[end:], tag)
	return end + at, at >= 0
}
