// Package feedxml reads the elements of Atom and RSS as their publishers meant them. It
// knows misspelt names and namespaces, bases, languages, and the constructs both formats
// share: texts, persons and links. It also reads entries and head sections into gofeed's
// form.
package feedxml

import (
	"strings"
	"sync"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Format is the format of a document; zero means it is unknown yet.
type Format uint8

// The formats.
const (
	Atom Format = iota + 1
	RSS
)

// MaxURL is the default of Elements.MaxURL.
const MaxURL = 8 << 10

// Elements are the elements of an XML document, or of one entry read again. The methods
// of the Cursor return names as they are, those of Elements as they are meant.
type Elements struct {
	*xmlscan.Cursor
	Format Format
	Native string // the namespace of the root, or of the entry read again
	Odd    bool   // an element since the caller set it to false has a misspelt name
	MaxURL int    // the length of the longest URL

	// Note is called with leniencies, each with its place; nil means to ignore them.
	Note func(code, message string, offset int)

	text    string // the document
	url     string // the document's
	lang    string // xml:lang around an entry read again
	literal bool   // titles stay as published
	stopped bool   // the rest is not read

	exact  string            // the last of the exact namespaces
	spaces map[string]string // the meanings of the other namespaces
	bases  xmlscan.BaseChain
}

// mostSpaces is the maximum number of namespaces whose meanings are kept.
const mostSpaces = 1000

// New returns the elements of a document from the given URL, still without a Cursor.
func New(text, url string) Elements { return Elements{text: text, url: url, MaxURL: MaxURL} }

// Fragment returns the children of an element read again: it is at the element's start
// tag.
func Fragment(raw string, sc *xmlscan.Scope, format Format) *Elements {
	r := &Elements{Cursor: new(xmlscan.Cursor)}
	r.readAgain(raw, sc, format)
	return r
}

// readers are for entries read again. Their memory is far larger than an entry.
var readers = sync.Pool{New: func() any { return &Elements{Cursor: new(xmlscan.Cursor)} }}

// Again is Fragment in memory used before. Release it after use.
func Again(raw string, sc *xmlscan.Scope, format Format) *Elements {
	r := readers.Get().(*Elements)
	r.readAgain(raw, sc, format)
	return r
}

// Release ends the use of the result of Again. The pool forgets it, and the text it has
// read, at a garbage collection.
func (r *Elements) Release() { readers.Put(r) }

// readAgain moves to the start tag of an element.
func (r *Elements) readAgain(raw string, sc *xmlscan.Scope, format Format) {
	r.reset(raw, sc, format)
	r.Next()
	r.Native = r.Space()
}

// reset makes new elements in the same memory.
func (r *Elements) reset(raw string, sc *xmlscan.Scope, format Format) {
	r.ReadAgain(raw, sc.Bindings, sc.Clean)
	r.bases.Reset()
	*r = Elements{
		Cursor: r.Cursor, Format: format, MaxURL: MaxURL, text: raw, url: sc.Base, lang: sc.Lang,
		bases: r.bases, spaces: r.spaces,
	}
	if len(r.spaces) > 50 {
		r.spaces = nil
	}
}

// Stop ends reading: there is no further Child.
func (r *Elements) Stop() { r.stopped = true }

// Stopped reports whether Stop has been called.
func (r *Elements) Stopped() bool { return r.stopped }

// Child moves to the next child of the element at a depth, unless reading has ended.
func (r *Elements) Child(depth int) bool { return !r.stopped && r.Cursor.Child(depth) }

func (r *Elements) note(code, message string, offset int) {
	if r.Note != nil {
		r.Note(code, message, offset)
	}
}

// Language returns xml:lang at the current element.
func (r *Elements) Language() string {
	if lang, ok := r.Lang(); ok {
		return lang
	}
	return r.lang
}

// Base returns the base at the current element, by its xml:base, its ancestors' and the
// document's URL (5005#25).
func (r *Elements) Base() string { return r.bases.Resolve(r.url, r.Bases(), r.MaxURL) }

// NewScope returns the scope of the current element's content.
func (r *Elements) NewScope() *xmlscan.Scope { return r.Scope(r.Base(), r.Language()) }

// PlainText reads the current element's text, without the white space around it.
func (r *Elements) PlainText() string { return xmlscan.Trim(r.ElementText()) }

// LanguageText reads a language tag; "" if it is too long to be one (RFC 5646 §4.4.1).
func (r *Elements) LanguageText() string {
	if lang := r.PlainText(); len(lang) <= 64 {
		return lang
	}
	return ""
}

// Mended returns the element just ended, well-formed. White space between an element
// without an end tag and the next element is not part of it.
func (r *Elements) Mended(raw string, sc *xmlscan.Scope) string {
	if r.Mender.Unclosed() {
		raw = strings.TrimRight(raw, " \t\r\n")
	}
	return xmlscan.MendElement(raw, sc.Bindings)
}

// Person reads a person construct.
func (r *Elements) Person() xmlscan.Person { return r.Cursor.Person(r.Base) }

// clip shortens a quotation in a message.
func clip(s string) string { return xmlscan.Clip(s, 40) }
