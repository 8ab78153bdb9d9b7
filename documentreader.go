package feedhistory

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A documentReader reads an XML document: its head section itself, its entries by an
// entryReader over the same elements. atom.go and rss.go have the parts in which the
// formats differ.
type documentReader struct {
	elements
	head     headReader
	list     entryList
	entries  entryReader
	header   http.Header
	headOnly bool              // stop where the first entry begins
	decoding []xmlscan.Note    // the notes on the text's characters
	scopes   [4]*xmlscan.Scope // the scopes of the root's children, and of the channel's

	polls      scheduleReader
	knownBytes int // the bytes kept for Feed only
	loose      int // the place of an entry's element outside all entries; -1 if there is none
}

// newDocumentReader returns a reader of a text, still without its cursor.
func (p Parser) newDocumentReader(text, url string) *documentReader {
	r := &documentReader{header: p.Header, loose: -1}
	r.reading, r.Elements = p.newReading(text, url), feedxml.New(text, url)
	r.MaxURL, r.Note = r.limits.URL, r.note
	r.head.in, r.list.in = &r.reading, &r.reading
	r.entries = entryReader{elements: &r.elements, list: &r.list, leftOut: -1, twoInOne: -1, linkAt: -1}
	return r
}

// document reads the root element.
func (r *documentReader) document() {
	if !r.Child(0) {
		return
	}
	space, root := r.Space(), r.Local()
	switch {
	case strings.EqualFold(root, "feed") && (vocab.IsAtom(space) || space == ""):
		r.Spelt("feed")
		r.begin(Atom)
		r.atomFeed()
	case strings.EqualFold(root, "rss"):
		r.begin(RSS)
		r.Native = space
		r.rss()
	case root == "RDF" && space == vocab.RDF:
		r.begin(RSS)
		r.rss()
	default:
		r.fail(ReasonNotFeed, clauseFeed, "the root element is "+clip(root))
		if strings.EqualFold(root, "html") {
			r.failPage(r.err.Offset)
		}
		return
	}
	for !r.Stopped() && r.Next() != xmlscan.Stop {
	}
}

// begin begins a document of the given format.
func (r *documentReader) begin(format Format) {
	r.doc.Format, r.Format = format, feedxml.Format(format)
}

// entry reads the current element as an entry, unless reading ends here.
func (r *documentReader) entry() {
	switch {
	case r.headOnly:
		r.Stop()
	case r.list.full():
		r.fail(ReasonLimit, clauseLimits, fmt.Sprintf("more than %d entries", r.limits.Entries))
	default:
		e := r.entries.begin(r.scopes[r.Depth()-1])
		if r.doc.Format == Atom {
			r.entries.atomEntry(e)
		} else {
			r.entries.rssItem(e)
		}
	}
}

// wrapped reads the entries in an element around them, unknown to all formats. In RSS
// 1.0, items has a list of references instead.
func (r *documentReader) wrapped(name string) {
	offset, depth := r.Offset(), r.Depth()
	if depth == len(r.scopes) {
		return
	}
	r.enter()
	noted := false
	for r.Child(depth) {
		if r.Local() != name || r.Space() != r.Native && r.Space() != "" && vocab.RDFVersion(r.Space()) == "" {
			continue
		}
		if !noted {
			r.note("entries-wrapped", "the entries are in an element which the format does not have", offset)
			noted = true
		}
		r.entry()
	}
}

// finish completes the document, and returns the reader's error.
func (r *documentReader) finish() (*Document, error) {
	r.head.addHeader(r.header)
	notes, _ := r.Notes()
	r.addNotes(notes)
	r.findDamage()
	if err := r.Err(); err != nil && r.err == nil {
		r.err = r.scanError(err)
	}
	return r.reading.finish(&r.list)
}

// enter keeps the scope of the current element's children.
func (r *documentReader) enter() {
	sc := r.NewScope()
	sc.Clean = r.Clean()
	r.scopes[r.Depth()] = sc
}
