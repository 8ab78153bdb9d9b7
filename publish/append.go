package publish

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// accept returns the items to publish: entries, oldest first, and deletions newer than the
// published ones. It leaves out items already published.
func (p *session) accept(s *state, entries []*feedhistory.Entry, deleted []feedhistory.Tombstone) ([]item, error) {
	given, err := p.items(entries, deleted)
	if err != nil {
		return nil, err
	}
	known, err := p.known(s, given)
	if err != nil {
		return nil, err
	}
	accepted := given[:0]
	var refused []error
	for i, it := range given {
		var original *feedhistory.Entry
		if it.entry != nil {
			original = entries[i]
		}
		old, ok := known[it.id]
		switch err := it.follows(old); {
		case ok && p.isAgain(it, old, original):
			p.sign(it.entry)
		case !ok || err == nil:
			known[it.id] = it
			accepted = append(accepted, it)
		default:
			refused = append(refused, &EntryError{ID: it.id, Given: it.time, Published: old.time, Err: err})
		}
	}
	return accepted, errors.Join(refused...)
}

// items returns normalized entries, and deletions.
func (p *Publisher) items(entries []*feedhistory.Entry, deleted []feedhistory.Tombstone) ([]item, error) {
	given := make([]item, 0, len(entries)+len(deleted))
	for _, e := range entries {
		normal, err := p.normalize(e)
		if err != nil {
			return nil, refused(e, err)
		}
		given = append(given, entryItem(normal))
	}
	for _, t := range deleted {
		if t.Ref == "" || t.When.IsZero() {
			return nil, &EntryError{ID: t.Ref, Given: t.When, Err: unpublishable("a deletion needs an ID and a time")}
		}
		given = append(given, item{id: t.Ref, time: t.When})
	}
	return given, nil
}

// follows returns why an item cannot come after an old one of the same id, or
// nil if it can. An entry without a time counts as changed when its document
// was (5005#21), so it is newer than anything before.
func (it item) follows(old item) error {
	switch {
	case it.entry != nil && it.time.IsZero():
		return nil
	case it.time.Before(old.time):
		return ErrStale
	case !it.time.Equal(old.time), it.entry == nil && old.entry != nil:
		return nil // a deletion also applies to an entry of the same time (RFC 6721 §2)
	case old.entry == nil:
		return ErrStale
	}
	return ErrSameTime
}

// isAgain reports whether an item, made from the original, is published already, as old.
func (p *Publisher) isAgain(it, old item, original *feedhistory.Entry) bool {
	if it.entry == nil || old.entry == nil {
		return it.entry == old.entry && it.time.Equal(old.time)
	}
	return it.entry.Updated.Equal(old.entry.Updated) && p.isPublished(it.entry, original, p.words(old.entry))
}

// known returns the published versions of the given items, as far as they can matter.
func (p *session) known(s *state, given []item) (map[string]item, error) {
	known := make(map[string]item, len(s.log)+len(s.recent))
	for _, it := range s.items() {
		if _, ok := known[it.id]; !ok {
			known[it.id] = it
		}
	}
	want := map[string]time.Time{}
	for _, it := range given {
		if _, ok := known[it.id]; ok || it.time.IsZero() || it.time.After(s.latest) {
			continue
		}
		if old, ok := want[it.id]; !ok || it.time.Before(old) {
			want[it.id] = it.time
		}
	}
	return known, p.find(s, want, known)
}

// items returns the items of the subscription document, the newest of each id
// first. An entry without a time counts as updated when the document was.
func (s *state) items() []item {
	items := slices.Clone(s.log)
	slices.Reverse(items)
	for _, e := range s.recent {
		items = append(items, entryItem(e))
	}
	for i := range items {
		if items[i].time.IsZero() {
			items[i].time = s.doc.Updated
		}
	}
	return items
}

// find looks up ids in the archives, newest first. It looks for each id back to the
// first archive with nothing newer than the time given with the id. The first version
// found is the newest, because versions are published in the order of their times. The
// chain ends at a removed archive (5005#18).
func (p *session) find(s *state, want map[string]time.Time, found map[string]item) error {
	if len(want) == 0 {
		return nil
	}
	for a, err := range p.chain(s.prev) {
		if isNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, it := range a.items() {
			if _, ok := want[it.id]; ok {
				found[it.id] = it
				delete(want, it.id)
			}
		}
		for id, since := range want {
			if a.doc.Updated.Before(since) {
				delete(want, id)
			}
		}
		if len(want) == 0 {
			return nil
		}
	}
	return nil
}

// items returns the items of an archive. An entry without a time counts as
// updated when the archive was.
func (a *archive) items() []item {
	var items []item
	for _, e := range a.doc.Entries {
		it := entryItem(e)
		if it.time.IsZero() {
			it.time = a.doc.Updated
		}
		items = append(items, it)
	}
	for _, t := range a.doc.Deleted {
		items = append(items, item{id: t.Ref, time: t.When})
	}
	return items
}

// isPublished reports whether an entry, made from the original, says the same as the
// published one with these words. It may be published in a form of earlier versions: a
// version that writes an entry in another form republishes nothing.
func (p *Publisher) isPublished(normal, original *feedhistory.Entry, published digest) bool {
	says := func(e *feedhistory.Entry) bool {
		return p.words(e) == published || p.words(e.Signed()) == published // the authors of the entry's own feed were not ours
	}
	if says(normal) {
		return true
	}
	return slices.ContainsFunc(p.forms()[1:], func(form form) bool {
		e, err := form(original)
		return err == nil && says(e)
	})
}

// A form makes the permanent form of an entry, which it keeps in every document.
type form func(*feedhistory.Entry) (*feedhistory.Entry, error)

// forms returns the form in which this version publishes entries, and then those of
// earlier versions. Whoever changes the form keeps the present one here: entries published
// in it count as unchanged, and lost archives are restored in it.
func (p *Publisher) forms() []form { return []form{p.normalize, p.uncarried, p.earlier} }

// uncarried returns an entry in the form in which earlier versions published it: without
// elements the feed's format does not have, and with a title of RSS escaped once.
func (p *Publisher) uncarried(e *feedhistory.Entry) (*feedhistory.Entry, error) {
	normal, err := p.normalize(e)
	if err != nil || p.format() == feedhistory.FormatRSS && sourceOf(e).Format == feedhistory.FormatRSS {
		return normal, err
	}
	space, names := feedxml.RSS2, []string{"comments", "source"}
	if p.format() == feedhistory.FormatRSS {
		space, names = feedxml.Atom, []string{"author", "category", "contributor", "rights", "source"}
	}
	element := without(textOf(normal), feedxml.JSONMembers, "json")
	for _, name := range names {
		element = without(element, space, name)
	}
	if p.format() == feedhistory.FormatRSS {
		element = withTitle(element, "", xmlscan.Unescape)
	}
	return feedhistory.ReadEntry(p.format(), element, "")
}

// without returns an entry without the children with a name, each on a line.
func without(element, space, local string) string {
	for _, child := range slices.Backward(slices.Collect(xmlscan.Children(element, space, local))) {
		element = element[:child.Start] + strings.TrimPrefix(element[child.End:], "\n")
	}
	return element
}

// normalize returns an entry in the form of this version: in the feed's format and valid,
// with an id, in Atom with an update time, and with a base if it depends on one.
func (p *Publisher) normalize(e *feedhistory.Entry) (*feedhistory.Entry, error) {
	return p.permanent(e, false)
}

// permanent returns an entry in its permanent form; a verbatim one is as valid
// as it was given.
func (p *Publisher) permanent(e *feedhistory.Entry, verbatim bool) (*feedhistory.Entry, error) {
	if e == nil || e.ID == "" {
		return nil, ErrNoID
	}
	format := p.format()
	if e.WeakID || e.Updated.IsZero() && format == feedhistory.FormatAtom {
		e = p.identified(e)
	}
	given := e
	if given == nil {
		return nil, unpublishable("it has no ID or no update time, and cannot be written with one")
	}
	text := textOf(e)
	if !p.isNormal(e, text) {
		if sourceOf(e).URL == "" {
			as := feedhistory.FormatAtom // also one that a program made
			if sourceOf(e).Format == feedhistory.FormatRSS {
				as = feedhistory.FormatRSS
			}
			e = reread(p.written(e, as, true), p.URL())
		}
		if e != nil && !p.isNormal(e, textOf(e)) {
			e = reread(p.written(e, format, true), "")
		}
		if e != nil {
			text = textOf(e)
		}
	}
	if e != nil && !verbatim {
		e = p.repaired(e, text)
	}
	if e == nil || e.WeakID || e.ID != given.ID || !e.Updated.Equal(given.Updated) && !given.Updated.IsZero() {
		return nil, p.condition(given, e)
	}
	return e, nil
}

// condition returns the error for an entry which readers would read as another one, or not at all (nil).
func (p *Publisher) condition(given, read *feedhistory.Entry) error {
	_, err := door.Root.Element(given)
	isForbidden := func(r rune) bool { return !xmlscan.IsChar(r) }
	switch {
	case strings.TrimSpace(given.ID) != given.ID:
		return unpublishable("its ID begins or ends with white space, which readers remove")
	case !utf8.ValidString(given.ID) || strings.ContainsFunc(given.ID, isForbidden):
		return unpublishable("its ID has a character that XML does not allow")
	case err != nil:
		return unpublishable(err.Error())
	case read == nil:
		return unpublishable("it is not well-formed")
	case read.ID != given.ID || read.WeakID:
		return unpublishable("its ID would be read as " + xmlscan.Clip(read.ID, 40))
	}
	return unpublishable("its update time would be read as " + read.Updated.Format(time.RFC3339Nano) + ", instead of " + given.Updated.Format(time.RFC3339Nano))
}

// earlier returns an entry in the form in which earlier versions published it:
// as valid as it was given, and with the references in a title of RSS.
func (p *Publisher) earlier(e *feedhistory.Entry) (*feedhistory.Entry, error) {
	normal, err := p.permanent(e, true)
	if err != nil || sourceOf(e).Format != feedhistory.FormatRSS || p.format() != feedhistory.FormatAtom {
		return normal, err
	}
	title := ""
	for child := range xmlscan.Children(textOf(e), "", "title") {
		if title = strings.Trim(child.Text, " \t\r\n"); title != "" {
			break
		}
	}
	element := textOf(normal)
	if title != "" && title != normal.Title().Body {
		element = withTitle(element, feedxml.Atom, func(string) string { return title })
	}
	return feedhistory.ReadEntry(feedhistory.FormatAtom, element, "")
}

// repaired returns a normal entry with a text, valid: itself, if it is. It returns nil if
// that fails.
func (p *Publisher) repaired(e *feedhistory.Entry, text string) *feedhistory.Entry {
	unsigned := e
	if e.Head == nil || len(e.Head.Authors) > 0 { // the feed's authors need not be written on the entry
		other, source := *e, *sourceOf(e)
		source.Authors = nil
		unsigned, other.Head = &other, &source
	}
	if p.valid.contains(unsigned, text, p.format(), p.form) { // nearly always
		return e
	}
	valid := reread(p.written(unsigned, p.format(), false), "")
	if valid == nil {
		return e
	}
	if e.Head != nil {
		valid.Head.Authors = e.Head.Authors
	}
	return valid
}

// A validWriter writes entries in their valid form, one after another into one document.
type validWriter struct {
	b      bytes.Buffer
	text   []byte // for which contains looks
	w      *compose.Writer
	format feedhistory.Format
	form   int
}

// contains reports whether the valid form of an entry has a text; false on failure.
func (v *validWriter) contains(e *feedhistory.Entry, text string, format feedhistory.Format, form int) bool {
	if v.w == nil || v.format != format || v.form != form {
		v.w, v.format, v.form = compose.NewWriter(&v.b, format, &feedhistory.Document{ID: "urn:x"}), format, form
		door.Former(v.w, form)
	}
	v.b.Reset()
	if v.w.Add(e) != nil {
		v.w = nil // which writes nothing more
		return false
	}
	v.text = append(v.text[:0], text...)
	return bytes.Contains(v.b.Bytes(), v.text)
}

// written returns a document of an entry; nil on failure.
func (p *Publisher) written(e *feedhistory.Entry, format feedhistory.Format, verbatim bool) []byte {
	var b bytes.Buffer
	w := compose.NewWriter(&b, format, &feedhistory.Document{ID: "urn:x", Entries: []*feedhistory.Entry{e}})
	door.Former(w, p.form)
	if w.Verbatim = verbatim; w.Close() != nil {
		return nil
	}
	return b.Bytes()
}

// reread returns the entry of a document written here, at a base. It returns nil on failure.
func reread(text []byte, base string) *feedhistory.Entry {
	doc, err := feedhistory.Parser{Trusted: true, Strict: true}.Parse(bytes.NewReader(text), base)
	if err != nil || len(doc.Entries) != 1 {
		return nil
	}
	unsign(doc)
	return doc.Entries[0]
}

// unsign removes from a document written here the author WriteAtom derives from the
// title or id if there is none: no entry is by this author.
func unsign(doc *feedhistory.Document) {
	if len(doc.Authors) != 1 || doc.Authors[0] != (feedhistory.Person{Name: cmp.Or(doc.Title, doc.ID, "unknown")}) {
		return
	}
	for _, e := range doc.Entries {
		e.Head.Authors = nil
	}
}

// identified gives an entry without an id or an update time a substitute. It
// converts through the other format, because an entry written in its own format
// stays as it is.
func (p *Publisher) identified(e *feedhistory.Entry) *feedhistory.Entry {
	way := feedhistory.FormatRSS
	if sourceOf(e).Format == feedhistory.FormatRSS {
		way = feedhistory.FormatAtom
	}
	base := cmp.Or(sourceOf(e).URL, p.URL())
	there := reread(p.written(e, way, true), base)
	if there == nil {
		return nil
	}
	if there.Updated.IsZero() && e.Head != nil {
		there.Head.Updated = e.Head.Updated
	}
	return reread(p.written(there, p.format(), true), base)
}

// sourceOf returns the head of an entry's document; a zero one if there is none.
func sourceOf(e *feedhistory.Entry) *feedhistory.Document {
	if e.Head == nil {
		return new(feedhistory.Document)
	}
	return e.Head
}

// isNormal reports whether an entry with a text can be written as it is.
func (p *Publisher) isNormal(e *feedhistory.Entry, text string) bool {
	if sourceOf(e).Format != p.format() {
		return false
	}
	end := strings.IndexByte(text, '>')
	if end < 0 {
		return false
	}
	start := text[:end]
	if p.format() == feedhistory.FormatAtom {
		if !strings.HasPrefix(start, "<entry ") || !strings.Contains(start, ` xmlns="http://www.w3.org/2005/Atom"`) {
			return false
		}
	} else if !strings.HasPrefix(start, "<item ") || strings.Contains(start, ` xmlns="`) ||
		!strings.Contains(start, ` xmlns:atom="`) {
		return false
	}
	return strings.Contains(start, ` xml:base="`) || !isRelative(e, text)
}

// isRelative reports whether an entry has, or seems to have, references relative to its
// document. A superfluous base does no harm.
func isRelative(e *feedhistory.Entry, text string) bool {
	for _, l := range e.Links {
		if !isAbsolute(l.Href) {
			return true
		}
	}
	for i := strings.IndexByte(text, '='); i >= 0; {
		value := unquote(text[i+1:])
		if isReference(text[:i]) && value != "" && !strings.ContainsRune("\"'&", rune(value[0])) && !isAbsolute(value) {
			return true
		}
		next := strings.IndexByte(text[i+1:], '=')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	_, uri, _ := strings.Cut(text, "<uri>")
	return uri != "" && !isAbsolute(uri)
}

// unquote removes the quote, escaped or not, before an attribute's value.
func unquote(s string) string {
	s = strings.TrimLeft(s, " \t\r\n")
	for _, quote := range []string{`"`, "'", "&quot;", "&#34;", "&#39;", "&apos;"} {
		if rest, ok := strings.CutPrefix(s, quote); ok {
			return rest
		}
	}
	return s
}

// isReference reports whether text ends in the name of an attribute whose value
// is a reference.
func isReference(text string) bool {
	tail := strings.ToLower(strings.TrimRight(text[max(0, len(text)-20):], " \t\r\n"))
	names := []string{"href", "src", "srcset", "data", "cite", "poster", "action", "background", "codebase", "usemap"}
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(tail, name) })
}

// isAbsolute reports whether a reference begins with a scheme.
func isAbsolute(ref string) bool {
	scheme, _, ok := strings.Cut(ref, ":")
	return ok && iri.IsScheme(scheme)
}
