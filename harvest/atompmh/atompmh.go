// Package atompmh harvests metadata records, and publishes them to be
// harvested. It implements both roles of the Atom Feed Protocol for Metadata
// Harvesting, Atom-PMH 1.0.
//
// A producer has a pool of records. Its feed has an entry for each record, with links
// to the record's representations. When a record is modified, there is a new entry;
// when it is deleted, a deletion entry. The feed is archived (RFC 5005 §4) in the
// order of time, so a returning consumer reads back only to where it was:
//
//	h := atompmh.Harvester{URL: "https://example.org/records/feed.atom"}
//	harvest := h.Harvest(ctx, from) // the mark, zero at first
//	for change, err := range harvest.Changes() {
//		…
//	}
//	mark, whole := harvest.Mark() // to be stored together with the changes
//
// A small pool can be published in one complete document instead (RFC 5005 §2); a
// record absent from it is deleted.
//
// A Producer is the other side: it makes the feed from a pool, in any
// publish.Output.
//
// Comments cite the duties of the specification as atom-pmh#7, and the answers to
// questions left to consumers as atom-pmh consumer#2. The README lists the latter.
//
// A function that takes a context may return the error of the context. Methods of nil pointers
// may panic, unless their comments say otherwise.
package atompmh

import (
	"errors"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedxml"
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

	// The other fields come from Fetch, for a Record with a chosen representation.

	Body []byte // the chosen representation
	Type string // its media type, according to the server, or else to the link

	// Gone means the representation no longer exists (403, 404, 410). Only the
	// representation of an active entry must exist, so the record has been modified or
	// deleted since (atom-pmh consumer#6); the next harvest shows which.
	Gone bool

	// Err is the reason the body could not be retrieved. Unless Gone is set, it says
	// nothing about the record: fetch it again later.
	Err error
}

// A Representation is where a record can be retrieved in a certain format.
type Representation struct {
	URL  string `json:"url"`
	Type string `json:"type,omitempty"` // the media type in the link; "" if it has none
}

// representations returns the targets of an entry's alternate links
// (atom-pmh#15).
func representations(e *feedhistory.Entry) (all []Representation) {
	for _, l := range e.Links {
		if l.Rel == "alternate" {
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
	there, empty := contentIn(e, xml)
	_, alternate := e.Links.Rel("alternate")
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
func contentIn(e *feedhistory.Entry, xml string) (there, empty bool) {
	for content := range xmlscan.Children(xml, feedxml.Atom, "content") {
		return true, strings.TrimSpace(content.Text) == "" && !content.Nested && e.Content().Src == ""
	}
	return false, false
}

// Entry returns the entry of the item: an active entry, or a deletion entry. The error is a
// harvest.ErrRecord.
func (it Item) Entry() (*feedhistory.Entry, error) {
	if !isTime(it.Modified) {
		return nil, it.refused("atom-pmh#11", "it has no last modified time that can be written")
	}
	d := compose.Draft{
		ID: it.ID, Updated: it.Modified.UTC(),
		Title: feedhistory.Text{Type: "text", Body: it.Title},
	}
	if it.Deleted {
		d.Content.Type = "text" // which is empty, and so not left out (atom-pmh#26)
	} else if err := it.link(&d); err != nil {
		return nil, err
	}
	e, err := d.Entry()
	if err != nil {
		return nil, it.refused("atom-pmh#3", err.Error())
	}
	if e.ID != it.ID || !slices.Equal(e.Links, d.Links) {
		return nil, it.refused("atom-pmh#3", "readers would not read it as given")
	}
	return e, nil
}

// link adds links to the representations.
func (it Item) link(d *compose.Draft) error {
	if len(it.Representations) == 0 {
		return it.refused("atom-pmh#15", "it has no representation")
	}
	for _, r := range it.Representations {
		if u, err := url.Parse(r.URL); err != nil || !u.IsAbs() {
			return it.refused("atom-pmh#15", fmt.Sprintf("not an absolute URL: %q", r.URL))
		}
		if t, err := readRange(r.Type); err != nil || t.kind == "*" || t.sub == "*" {
			return it.refused("atom-pmh#15", fmt.Sprintf("not a media type: %q", r.Type))
		}
		d.Links = append(d.Links, feedhistory.Link{Rel: "alternate", Href: r.URL, Type: r.Type})
	}
	return nil
}

func (it Item) refused(clause, why string) error {
	return &harvest.Error{Code: harvest.ErrRecord, Item: it.ID, At: it.Modified, Clause: clause, Text: why}
}

// A mediaRange is an element of Accept (RFC 9110 §12.5.1): a media type, with
// parameters or without, type/* or */*.
type mediaRange struct {
	kind, sub string // "*" means any
	params    map[string]string
}

// readRanges parses Harvester.Accept.
func readRanges(accept []string) ([]mediaRange, error) {
	ranges := make([]mediaRange, len(accept))
	for i, value := range accept {
		r, err := readRange(value)
		if err == nil && r.kind == "*" && r.sub != "*" {
			err = errors.New("a wildcard before the slash requires one after it")
		}
		if _, ok := r.params["q"]; ok {
			err = errors.New("a weight has no meaning here: the order is the preference")
		}
		if err != nil {
			return nil, &harvest.Error{Code: harvest.ErrAccept, Item: value, Text: fmt.Sprintf("accept %q: %v", value, err), Err: err}
		}
		ranges[i] = r
	}
	return ranges, nil
}

// readRange parses a media type or range. Names are converted to lower case.
func readRange(value string) (mediaRange, error) {
	name, params, err := mime.ParseMediaType(value)
	if err != nil {
		return mediaRange{}, err
	}
	kind, sub, ok := strings.Cut(name, "/")
	if !ok || kind == "" || sub == "" {
		return mediaRange{}, fmt.Errorf("not a media type: %q", value)
	}
	return mediaRange{kind, sub, params}, nil
}

// matches reports whether a media type is in the range: it has every parameter
// of the range, and may have others. Case does not matter in values: it does
// not in those of charset, and hardly ever in others (RFC 9110 §8.3.1).
func (r mediaRange) matches(of mediaRange) bool {
	if r.kind != "*" && r.kind != of.kind || r.sub != "*" && r.sub != of.sub {
		return false
	}
	for name, value := range r.params {
		if has, ok := of.params[name]; !ok || !strings.EqualFold(has, value) {
			return false
		}
	}
	return true
}

// choose returns the representation to use: the first one in the first range to contain
// any (atom-pmh consumer#5); without ranges, the first of all. Only */* contains a
// representation of unknown type.
func choose(all []Representation, ranges []mediaRange) *Representation {
	if len(ranges) == 0 {
		ranges = []mediaRange{{"*", "*", nil}}
	}
	types := make([]mediaRange, len(all))
	for i, r := range all {
		types[i], _ = readRange(r.Type)
	}
	for _, r := range ranges {
		for i, of := range types {
			if r.matches(of) {
				return &all[i]
			}
		}
	}
	return nil
}

// notAtom reports a document that cannot be part of a feed of records (atom-pmh#3).
func notAtom(doc *feedhistory.Document) error {
	return &harvest.Error{Code: harvest.ErrFormat, URL: doc.URL, Text: fmt.Sprintf("this is %s, not Atom", doc.Format), Clause: "atom-pmh#3"}
}
