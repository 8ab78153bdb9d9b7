package feedhistory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The identity of entries without an id (5005#22).

// identify sets the ID of an entry without one: its link, or else a digest of what
// it says.
func (e *Entry) identify(format Format) {
	e.WeakID = true
	if link, ok := e.Links.Rel(RelAlternate); ok {
		e.ID = link.Href
		return
	}
	h := sha256.New()
	e.say(h, format)
	e.ID = digestID(h)
}

func digestID(h hash.Hash) string { return "urn:sha256:" + hex.EncodeToString(h.Sum(nil)) }

// say writes what an entry says: its elements, attributes and text, whatever prefixes,
// escapes or surroundings it has. So the digest stays the same when the entry is
// written elsewhere and read again.
func (e *Entry) say(w io.Writer, format Format) {
	if format == JSONFeed {
		_, _ = io.WriteString(w, e.raw)
		return
	}
	var buf []byte
	write := func(parts ...string) {
		buf = buf[:0]
		for _, part := range parts {
			buf = append(append(strconv.AppendInt(buf, int64(len(part)), 10), ':'), part...)
		}
		_, _ = w.Write(buf)
	}
	var text []byte
	flush := func() {
		if len(text) > 0 {
			write("text", string(text))
			text = text[:0]
		}
	}
	r := e.reader()
	defer r.release()
	s := r.s
	for root := true; ; root = false {
		tok := xmlscan.Start
		if !root {
			tok = s.Next()
		}
		switch tok {
		case xmlscan.Stop:
			flush()
			return
		case xmlscan.Start:
			flush()
			if s.Is(vocab.Atom, "author") {
				s.Skip() // see Signed
				continue
			}
			write("start", s.Space(), s.Local())
			for _, a := range s.Attrs() {
				if !root || a.Space != vocab.XML {
					write(a.Space, a.Local, a.Value())
				}
			}
		case xmlscan.End:
			flush()
			write("end")
		default:
			text = s.AppendText(text)
		}
	}
}

// tellApart sets different IDs for entries of one document that have no id and share a
// link. The oldest keeps the link, so that known IDs do not change; the IDs of the
// others are made of link, title and time.
func (r *reader) tellApart() {
	byLink := map[string][]*Entry{}
	for _, e := range r.doc.Entries {
		if e.WeakID && e.Links.has(RelAlternate) {
			byLink[e.ID] = append(byLink[e.ID], e)
		}
	}
	for _, same := range byLink {
		oldest := same[len(same)-1] // usually the newest come first
		for _, e := range slices.Backward(same) {
			if t := e.time(); !t.IsZero() && t.Before(oldest.time()) {
				oldest = e
			}
		}
		for _, e := range same {
			if e != oldest {
				e.ID = e.madeID()
			}
		}
	}
}

// madeID returns an ID made of an entry's link, title and time.
func (e *Entry) madeID() string {
	h := sha256.New()
	for _, part := range []string{e.ID, e.Title().Body, e.time().UTC().Format(time.RFC3339Nano)} {
		_, _ = io.WriteString(h, strconv.Itoa(len(part))+":"+part)
	}
	return digestID(h)
}

// time returns when the entry was published, or else changed; zero if it says neither.
func (e *Entry) time() time.Time {
	return feedtime.First(e.Published, e.Updated)
}

// Storing an entry, and reading it again.

// Digest returns a digest of the entry's bytes as published. An entry that is repeated
// in another document has the same digest.
func (e *Entry) Digest() string {
	sum := sha256.Sum256([]byte(e.raw))
	return hex.EncodeToString(sum[:16])
}

// ReadEntry reads a single entry, as Entry.XML and Entry.JSON return it. References in
// JSON resolve against base; XML has its own base.
//
// The ID of an entry without an id is its link, or a digest of what it says. In its
// document the ID may have been another one, if several entries had the same link.
// The error is a *ParseError.
func ReadEntry(format Format, data, base string) (*Entry, error) {
	switch format {
	case JSONFeed:
		data = `{"version":"https://jsonfeed.org/version/1.1","items":[` + data + "]}"
	case RSS:
		data = "<rss" + namespaceOf(data) + "><channel>" + data + "</channel></rss>"
	default:
		data = "<feed" + namespaceOf(data) + ">" + data + "</feed>"
	}
	doc, err := Parser{Limits: unlimited, Strict: true}.parse(data, base)
	if err != nil {
		return nil, err
	}
	if len(doc.Entries) != 1 {
		return nil, &ParseError{
			URL: base, Reason: ReasonMalformed, Clause: clauseFeed,
			Err: fmt.Errorf("%d entries instead of one", len(doc.Entries)),
		}
	}
	return doc.Entries[0], nil
}

// unlimited are the limits for an entry that has already been read within Limits.
var unlimited = Limits{
	Depth: math.MaxInt, Attributes: math.MaxInt, Namespaces: math.MaxInt,
	Elements: math.MaxInt, Entries: math.MaxInt, HeadLinks: math.MaxInt, ID: math.MaxInt, URL: math.MaxInt,
}

// namespaceOf returns the declaration of an element's namespace; "" if it has none.
func namespaceOf(element string) string {
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	if !s.Child(0) || s.Space() == "" {
		return ""
	}
	var b strings.Builder
	writeAttr(&b, "xmlns", s.Space())
	return b.String()
}

// beginEntry allocates an entry for the current element; nil if reading ends here.
func (r *reader) beginEntry() *Entry {
	if r.headOnly {
		r.headDone = true
		return nil
	}
	if r.full() {
		r.fail(ReasonLimit, clauseLimits, fmt.Sprintf("more than %d entries", r.limits.Entries))
		return nil
	}
	r.entryMending = entryMending{begun: r.s.Mender.Mended()}
	sc := r.scopes[r.s.Depth()-1]
	r.start, r.reach = r.s.Offset(), xmlscan.Reach{}
	_ = r.s.Reach() // discard what came before
	if own := r.s.Bases()[sc.bases:]; len(own) > 0 {
		r.reach = own[len(own)-1].Reach
	}
	return r.newEntry(sc)
}

// full reports whether the document has as many entries as allowed.
func (r *reader) full() bool { return len(r.doc.Entries)+r.skipped >= r.limits.Entries }

func (r *reader) newEntry(sc *scope) *Entry {
	if len(r.entries) == cap(r.entries) {
		r.entries = make([]Entry, 0, min(max(4, 2*cap(r.entries)), 1024))
	}
	r.own, r.lent = r.own[:0], 0
	if r.odd = false; r.s != nil {
		local := r.s.Local()
		r.odd = r.doc.Format == RSS && vocab.RSSName(local) != local || r.doc.Format == Atom && vocab.AtomName(local) != local
		_ = r.space() // which may set odd
	}
	r.entries = append(r.entries, Entry{Source: r.head, scope: sc})
	return &r.entries[len(r.entries)-1]
}

// enter remembers the scope of the current element's children.
func (r *reader) enter() {
	sc := r.newScope()
	sc.clean = r.s.Clean()
	r.scopes[r.s.Depth()] = sc
}

// endEntry keeps an entry that has just ended.
func (r *reader) endEntry(e *Entry, lenient int, texts *textFinder) {
	if r.s.Err() != nil || r.err != nil {
		return // it was cut off, so it was not read
	}
	if r.idGarbled || r.linkGarbled && e.ID == "" || r.isIDLost(e) {
		r.leaveOut()
		return
	}
	e.raw, e.odd = r.text[r.start:r.s.End()], r.odd
	e.texts = texts.found(len(e.raw))
	if e.lenient = r.s.Lenient() > lenient; r.s.Mender.Mended() > r.begun {
		r.mendEntry(e)
	}
	r.keepEntry(e, r.start, loan{markup: e.raw, reach: r.reach.Max(r.s.Reach())})
}

// keepEntry adds an entry to the document, unless it exceeds a limit.
func (r *reader) keepEntry(e *Entry, offset int, l loan) {
	l.raw, l.links = e.raw, r.lent
	switch {
	case len(e.ID) > r.limits.ID:
		r.skip(offset, fmt.Sprintf("its id has more than %d bytes", r.limits.ID))
		return
	case len(r.own) > maxLinks:
		r.skip(offset, fmt.Sprintf("it has more than %d links", maxLinks))
		return
	case r.lent < 0, !e.scope.lends(l):
		r.skip(offset, fmt.Sprintf("it takes more than %d times its length from its surroundings", maxBorrowed))
		return
	}
	if e.ID == "" {
		e.identify(r.doc.Format)
	}
	r.doc.Entries = append(r.doc.Entries, e)
}

// maxLinks is the maximum number of links of an entry.
const maxLinks = 4096

// takeLinks returns the current entry's links, in memory that the entries share.
func (r *reader) takeLinks() Links {
	n := len(r.own)
	if n == 0 || n > maxLinks {
		return nil
	}
	if n > cap(r.links)-len(r.links) {
		r.links = make(Links, 0, min(max(n, 4, 2*cap(r.links)), 4096))
	}
	from := len(r.links)
	r.links = append(r.links, r.own...)
	return r.links[from:len(r.links):len(r.links)]
}

// addLinks reads further links of the current entry, unless it has too many, or they
// take too much from a base.
func (r *reader) addLinks(read func(Links) Links) {
	n := len(r.own)
	if r.lent < 0 || n > maxLinks {
		return
	}
	r.own = read(r.own)
	for _, link := range r.own[n:] {
		r.lent += roomOfLink + len(link.Href)
	}
	soFar := r.length
	if r.s != nil {
		soFar = r.s.End() - r.start
	}
	if !affords(soFar, r.lent) {
		r.lent = -1
	}
}

// reader returns a reader at the entry's start tag, to be used until release.
func (e *Entry) reader() *reader {
	r := readers.Get().(*reader)
	r.readAgain(e.raw, e.scope, e.format())
	return r
}

// readers are readers for reading entries again. Their memory is far larger than an
// entry.
var readers = sync.Pool{New: func() any { return &reader{s: new(xmlscan.Cursor), doc: new(Document)} }}

// release ends the use of a reader that Entry.reader returned.
func (r *reader) release() {
	r.reset("", new(scope), 0)
	readers.Put(r)
}

// newFragment returns a reader at the start tag of an element.
func newFragment(raw string, sc *scope, format Format) *reader {
	r := &reader{s: new(xmlscan.Cursor), doc: new(Document)}
	r.readAgain(raw, sc, format)
	return r
}

// readAgain moves r to the start tag of an element.
func (r *reader) readAgain(raw string, sc *scope, format Format) {
	r.reset(raw, sc, format)
	r.s.Next()
	r.native = r.space()
}

// reset makes r a new reader in the same memory.
func (r *reader) reset(raw string, sc *scope, format Format) {
	r.s.ReadAgain(raw, sc.bindings, sc.clean)
	*r.doc = Document{URL: sc.base, Format: format}
	*r = reader{
		s: r.s, doc: r.doc, bases: r.bases[:0], spaces: r.spaces,
		text: raw, lang: sc.lang, limits: Limits{}.withDefaults(),
	}
	if len(r.spaces) > 50 {
		r.spaces = nil
	}
}
