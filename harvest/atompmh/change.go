package atompmh

import (
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A ChangeKind is the kind of a Change.
type ChangeKind uint8

// The kinds of change.
const (
	Record  ChangeKind = iota // a record was created or modified; the change has its present state
	Deleted                   // a record was deleted
	Other                     // an entry Atom-PMH does not define
)

// String returns "record", "deleted" or "other".
func (k ChangeKind) String() string {
	return [...]string{"record", "deleted", "other", "unknown"}[min(k, Other+1)]
}

// A Change is the news of one record.
type Change struct {
	Kind ChangeKind
	ID   string // the record's identifier

	// Time is the record's last modified time: when it was created, modified or
	// deleted. For a record that is absent from a complete feed it is the time
	// of the last known state: the time of the deletion is unknown, but not
	// earlier.
	Time time.Time

	Representations []Representation // of the record, in the entry's order
	Chosen          *Representation  // the one Accept prefers; nil if there is none

	// Entry is the entry of the change; nil for a record that is absent from a
	// complete feed.
	Entry *feedhistory.Entry

	// Historical are entries of earlier states of the record, oldest first, as
	// far as the harvest has read them, if the Harvester asks for them.
	Historical []*feedhistory.Entry
}

// A Representation is where a record can be retrieved in a certain format.
type Representation struct {
	URL  string
	Type string // the media type in the link; "" if it has none
}

// representations returns the targets of an entry's alternate links
// (atom-pmh#15).
func representations(e *feedhistory.Entry) (all []Representation) {
	for _, l := range e.Links {
		if l.Rel == feedhistory.RelAlternate {
			all = append(all, Representation{URL: l.Href, Type: l.Type})
		}
	}
	return all
}

// RepresentationsOf returns the representations of the record an entry is about; nil if it
// is no entry of a record (atom-pmh consumer#3), or cannot be published as it is.
func RepresentationsOf(e *feedhistory.Entry) []Representation {
	if e == nil {
		return nil
	}
	all := representations(e)
	if kindOf(e) != Record {
		return nil
	}
	if _, err := (Item{ID: e.ID, Modified: e.Updated, Representations: all}).Entry(); err != nil {
		return nil
	}
	return all
}

// kindOf classifies an entry (atom-pmh consumer#3); it cannot distinguish
// active from historical Records. An entry without its own id or time says
// nothing about any record.
func kindOf(e *feedhistory.Entry) ChangeKind { return kindIn(e, string(e.XML())) }

// kindIn is kindOf for an entry with the given XML.
func kindIn(e *feedhistory.Entry, xml string) ChangeKind {
	there, empty := contentIn(xml)
	_, alternate := e.Links.Rel(feedhistory.RelAlternate)
	switch {
	case e.WeakID || e.ID == "" || !isTime(e.Updated):
		return Other
	case alternate && !there:
		return Record
	case !alternate && there && empty:
		return Deleted
	}
	return Other
}

// isTime reports whether a time is not zero, and can be expressed in RFC 3339.
func isTime(t time.Time) bool {
	year := t.UTC().Year()
	return !t.IsZero() && 0 <= year && year <= 9999
}

// contentIn reports whether an entry's XML has atom:content, and whether it is empty and
// without src (atom-pmh#26).
func contentIn(xml string) (there, empty bool) {
	s := xmlscan.New(xml, xmlscan.Unlimited())
	if !s.Child(0) {
		return false, false
	}
	native := s.Space()
	for depth := s.Depth(); s.Child(depth); {
		if s.Local() != "content" || s.Space() != native && s.Space() != vocab.Atom {
			continue
		}
		_, src := s.Attr("", "src")
		return true, !src && isEmpty(s)
	}
	return false, false
}

// isEmpty reports whether the current element has neither elements nor text
// other than white space.
func isEmpty(s *xmlscan.Cursor) bool {
	for {
		switch s.Next() {
		case xmlscan.Text, xmlscan.CData:
			if strings.TrimSpace(string(s.AppendText(nil))) != "" {
				return false
			}
		case xmlscan.End:
			return true
		default:
			return false
		}
	}
}
