package feedtime

import (
	"bytes"
	"time"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Stamp is an element that says when an item was last modified (modified-range#6).
type Stamp struct {
	name   string
	spaces []string
}

// Stamps returns the stamps besides atom:updated, the best first: app:edited (RFC 5023) in
// its namespace and that of the drafts, and modified in those of Atom 0.3 and 1.0.
func Stamps() []Stamp {
	return []Stamp{
		{"edited", []string{"http://www.w3.org/2007/app", "http://purl.org/atom/app#"}},
		{"modified", []string{"http://purl.org/atom/ns#", "http://www.w3.org/2005/Atom"}},
	}
}

// Of returns the time an entry's element gives for the stamp, and whether it has the stamp.
// The time of an unreadable stamp is zero.
func (s Stamp) Of(entry []byte) (t time.Time, is bool) {
	if !bytes.Contains(entry, []byte(s.name)) {
		return t, false
	}
	text := string(entry)
	for _, space := range s.spaces {
		for child := range xmlscan.Children(text, space, s.name) {
			t, _, _ = Read(child.Text)
			return t, true
		}
	}
	return t, false
}

// StampOf returns the best stamp of an entry's element besides atom:updated; is reports
// whether it has one. The time of an unreadable stamp is zero.
func StampOf(entry []byte) (t time.Time, is bool) {
	for _, s := range Stamps() {
		if t, is = s.Of(entry); is {
			return t, true
		}
	}
	return t, false
}
