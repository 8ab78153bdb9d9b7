package modifiedrange

import (
	"bytes"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A stampKind says which element has the time when an item was last modified.
// It is the same throughout a harvest (modified-range#6).
type stampKind uint8

const (
	stampUnknown stampKind = iota // no item has been seen yet
	stampEdited                   // app:edited
	stampUpdated                  // modified of Atom 0.3, else atom:updated
)

// The namespaces of app:edited in RFC 5023 and its drafts.
const (
	nsApp      = "http://www.w3.org/2007/app"
	nsAppDraft = "http://purl.org/atom/app#"
)

// of returns the stamp of this kind of an entry; the zero time if it has none.
func (k stampKind) of(e *feedhistory.Entry) time.Time {
	if k == stampEdited {
		return edited(e)
	}
	return e.Updated
}

// choose returns the kind of stamp common to all entries.
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

// StampOf returns the stamp of an entry by itself; zero if it has none (modified-range#6).
func StampOf(e *feedhistory.Entry) time.Time {
	if e == nil {
		return time.Time{}
	}
	return feedtime.First(edited(e), e.Updated)
}

// edited returns the entry's app:edited; the zero time if it has none, or an
// invalid one.
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

// unitOf returns the smallest unit in which a stamp seems to be written: a
// second, or a thousandth, a millionth … of one.
func unitOf(t time.Time) time.Duration {
	unit := time.Second
	for unit > tick && t.Nanosecond()%int(unit) != 0 {
		unit /= 1000
	}
	return unit
}
