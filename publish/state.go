package publish

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// A state is the published state, according to the subscription document. It does not
// change; each call makes a new one.
type state struct {
	text string
	doc  *feedhistory.Document // nil if nothing is published yet
	ledger
	log    []item               // items not archived, oldest first
	recent []*feedhistory.Entry // archived entries shown again, newest first
}

// An item is an element of the log: a version of an entry, or its deletion.
type item struct {
	entry *feedhistory.Entry // nil for a deletion
	id    string
	time  time.Time // when it was updated or deleted; zero if the entry has no time
}

func entryItem(e *feedhistory.Entry) item { return item{e, e.ID, e.Updated} }

// textOf returns the text of an entry, for which its method XML makes a copy.
func textOf(e *feedhistory.Entry) string { return door.Root.XML(e) }

// parse reads a document of this feed, and leaves references as they are: an
// entry whose meaning depends on its document has an xml:base.
func parse(text string) (*feedhistory.Document, error) {
	text, language := withoutLanguage(text)
	doc, err := feedhistory.Parser{Trusted: true, Strict: true}.Parse(strings.NewReader(text), "")
	if doc != nil {
		doc.Language = cmp.Or(doc.Language, language)
		unsign(doc)
	}
	return doc, err
}

// withoutLanguage returns a document written here without the language of its feed, which its
// entries would inherit: they are the same in each document.
func withoutLanguage(text string) (rest, language string) {
	from := strings.Index(text, "<feed ")
	tag, _, _ := strings.Cut(text[max(from, 0):], ">")
	before, after, ok := strings.Cut(tag, ` xml:lang="`)
	language, _, closed := strings.Cut(after, `"`)
	if from < 0 || !ok || !closed {
		return text, ""
	}
	end := from + len(before) + len(` xml:lang="`) + len(language) + len(`"`)
	return text[:from+len(before)] + text[end:], language
}

// newState reads a subscription document.
func newState(text string) (*state, error) {
	m, ok := readLedger(text)
	if !ok {
		return nil, ErrForeign
	}
	doc, err := parse(text)
	if err != nil {
		return nil, err
	}
	if m.open < 0 || m.open > len(doc.Entries) {
		return nil, ErrForeign
	}
	return stateOf(text, m, doc), nil
}

// stateOf returns the state of a subscription document.
func stateOf(text string, m ledger, doc *feedhistory.Document) *state {
	return &state{text: text, doc: doc, ledger: m, log: merge(doc.Entries[:m.open], doc.Deleted), recent: doc.Entries[m.open:]}
}

// merge merges entries and deletions, both newest first, into one log, oldest
// first. Entries keep their order; deletions are placed by their time.
func merge(entries []*feedhistory.Entry, deleted []feedhistory.Tombstone) []item {
	log := make([]item, 0, len(entries)+len(deleted))
	i := len(deleted) - 1
	before := func(t time.Time) {
		for ; i >= 0 && !deleted[i].When.After(t); i-- {
			log = append(log, item{id: deleted[i].Ref, time: deleted[i].When})
		}
	}
	for _, e := range slices.Backward(entries) {
		before(e.Updated)
		log = append(log, entryItem(e))
	}
	before(endOfTime)
	return log
}

var endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)

// load returns the published state. First it finishes an interrupted call if that had
// taken effect, and removes the remains of other interrupted calls.
func (p *session) load() (*state, error) {
	if err := p.resume(); err != nil {
		return nil, err
	}
	s, err := p.published()
	if err != nil {
		return nil, err
	}
	return s, p.clean(s)
}

// published reads the subscription document.
func (p *session) published() (*state, error) {
	text, err := p.read(p.name())
	if errors.Is(err, fs.ErrNotExist) {
		return &state{ledger: ledger{form: currentForm}}, nil
	}
	if err != nil {
		return nil, err
	}
	if p.cache != nil && p.cache.text == text {
		return p.cache, nil
	}
	s, err := newState(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name(), err)
	}
	return s, nil
}

func (p *session) read(name string) (string, error) {
	data, err := fs.ReadFile(p.Output, name)
	return string(data), err
}

// An archive is an archive as read back.
type archive struct {
	name string
	text string
	doc  *feedhistory.Document
	prev string // the name of the preceding one; "" for none
}

// archive reads an archive.
func (p *session) archive(name string) (*archive, error) {
	if err := p.ctx.Err(); err != nil {
		return nil, err // reading by fs.FS cannot be cancelled, but there are many archives
	}
	text, err := p.read(name)
	if err != nil {
		return nil, err
	}
	doc, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a := &archive{name: name, text: text, doc: doc}
	self, _ := doc.Links.Rel("self")
	base, ok := strings.CutSuffix(self.Href, "/"+name)
	if prev, linked := doc.Links.Rel("prev-archive"); linked {
		// the base may have changed since the archive was written
		if a.prev, linked = strings.CutPrefix(prev.Href, base+"/"); !ok || !linked || !fs.ValidPath(a.prev) {
			return nil, fmt.Errorf("%s: %w", name, ErrForeign)
		}
	}
	return a, nil
}

// updated returns when the feed last changed.
func (s *state) updated() time.Time {
	if s.doc == nil {
		return time.Time{}
	}
	return s.doc.Updated
}

// A ledger is a subscription document's message to the next Publisher, in a processing
// instruction before the root element, which feed readers ignore. So all state is in
// the documents, and no archive need be read to continue.
type ledger struct {
	open     int       // the number of entries, from the first, not archived yet
	archives int       // the number of archives ever closed
	latest   time.Time // archived items are not newer than this
	prev     string    // the name of the newest archive; "" for none

	added  feedtime.Additions // the entries recent calls have added
	source int                // number of entries the source's own document shows; zero if unknown

	form int // the form in which the feed is written: zero for that of versions before it was named

	// The remaining work, in a note (see commit.go).
	before string // the name of the archive whose successor is new; "" for none
	next   string // the name of the successor; "" for none
	erase  bool   // whether unreferenced archives are to be removed
}

// done returns the ledger without remaining work.
func (m ledger) done() ledger {
	m.before, m.next, m.erase = "", "", false
	return m
}

// The forms of the first feeds and of new ones; see door.Former. A feed stays in the form in which it
// began, because readers compare its entries, and because an archive now lost can be restored in no
// other.
const firstForm, currentForm = 1, 3

const ledgerTarget = "<?feedhistory "

// String returns the processing instruction.
func (m ledger) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, `%sopen="%d" archives="%d"`, ledgerTarget, m.open, m.archives)
	if !m.latest.IsZero() {
		fmt.Fprintf(&b, ` latest="%s"`, m.latest.UTC().Format(time.RFC3339Nano))
	}
	for _, attr := range [][2]string{{"prev", m.prev}, {"added", m.added.String()}, {"before", m.before}, {"next", m.next}} {
		if attr[1] != "" {
			fmt.Fprintf(&b, ` %s="%s"`, attr[0], attr[1])
		}
	}
	if m.form > 0 {
		fmt.Fprintf(&b, ` form="%d"`, m.form)
	}
	if m.source > 0 {
		fmt.Fprintf(&b, ` source="%d"`, m.source)
	}
	if m.erase {
		b.WriteString(` erase="1"`)
	}
	return b.String() + "?>\n"
}

// withLedger puts a ledger into a document, replacing the old one.
func withLedger(text string, m ledger) string {
	if from, to := findLedger(text); to > 0 {
		return text[:from] + m.String() + text[to:]
	}
	declaration := strings.IndexByte(text, '\n') + 1
	return text[:declaration] + m.String() + text[declaration:]
}

// findLedger returns the position of a document's ledger, after the first line.
func findLedger(text string) (from, to int) {
	from = strings.IndexByte(text, '\n') + 1
	if !strings.HasPrefix(text[from:], ledgerTarget) {
		return 0, 0
	}
	return from, from + strings.Index(text[from:], "?>\n") + len("?>\n")
}

// readLedger reads a document's ledger.
func readLedger(text string) (ledger, bool) {
	from, to := findLedger(text)
	if to <= from {
		return ledger{}, false
	}
	var m ledger
	var err error
	for _, attr := range strings.Fields(strings.TrimSuffix(text[from+len(ledgerTarget):to], "?>\n")) {
		name, value, _ := strings.Cut(attr, "=")
		value = strings.Trim(value, `"`)
		switch name {
		case "open":
			m.open, err = strconv.Atoi(value)
		case "archives":
			m.archives, err = strconv.Atoi(value)
		case "latest":
			m.latest, err = time.Parse(time.RFC3339Nano, value)
		case "prev":
			m.prev = value
		case "form":
			m.form, err = strconv.Atoi(value)
		case "source":
			m.source, err = strconv.Atoi(value)
		case "added":
			m.added, err = feedtime.ParseAdditions(value)
		case "before":
			m.before = value
		case "next":
			m.next = value
		case "erase":
			m.erase = true
		}
		if err != nil {
			return ledger{}, false
		}
	}
	return m, true
}
