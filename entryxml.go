package feedhistory

import (
	"strings"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// XML returns the entry as published, as a separate element: with the namespaces, base
// and language in scope, and well-formed even if it was not. It changes nothing else.
// For a JSON Feed it returns nil; see JSON.
//
// If the entry's fields were set since it was read, or it never was, XML returns the
// Atom entry of its Draft; nil if the Draft lacks an ID.
func (e *Entry) XML() []byte {
	if e.isAltered() {
		made, err := e.Draft().entry()
		if err != nil {
			return nil
		}
		e = made
	}
	if e.format() == JSONFeed {
		return nil
	}
	return []byte(e.scope.Standalone(e.raw, e.lenient))
}

// Signed returns the entry with the authors of its feed, if it is an entry of Atom or of a
// JSON Feed without authors (RFC 4287 §4.2.1). An entry needs them outside its document. If
// its fields were set since it was read, it is the Atom entry that XML returns.
func (e *Entry) Signed() *Entry {
	if e.isAltered() {
		if made, err := e.Draft().entry(); err == nil {
			made.WeakID = e.WeakID
			made.read = made.fields()
			return made
		}
	}
	authors := e.authors()
	if len(authors) == 0 {
		return e
	}
	if e.format() == JSONFeed {
		return e.signedJSON(authors)
	}
	var w xmlWriter
	for _, p := range authors {
		w.person("author", p)
	}
	text := string(e.XML())
	end := strings.LastIndex(text, "</")
	if end < 0 {
		return e
	}
	signed := *e
	signed.raw = text[:end] + strings.ReplaceAll(w.b.String(), "<author>", `<author xmlns="`+vocab.Atom+`">`) + text[end:]
	signed.scope, signed.lenient, signed.signed = &xmlscan.Scope{Base: e.scope.Base}, false, true
	signed.texts = feedxml.Places{}
	return &signed
}

// authors returns the authors an entry has from its feed. Their number is limited,
// because every entry repeats them.
func (e *Entry) authors() []Person {
	if e.raw == "" || e.signed || e.format() == RSS {
		return nil // a channel's managing editor is not the author of its items
	}
	left := xmlscan.MaxInheritedExtra
	for i, p := range e.Source.Authors {
		if left -= len(p.Name) + len(p.Email) + len(p.URI); left < 0 {
			return e.Source.Authors[:i]
		}
	}
	return e.Source.Authors
}

// isNative reports whether the entry's element has the given format and namespace, and
// can be written unchanged in such a document.
func (e *Entry) isNative(format Format, space string) bool {
	if e.raw == "" || e.odd || e.format() != format {
		return false
	}
	r := e.elements()
	defer r.Release()
	return r.Cursor.Space() == space
}
