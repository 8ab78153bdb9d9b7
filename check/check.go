// Package check finds the faults of a feed's history, from a single document to the
// whole chain of a feed's archives, in Atom, RSS and JSON Feed.
//
//	doc, err := feedhistory.Parse(file, "https://example.org/feed.atom")
//	for _, f := range check.Document(doc, err, check.RFC5005) {
//		fmt.Println(f)
//	}
//
// A Chain checks the documents of a walk, one by one. Each Finding has a code, the
// clause it is based on, its place, and its remedy. Rules returns all rules.
package check

import (
	"fmt"
	"slices"
	"strings"
)

// A Level says how serious a finding is.
type Level uint8

// The levels, least serious first.
const (
	Note    Level = iota // worth knowing
	Warning              // breaks a SHOULD, or loses entries with known readers
	Error                // breaks a MUST, or leaves the meaning undefined
)

// String returns "note", "warning" or "error".
func (l Level) String() string { return [...]string{"note", "warning", "error"}[min(l, Error)] }

// MarshalText returns the same as String.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads the text MarshalText writes.
func (l *Level) UnmarshalText(text []byte) error {
	for level := Note; level <= Error; level++ {
		if level.String() == string(text) {
			*l = level
			return nil
		}
	}
	return fmt.Errorf("%q is not a level", text)
}

// A Profile is a set of rules.
type Profile uint8

// The profiles.
const (
	RFC5005 Profile = iota // RFC 5005, Feed Paging and Archiving
	AtomPMH                // the same, and Atom-PMH 1.0, for feeds of metadata records

	DataReplication // the data replication protocol; its feeds are not documents, so use it only with Chain.Walk
)

// String returns "rfc5005", "atom-pmh" or "datareplication".
func (p Profile) String() string {
	return [...]string{"rfc5005", "atom-pmh", "datareplication"}[min(p, DataReplication)]
}

// A Finding is a fault, or something worth knowing.
//
// Its Clause is a section, such as "RFC 5005 §3", or a numbered duty: "5005#14" is duty 14
// in the list [RFC5005.md], "atom-pmh#5" one of Atom-PMH 1.0, and "datareplication#feed-5"
// one in the README of package harvest/datareplication. The numbers are this project's.
// For readers who do not know them, show the Message and the Hint.
//
// [RFC5005.md]: https://github.com/feedhistory/feedhistory/blob/main/RFC5005.md
type Finding struct {
	Code    string // the code of its Rule
	Clause  string // the clause of the specification, such as "5005#14"
	Level   Level
	Message string // the fault, with the values
	Hint    string // the remedy: what to write instead
	URL     string // the URL of the document; "" if unknown
	Line    int    // the line in the document as decoded to UTF-8, from 1; zero if there is no place
	Column  int    // from 1, in characters
	Quote   Quote  // the text at the place
}

// Where returns the place of the finding as URL:line:column, as far as it is
// known.
func (f Finding) Where() string {
	if f.Line == 0 {
		return f.URL
	}
	return strings.TrimPrefix(fmt.Sprintf("%s:%d:%d", f.URL, f.Line, f.Column), ":")
}

// String returns the finding in one line, without its hint.
func (f Finding) String() string {
	return strings.TrimPrefix(f.Where()+": ", ": ") +
		fmt.Sprintf("%v: %s [%s, %s]", f.Level, f.Message, f.Code, f.Clause)
}

// A Quote is the part of a line of the document around a place. It is not
// cleaned, so do not print it to a terminal as it is.
type Quote struct {
	Before string // the text before the place
	After  string // the text from the place on
}

// HasErrors reports whether any of the findings is an error.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == Error })
}
