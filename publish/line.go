package publish

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/go-json-experiment/json/jsontext"
)

// A Line is an entry as a line of JSON, which the command prints, and reads to
// publish or import: a compose.EntryJSON, with the other members of a line.
//
//	{"feed": "https://example.org/feed.atom", "id": "https://example.org/1", "title": "One"}
//	{"id": "https://example.org/0", "deleted": "2003-12-14T00:00:00Z"}
type Line struct {
	Type string `json:"type,omitempty"` // "entry" or absent; lines of other types are not entries: see Lines
	Feed string `json:"feed,omitempty"` // the URL of the entry's feed

	// Private says the feed is private, so its URL may be a secret.
	Private bool `json:"private,omitempty"`

	compose.EntryJSON
	Deleted LineDeletion `json:"deleted,omitzero"` // the entry is no longer part of the feed
	Source  string       `json:"source,omitempty"` // where the copy comes from, such as "newsboat"; "" if the feed itself had it
	Raw     *RawEntry    `json:"raw,omitempty"`
}

// A LineDeletion is whether and when an entry was deleted. In JSON, true means an
// unknown time; false and null mean it was not deleted.
type LineDeletion struct {
	Deleted bool
	When    time.Time // zero if the time is unknown
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *LineDeletion) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &d.Deleted)
	}
	d.Deleted = true
	return json.Unmarshal(data, &d.When)
}

// MarshalJSON implements json.Marshaler.
func (d LineDeletion) MarshalJSON() ([]byte, error) {
	if d.When.IsZero() {
		return json.Marshal(d.Deleted)
	}
	return json.Marshal(d.When)
}

// Lines reads entries from lines of JSON. It skips lines of other types, such as
// those about feeds in the command's exports. See, unless it is nil, is called with each line
// before its entry comes. An error, which names its line, ends the sequence.
func Lines(r io.Reader, see func(line []byte)) iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		if r == nil {
			yield(nil, errors.New("publish: Lines: the io.Reader is nil"))
			return
		}
		lines, seen := bufio.NewScanner(r), map[idKey]uint32{} // of the numbers of lines
		lines.Buffer(nil, settings.MaxLine)
		n := 1
		for ; lines.Scan(); n++ {
			line := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
			if len(line) == 0 {
				continue
			}
			if see != nil {
				see(line)
			}
			entry, err := ReadLine(line)
			if err == nil && entry == nil {
				continue
			}
			var id idKey
			if err == nil {
				id = idKeyOf(entry.ID)
			}
			if err == nil && seen[id] > 0 {
				err = fmt.Errorf("the id %s is already in line %d", entry.ID, seen[id])
			}
			if err != nil {
				yield(nil, fmt.Errorf("line %d: %w", n, err))
				return
			}
			seen[id] = uint32(n)
			if !yield(entry, nil) {
				return
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = errLongLine
		}
		if err != nil {
			yield(nil, fmt.Errorf("line %d: %w", n, err))
		}
	}
}

// An idKey is a short digest of an id, since millions of them are kept in memory.
type idKey [12]byte

func idKeyOf(id string) idKey {
	sum := digestOf(id)
	return idKey(sum[:])
}

// errLongLine reports a line longer than any entry.
var errLongLine = fmt.Errorf("it is longer than %d MiB", settings.MaxLine>>20)

// ReadLine reads a single line as Lines does; the result is nil if the line is not an entry.
func ReadLine(line []byte) (*Line, error) {
	if len(line) > settings.MaxLine {
		return nil, errLongLine
	}
	entry, err := decodeLine(line), error(nil)
	if entry == nil {
		entry = new(Line)
		err = json.Unmarshal(line, entry)
	}
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

// decodeLine reads a line as json.Unmarshal does, but each text only once instead of four times. It
// returns nil for what it leaves to json.Unmarshal: a line with an error, a member of another name,
// or a string of another type.
func decodeLine(line []byte) *Line {
	d := lineDecoders.Get().(*lineDecoder)
	defer lineDecoders.Put(d)
	d.in = *bytes.NewBuffer(line)
	d.Reset(&d.in)
	r := new(Line)
	if !decodeObject(d, r) {
		return nil
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil
	}
	return r
}

// A lineDecoder decodes a line in memory used before.
type lineDecoder struct {
	*jsontext.Decoder
	in   bytes.Buffer
	text []byte
}

var lineDecoders = sync.Pool{New: func() any { return &lineDecoder{Decoder: new(jsontext.Decoder)} }}

// decodeObject reads an object into a struct. It reports whether it could.
func decodeObject[T any](d *lineDecoder, into *T) bool {
	if start, err := d.ReadToken(); err != nil || start.Kind() != '{' {
		return false
	}
	to := reflect.ValueOf(into).Elem()
	names := membersOf(to.Type())
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return false
		}
		field, ok := names[string(name[1:len(name)-1])] // one with an escape is no known one
		if !ok || !decodeMember(d, to.FieldByIndex(field).Addr().Interface()) {
			return false
		}
	}
	end, err := d.ReadToken()
	return err == nil && end.Kind() == '}'
}

// membersOf returns the fields of a struct by the names of their members in JSON: those of their tags, or else
// their own in small letters, as a feedhistory.Text has them, besides base64.
func membersOf(of reflect.Type) map[string][]int {
	if known, ok := knownMembers.Load(of); ok {
		return known.(map[string][]int)
	}
	names := map[string][]int{}
	for _, f := range reflect.VisibleFields(of) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous && tag != "-" {
			names[cmp.Or(tag, strings.ToLower(f.Name))] = f.Index
		}
	}
	knownMembers.Store(of, names)
	return names
}

var knownMembers sync.Map // of the maps by type

// decodeArray appends the elements of an array, which read reads. It reports whether it could.
func decodeArray[T any](d *lineDecoder, to *[]T, read func(*T) bool) bool {
	if start, err := d.ReadToken(); err != nil || start.Kind() != '[' {
		return false
	}
	*to = []T{}
	for d.PeekKind() != ']' {
		var one T
		if *to = append(*to, one); !read(&(*to)[len(*to)-1]) {
			return false
		}
	}
	_, err := d.ReadToken()
	return err == nil
}

// decodeMember reads a value.
func decodeMember(d *lineDecoder, into any) bool {
	switch into := into.(type) {
	case *string:
		if d.PeekKind() != '"' {
			return false
		}
		value, err := d.ReadValue()
		if err == nil {
			d.text, err = jsontext.AppendUnquote(d.text[:0], value)
		}
		*into = string(d.text)
		return err == nil
	case *feedhistory.Text:
		if d.PeekKind() == '"' {
			return decodeMember(d, &into.Body)
		}
		return decodeObject(d, into)
	case *feedhistory.Links:
		return decodeArray(d, (*[]feedhistory.Link)(into), func(l *feedhistory.Link) bool { return decodeObject(d, l) })
	case *[]feedhistory.Person:
		return decodeArray(d, into, func(p *feedhistory.Person) bool {
			if d.PeekKind() == '"' {
				return decodeMember(d, &p.Name)
			}
			return decodeObject(d, p)
		})
	}
	value, err := d.ReadValue()
	return err == nil && json.Unmarshal(value, into) == nil
}

// isOther reports whether a line is of another type, whose members may not have the
// form of a Line's.
func isOther(line []byte) bool {
	var other struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(line, &other) == nil && !(&Line{Type: other.Type}).isEntry()
}

func (r *Line) isEntry() bool { return r.Type == "" || r.Type == "entry" }

// NewLine returns an entry as a Line, without the Feed and Raw. It has everything a Draft
// has, which is enough to publish the entry. Set Raw to NewRawEntry(e) as well to get the
// entry back without any loss, by Line.Original.
func NewLine(e *feedhistory.Entry) *Line {
	entry := compose.NewEntryJSON(e)
	entry.Language = "" // a Draft has it in its texts
	return &Line{EntryJSON: entry}
}

// Redact removes the address of a private feed from one of its entries. Relative
// references in texts resolve against its directory from then on.
func (r *Line) Redact() {
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
func (r *Line) Entry() (*feedhistory.Entry, error) {
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
func (r *Line) Original() (*feedhistory.Entry, error) {
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

// A RawEntry is an entry as it was published, which loses nothing: Line.Original makes the
// entry from it. Digest is that of the entry in its document.
type RawEntry struct {
	Format feedhistory.Format `json:"format"`
	Data   string             `json:"data"`             // an XML element with all its namespaces, or a JSON object
	Base   string             `json:"base,omitempty"`   // the base of references in JSON
	Digest string             `json:"digest,omitempty"` // the digest of the entry in its document: feedhistory.Entry.Digest
}

// NewRawEntry returns an entry as it was published, with its feed's authors if it
// has none.
func NewRawEntry(e *feedhistory.Entry) *RawEntry {
	if e == nil {
		return nil
	}
	raw := &RawEntry{Digest: e.Digest(), Format: feedhistory.FormatAtom}
	signed := e.Signed()
	if signed.Head != nil {
		raw.Format, raw.Base = signed.Head.Format, signed.Head.URL
	}
	if raw.Data = string(signed.XML()); raw.Format == feedhistory.FormatJSONFeed {
		raw.Data = string(signed.JSON())
	}
	return raw
}
