package publish

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A JSONEntry is an entry as one line of JSON, which the command prints, and reads to
// publish or import: a feedhistory.EntryJSON, with the other members of a line.
//
//	{"feed": "https://example.org/feed.atom", "id": "https://example.org/1", "title": "One"}
//	{"id": "https://example.org/0", "deleted": "2003-12-14T00:00:00Z"}
type JSONEntry struct {
	Type string `json:"type,omitempty"` // "entry" or absent; lines of other types are not entries: see JSONEntries
	Feed string `json:"feed,omitempty"` // the URL of the entry's feed

	// Private says the feed is private, so its URL may be a secret.
	Private bool `json:"private,omitempty"`

	feedhistory.EntryJSON
	Deleted JSONDeletion `json:"deleted,omitzero"` // the entry is no longer part of the feed
	Source  string       `json:"source,omitempty"` // where the copy comes from, such as "newsboat"; "" if the feed itself had it
	Raw     *JSONRaw     `json:"raw,omitempty"`
}

// A JSONDeletion is whether and when an entry was deleted. In JSON, true means an
// unknown time; false and null mean it was not deleted.
type JSONDeletion struct {
	Deleted bool
	When    time.Time // zero if the time is unknown
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *JSONDeletion) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &d.Deleted)
	}
	d.Deleted = true
	return json.Unmarshal(data, &d.When)
}

// MarshalJSON implements json.Marshaler.
func (d JSONDeletion) MarshalJSON() ([]byte, error) {
	if d.When.IsZero() {
		return json.Marshal(d.Deleted)
	}
	return json.Marshal(d.When)
}

// JSONEntries reads entries from lines of JSON. It skips lines of other types, such as
// those about feeds in the command's exports. An error, which names its line, ends the
// sequence.
func JSONEntries(r io.Reader) iter.Seq2[*JSONEntry, error] {
	return func(yield func(*JSONEntry, error) bool) {
		if r == nil {
			yield(nil, errors.New("publish: JSONEntries: the io.Reader is nil"))
			return
		}
		lines, seen := bufio.NewScanner(r), map[string]int{}
		lines.Buffer(nil, maxDocument)
		n := 1
		for ; lines.Scan(); n++ {
			line := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
			if len(line) == 0 {
				continue
			}
			entry, err := readJSONEntry(line)
			if err == nil && entry == nil {
				continue
			}
			if err == nil && seen[entry.ID] > 0 {
				err = fmt.Errorf("the id %s is already in line %d", entry.ID, seen[entry.ID])
			}
			if err != nil {
				yield(nil, fmt.Errorf("line %d: %w", n, err))
				return
			}
			seen[entry.ID] = n
			if !yield(entry, nil) {
				return
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("it is longer than %d bytes", maxDocument)
		}
		if err != nil {
			yield(nil, fmt.Errorf("line %d: %w", n, err))
		}
	}
}

// readJSONEntry reads a line; nil if the line is not an entry.
func readJSONEntry(line []byte) (*JSONEntry, error) {
	entry := new(JSONEntry)
	err := json.Unmarshal(line, entry)
	switch {
	case err != nil && isOther(line):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("not an entry in JSON: %w", err)
	case !entry.isEntry():
		return nil, nil
	case entry.ID == "":
		return nil, errors.New("the entry has no id")
	}
	return entry, nil
}

// isOther reports whether a line is of another type, whose members may not have the
// form of a JSONEntry's.
func isOther(line []byte) bool {
	var other struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(line, &other) == nil && !(&JSONEntry{Type: other.Type}).isEntry()
}

func (r *JSONEntry) isEntry() bool { return r.Type == "" || r.Type == "entry" }

// NewJSONEntry returns an entry as a JSONEntry: everything a Draft has, which is enough to
// publish it. Set Raw to NewJSONRaw(e) as well to get the entry back without any loss, by
// JSONEntry.Original.
func NewJSONEntry(e *feedhistory.Entry) *JSONEntry {
	return &JSONEntry{EntryJSON: feedhistory.NewEntryJSON(e)}
}

// Redact removes the address of a private feed from one of its entries. Relative
// references in texts resolve against its directory from then on.
func (r *JSONEntry) Redact() {
	for _, text := range []*feedhistory.Text{&r.Title, &r.Summary, &r.Content} {
		text.Base = iri.Directory(text.Base)
	}
	links := slices.Clone(r.Links)
	for i, l := range links {
		if fragment, ok := strings.CutPrefix(l.Href, r.Feed); ok && r.Feed != "" {
			links[i].Href = iri.Directory(r.Feed) + fragment
		}
	}
	r.Links, r.Feed = links, ""
}

// Entry returns the entry described by r, to publish it. It is a new Atom entry, made of
// the members of EntryJSON: without Raw, Source and WeakID. If r has no update time, the
// entry gets its publication time or else the epoch, by which Publisher.Publish knows it
// has none.
func (r *JSONEntry) Entry() (*feedhistory.Entry, error) {
	d, err := r.Draft()
	if err != nil {
		return nil, err
	}
	if d.Updated.IsZero() {
		d.Updated = d.Published
	}
	if d.Updated.IsZero() {
		d.Updated = epoch
	}
	return d.Entry()
}

var epoch = time.Unix(0, 0).UTC()

// Original returns the entry as it was published, from Raw, with the ID and WeakID of r.
// Only its Source is missing, and its Digest may be another one: Raw.Digest has the
// published one. Without Raw, Original is Entry.
func (r *JSONEntry) Original() (*feedhistory.Entry, error) {
	if r.Raw == nil {
		return r.Entry()
	}
	e, err := feedhistory.ReadEntry(r.Raw.Format, r.Raw.Data, r.Raw.Base)
	if err != nil {
		return nil, err
	}
	e.ID, e.WeakID = r.ID, r.WeakID
	return e, nil
}

// A JSONRaw is an entry as it was published. JSONEntry.Original makes the same entry from
// it, except for its Digest, because Data also has what the entry inherits from its
// document.
type JSONRaw struct {
	Format feedhistory.Format `json:"format"`
	Data   string             `json:"data"`             // an XML element with all its namespaces, or a JSON object
	Base   string             `json:"base,omitempty"`   // the base of references in JSON
	Digest string             `json:"digest,omitempty"` // the digest of the entry in its document: feedhistory.Entry.Digest
}

// NewJSONRaw returns an entry as it was published, with its feed's authors if it
// has none.
func NewJSONRaw(e *feedhistory.Entry) *JSONRaw {
	if e == nil {
		return nil
	}
	raw := &JSONRaw{Digest: e.Digest(), Format: feedhistory.Atom}
	signed := e.Signed()
	if signed.Source != nil {
		raw.Format, raw.Base = signed.Source.Format, signed.Source.URL
	}
	if raw.Data = string(signed.XML()); raw.Format == feedhistory.JSONFeed {
		raw.Data = string(signed.JSON())
	}
	return raw
}
