// Package memory imports feeds kept by others into a mirror: the entries of feed readers,
// and saved documents. The packages below it read one format each.
package memory

import (
	"regexp"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A Found is one thing in a source: an entry, a document, a feed without either, or a row
// that cannot be read.
type Found struct {
	Feed  string // the feed's URL; "" if unknown
	Title string // the feed's title; "" if the source has none

	Entry    *mirror.KeptEntry
	Document *Saved
	Damage   error // why a row cannot be read, with its place in the source

	// Mark says where another run may continue: after this and everything before it.
	Mark string
}

// A Saved is a saved document of the feed itself.
type Saved struct {
	*feedhistory.Document
	Older int       // the number of documents from before
	At    time.Time // when it was saved
}

// made matches ids that FreshRSS makes where the feed has none.
var made = regexp.MustCompile(`^(urn:sha1:)?[0-9a-f]{32,40}$`)

// PublisherID returns an id of FreshRSS; "" for one it has made itself.
func PublisherID(id string) string {
	if id = strings.TrimSpace(id); made.MatchString(id) {
		return ""
	}
	return id
}

// Unix returns a time in seconds or, if it is far in the future then, in smaller units;
// zero for none.
func Unix(n int64) time.Time {
	switch {
	case n <= 0:
		return time.Time{}
	case n > 1e14:
		return time.UnixMicro(n).UTC()
	case n > 1e11:
		return time.UnixMilli(n).UTC()
	}
	return time.Unix(n, 0).UTC()
}

// Alternate returns an entry's link; nil if it is not a web address.
func Alternate(href string) feedhistory.Links {
	if !IsWeb(href) {
		return nil
	}
	return feedhistory.Links{{Rel: feedhistory.RelAlternate, Href: href}}
}

// Enclosure adds the link of a file to links, unless it is not a web address.
func Enclosure(links feedhistory.Links, href, kind, length string) feedhistory.Links {
	if !IsWeb(href) {
		return links
	}
	return append(links, feedhistory.Link{Rel: feedhistory.RelEnclosure, Href: href, Type: kind, Length: length})
}

// IsWeb reports whether an address is a URL of the web.
func IsWeb(address string) bool {
	u, err := feedhistory.ParseURL(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// HTML returns text as readers keep it, in HTML; nothing for "".
func HTML(body string) feedhistory.Text {
	if body == "" {
		return feedhistory.Text{}
	}
	return feedhistory.Text{Type: feedhistory.TextHTML, Body: body}
}

// Plain returns plain text.
func Plain(body string) feedhistory.Text { return feedhistory.Text{Body: body} }

// Authors returns an author by name; none for "".
func Authors(name string) []feedhistory.Person {
	if name == "" {
		return nil
	}
	return []feedhistory.Person{{Name: name}}
}

// Categories returns categories by their terms, without empty ones.
func Categories(terms []string) (list []feedhistory.Category) {
	for _, term := range terms {
		if term != "" {
			list = append(list, feedhistory.Category{Term: term})
		}
	}
	return list
}
