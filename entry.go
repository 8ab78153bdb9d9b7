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
	"time"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The identity of entries without an id (5005#22).

// identify sets the ID of an entry without one: its link, or else a digest of its
// content.
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

// say writes an entry's content, so the digest stays the same when the entry is written
// elsewhere and read again.
func (e *Entry) say(w io.Writer, format Format) {
	if format == JSONFeed {
		_, _ = io.WriteString(w, e.raw)
		return
	}
	r := e.elements()
	defer r.Release()
	r.Say(w)
}

// tellApart sets different IDs for entries of one document without an id, but with the
// same link. The oldest keeps the link, so known IDs do not change; the IDs of the
// others are made of link, title and time.
func tellApart(entries []*Entry) {
	byLink := map[string][]*Entry{}
	for _, e := range entries {
		if e.WeakID && e.Links.has(RelAlternate) {
			byLink[e.ID] = append(byLink[e.ID], e)
		}
	}
	for _, same := range byLink {
		oldest := same[len(same)-1] // usually the newest come first
		for _, e := range slices.Backward(same) {
			if t := e.Time(); !t.IsZero() && t.Before(oldest.Time()) {
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
	for _, part := range []string{e.ID, e.text(0, true).Body, e.Time().UTC().Format(time.RFC3339Nano)} {
		_, _ = io.WriteString(h, strconv.Itoa(len(part))+":"+part)
	}
	return digestID(h)
}

// Storing an entry, and reading it again.

// ReadEntry reads a single entry, as Entry.XML and Entry.JSON return it. References in
// JSON resolve against base; XML has its own base.
//
// The ID of an entry without an id is its link, or a digest of its content. In its
// document the ID may have been another one, if several entries had the same link: store
// ID and WeakID with the data, and set both. The digest may differ, too; see
// Entry.Digest. The error is a *ParseError.
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

// unlimited are the limits for an entry already read within Limits.
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
	xmlscan.WriteAttr(&b, "xmlns", s.Space())
	return b.String()
}

// elements returns the entry's element read again, to be used until Release.
func (e *Entry) elements() *feedxml.Elements {
	return feedxml.Again(e.raw, e.scope, feedxml.Format(e.format()))
}
