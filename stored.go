package feedhistory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// What it takes to keep an entry elsewhere, and to have it back.

// Digest returns a digest of the entry as it stood in its document, byte for
// byte: the same words have the same digest, whatever document repeats them.
func (e *Entry) Digest() string {
	sum := sha256.Sum256([]byte(e.raw))
	return hex.EncodeToString(sum[:16])
}

// ReadEntry reads an entry that stands by itself, as Entry.XML and Entry.JSON
// return it. References in JSON resolve against base; XML has its own.
//
// An entry without an id gets its link for one, or a digest of what it says. In
// its document it may have had another, if several entries there had that link.
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
			Err: fmt.Errorf("%d entries, where one should be", len(doc.Entries)),
		}
	}
	return doc.Entries[0], nil
}

// unlimited are for what has passed the limits once.
var unlimited = Limits{
	Depth: math.MaxInt, Attributes: math.MaxInt, Namespaces: math.MaxInt,
	Elements: math.MaxInt, Entries: math.MaxInt, HeadLinks: math.MaxInt, ID: math.MaxInt, URL: math.MaxInt,
}

// namespaceOf returns the declaration of an element's namespace, "" for none.
func namespaceOf(element string) string {
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	if !s.Child(0) || s.Space() == "" {
		return ""
	}
	var b strings.Builder
	writeAttr(&b, "xmlns", s.Space())
	return b.String()
}
