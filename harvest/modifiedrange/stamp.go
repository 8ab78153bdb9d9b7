package modifiedrange

import (
	"bytes"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A stampKind says which element tells when an item was last modified. It is
// one and the same throughout a sync (modified-range#6).
type stampKind uint8

const (
	stampUnknown stampKind = iota // no item has been seen yet
	stampEdited                   // app:edited
	stampUpdated                  // modified of Atom 0.3, else atom:updated
)

// The namespaces of app:edited: that of RFC 5023, and of its drafts.
const (
	nsApp      = "http://www.w3.org/2007/app"
	nsAppDraft = "http://purl.org/atom/app#"
)

// of returns an entry's stamp of this kind; the zero time if it has none.
func (k stampKind) of(e *feedhistory.Entry) time.Time {
	if k == stampEdited {
		return edited(e)
	}
	return e.Updated
}

// choose returns the kind of stamp that all the entries have.
func choose(entries []*feedhistory.Entry) stampKind {
	if len(entries) == 0 {
		return stampUnknown
	}
	for _, e := range entries {
		if edited(e).IsZero() {
			return stampUpdated
		}
	}
	return stampEdited
}

// stampOf returns an entry's own stamp.
func stampOf(e *feedhistory.Entry) time.Time {
	if t := edited(e); !t.IsZero() {
		return t
	}
	return e.Updated
}

// edited returns app:edited; the zero time if the entry has none, or none that
// can be read.
func edited(e *feedhistory.Entry) time.Time {
	xml := e.XML()
	if !bytes.Contains(xml, []byte("edited")) {
		return time.Time{}
	}
	s := xmlscan.New(string(xml), xmlscan.Limits{})
	for s.Child(0); s.Child(1); {
		if s.Is(nsApp, "edited") || s.Is(nsAppDraft, "edited") {
			t, err := time.Parse(time.RFC3339, strings.TrimSpace(s.ElementText()))
			if err != nil {
				return time.Time{}
			}
			return t
		}
	}
	return time.Time{}
}

// unitOf returns the smallest unit that a stamp seems to be written in: a
// second, or the thousandth, millionth … of one.
func unitOf(t time.Time) time.Duration {
	unit := time.Second
	for unit > tick && t.Nanosecond()%int(unit) != 0 {
		unit /= 1000
	}
	return unit
}
