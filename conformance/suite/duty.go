package suite

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Duty is a duty of a publisher, and the outcome of testing it.
type Duty struct {
	Name     string   `json:"name"`
	Clause   string   `json:"clause"` // such as 5005#9
	Basis    string   `json:"basis"`
	Strength string   `json:"strength"`
	Text     string   `json:"text"`               // the duty in words
	Outcome  Outcome  `json:"outcome"`            // none if nothing happened to show it
	Messages []string `json:"messages,omitempty"` // the first few faults
}

// duties returns all duties of a publisher.
func duties() []*Duty {
	return []*Duty{
		{Name: "well-formed", Clause: "XML 1.0 §2.1", Basis: basisRFC, Strength: must, Text: "Every document can be read to its end."},
		{Name: "newest", Clause: "5005#8", Basis: basisRFC, Strength: must, Text: "Added and changed entries are in the subscription document."},
		{Name: "kept", Clause: "5005 §4", Basis: basisGoal, Strength: must, Text: "A published entry stays in the feed until it is deleted."},
		{Name: "ids", Clause: "RFC 4287 §4.2.6", Basis: basisRFC, Strength: must, Text: "An entry that changes keeps its id."},
		{Name: "paged", Clause: "5005#5", Basis: basisRFC, Strength: must, Text: "Every page of a paged feed can be read, and has first, last, previous or next."},
		{Name: "prev-archive", Clause: "5005#11", Basis: basisRFC, Strength: must, Text: "A chain of prev-archive links leads to every archive."},
		{Name: "next-archive", Clause: "5005#12", Basis: basisRFC, Strength: should, Text: "Every archive but the newest links to the next with next-archive."},
		{Name: "current", Clause: "5005#13", Basis: basisRFC, Strength: should, Text: "Every archive links to the subscription document with current."},
		{Name: "archive", Clause: "5005#14", Basis: basisRFC, Strength: should, Text: "Every archive is marked with fh:archive."},
		{Name: "closed", Clause: "5005#15", Basis: basisRFC, Strength: must, Text: "No link leads to an archive that is still being filled."},
		{Name: "entries", Clause: "5005#9", Basis: basisRFC, Strength: should, Text: "The set of an archive's entries does not change."},
		{Name: "addresses", Clause: "5005#10", Basis: basisRFC, Strength: should, Text: "An archive's address does not change."},
		{Name: "bytes", Clause: "5005#9", Basis: basisGoal, Strength: should, Text: "An archive stays the same to the byte, which is more than the clause asks; the newest may gain its next-archive."},
		{Name: "entry-times", Clause: "5005#16", Basis: basisRFC, Strength: should, Text: "A changed entry has a later time than before."},
		{Name: "document-times", Clause: "5005#21", Basis: basisRFC, Strength: should, Text: "A changed subscription document has a later time than before."},
		{Name: "deletion", Clause: "RFC 6721", Basis: basisGoal, Strength: should, Text: "A deleted entry has a tombstone, or is in no document any more."},
		{Name: "not-modified", Clause: "RFC 9110 §13.1", Basis: basisHTTP, Strength: should, Text: "A conditional request for an unchanged document is answered with 304."},
		{Name: "modified", Clause: "RFC 9110 §8.8", Basis: basisHTTP, Strength: must, Text: "A conditional request for a changed document is not answered with 304."},
	}
}

// A PublisherReport is the result of testing a publisher.
type PublisherReport struct {
	Version  string   `json:"version"`         // the version of the suite
	URL      string   `json:"url"`             // the URL of the subscription document
	Kind     string   `json:"kind"`            // the kind of the feed at the end
	Archives int      `json:"archives"`        // the number of archives at the end
	Added    int      `json:"added"`           // how many entries were added
	Notes    []string `json:"notes,omitempty"` // sentences about the duties not tested
	Duties   []*Duty  `json:"duties"`
}

// Failed reports whether the publisher breaks a "must".
func (r *PublisherReport) Failed() bool {
	return slices.ContainsFunc(r.Duties, func(d *Duty) bool { return d.Outcome == Failed })
}

// WriteText writes the report as text.
func (r *PublisherReport) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s, %d archives after %d additions\n", r.URL, r.Kind, r.Archives, r.Added)
	for _, d := range r.Duties {
		fmt.Fprintf(w, "%-5s %-7s %s (%s, %s)\n", d.Outcome, d.Strength, d.Text, d.Basis, d.Clause)
		for _, message := range d.Messages {
			fmt.Fprintf(w, "              %s\n", message)
		}
	}
	_, err := io.WriteString(w, strings.Join(append([]string{""}, r.Notes...), "\n")+"\n")
	return err
}

// mostMessages is the maximum number of messages for a duty.
const mostMessages = 5

// saw records one observation of a duty. The message is the fault if the duty does not
// hold.
func (r *PublisherReport) saw(duty string, holds bool, message string, args ...any) {
	for _, d := range r.Duties {
		switch {
		case d.Name != duty:
		case holds && d.Outcome == Silent:
			d.Outcome = Passed
		case !holds:
			d.Outcome = Failed
			if d.Strength == should {
				d.Outcome = Warned
			}
			if len(d.Messages) < mostMessages {
				d.Messages = append(d.Messages, fmt.Sprintf(message, args...))
			}
		}
	}
}
