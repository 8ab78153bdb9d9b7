package mirror

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/ranks"
)

// A Ledger is the memory of a feed from one reading to the next. A gap is a debt: it is
// entered when it is seen, and only the receipt named for its kind crosses it out. A
// reading that brought nothing cancels nothing. The zero value is that of a feed never
// read. A Store keeps it, in the form it marshals to, and understands nothing of it.
//
// The Ledger of a Poll is all that is remembered of the feed, for a program without a
// Store: the state of the feed, some 25 bytes for each archive document and each entry of the
// subscription document, and digests of the ids of some others.
type Ledger struct {
	l    ledger
	memo *memo // nil if it is not of a Poll
}

// A ledger is the content of a Ledger, as it is stored.
type ledger struct {
	Kind      feedhistory.Kind     `json:"kind,omitzero"`
	Known     feedhistory.Known    `json:"known,omitzero"`      // the subscription document as it was last read whole
	Further   []string             `json:"further,omitempty"`   // where it goes on beyond its chain; see furtherOf
	Leading   []string             `json:"leading,omitempty"`   // the archives read whose links beyond the chain have not been followed, because the poll was broken off
	Debts     []debt               `json:"debts,omitempty"`     // see enter
	Cap       *feedhistory.Verdict `json:"cap,omitempty"`       // the publisher's own word; nil if there is none
	Unread    []debt               `json:"unread,omitempty"`    // the latest documents written off
	Census    census               `json:"census,omitempty"`    // what a Keep has brought
	Unsettled bool                 `json:"unsettled,omitempty"` // the chain of archives may have changed since it was last checked

	Looked  time.Time `json:"looked,omitzero"`  // when an archive was last requested only to see whether it has changed, or pages were read only to find what is owed
	Checked time.Time `json:"checked,omitzero"` // see Ledger.Checked

	lastReading
	succession

	Aliases   aliases   `json:"aliases,omitempty"`  // the other IDs of its entries; see merger.joinPosts
	IDKinds   int       `json:"id_kinds,omitempty"` // the kinds of IDs its entries have had; see merger.noteKinds
	Inherited time.Time `json:"inherited,omitzero"` // when it was begun for a feed read before there were ledgers; zero for others

	upkeep
}

// A lastReading is the latest reading of the subscription document, to be compared with the next.
type lastReading struct {
	Elsewhere bool `json:"elsewhere,omitempty"` // the feed is said to begin at another document, never read yet

	// Its entries in order, each with four bytes of its version, and the places of those that
	// had left it before.
	Shown    []string `json:"shown,omitempty"`
	Versions []byte   `json:"versions,omitempty"`
	Back     []int    `json:"back,omitempty"`

	// The rank of these entries, but for those at the places Stored, whose rows have theirs. A
	// zero Rank means that all have; see merger.window.
	Rank   Rank  `json:"rank,omitzero"`
	Stored []int `json:"stored,omitempty"`

	// Twelve bytes for each of these entries whose row is as the document shows the entry, zeros
	// for others, while the feed has Ahead more Commits than Polls; see merger.findSettled.
	Rows  []byte `json:"settled,omitempty"`
	Ahead int64  `json:"ahead,omitempty"`

	Former    *former      `json:"former,omitempty"`    // the reading before a notice in its place; nil if there is none
	Copied    *lastReading `json:"copied,omitempty"`    // the reading before old copies in its place; nil if there is none
	Unordered bool         `json:"unordered,omitempty"` // the order of its entries has been seen to change
	IDs       []string     `json:"ids,omitempty"`       // the feed's ids
	Recent    []string     `json:"recent,omitempty"`    // digests of its latest different readings, oldest first
	Newest    string       `json:"newest,omitempty"`    // the ID of the latest entry to come first
	Stale     time.Time    `json:"stale,omitzero"`      // since when it may be an old copy; zero if it is not
}

// A succession is the other feeds at the address, and the complete documents of this one.
type succession struct {
	Stranger *stranger   `json:"stranger,omitempty"` // the other feed that answers; nil if none does
	Past     *generation `json:"past,omitempty"`     // the earlier feed at this address; nil if there is none
	Since    int64       `json:"since,omitempty"`    // the number of commits when this feed was adopted there
	Complete int64       `json:"complete,omitempty"` // the Seq of the latest complete document, which voids what was read before (5005#1); zero if there was none
}

// An upkeep is the knowledge of an address, whichever feed answers there.
type upkeep struct {
	Schedule feedhistory.Schedule `json:"schedule,omitzero"` // how often the feed wants to be polled
	Usage    usage                `json:"usage,omitzero"`    // how much of the Quota is used
	Full     Quota                `json:"full,omitzero"`     // the exhausted Quota, which left something unstored; zero means everything was stored
	Unnamed  int64                `json:"unnamed,omitempty"` // the number of entries that Recalls have added without the publisher's ids
	AsOf     time.Time            `json:"as_of,omitzero"`    // see Ledger.Proof
	Answered time.Time            `json:"answered,omitzero"` // when the subscription document was last sent, and not only said to be unchanged
	Pace     time.Duration        `json:"pace,omitempty"`    // the time its entries span; zero if they have no times
	Move     *move                `json:"move,omitempty"`    // the latest permanent redirect; nil if it is not recent
	Counted  int64                `json:"counted,omitempty"` // see Ledger.Proof
	Clock    time.Time            `json:"clock,omitzero"`    // the latest moment of a reading: the ranks of undated documents never go back
	Table    *ranks.Table         `json:"-"`                 // of a Poll's program; nil if the entries are in a Store
}

// A census is the result of a Keep.
type census int

const (
	noCensus     census = iota // there was no Merge
	openCensus                 // it has not proved that it has brought everything
	provenCensus               // it has
)

// censusOf returns the census of a Keep of a source; a source without a name brings
// nothing.
func censusOf(source string, isProven bool) census {
	switch {
	case source == "":
		return noCensus
	case isProven:
		return provenCensus
	}
	return openCensus
}

// A stranger is another feed that answers at the address.
type stranger struct {
	Digest string    `json:"digest"`
	Polls  int       `json:"polls"`
	Since  time.Time `json:"since"`
}

// A generation is the state of an earlier feed at the address of an adopted one.
type generation struct {
	Title  string       `json:"title,omitempty"`
	Head   string       `json:"head,omitempty"`
	Ledger ledger       `json:"ledger"`
	Table  *ranks.Table `json:"ranks,omitempty"` // of a Poll's program, without rows; nil if the entries are in a Store
}

// verdict computes the verdict: debts make a history partial. Without them its kind caps it.
func (l *ledger) verdict() feedhistory.Verdict {
	v := feedhistory.VerdictPartial
	switch {
	case l.isUnread() && len(l.Debts) == 0 && l.Known != (feedhistory.Known{}): // only its validators are known
		return feedhistory.VerdictUnknown
	case l.isUnread(), len(l.Debts) > 0, l.Unsettled:
	case l.Kind == feedhistory.KindPaged || l.Kind == feedhistory.KindPlain && l.Census == openCensus:
		v = feedhistory.VerdictLossy
	case l.Kind == feedhistory.KindPlain && l.Census == noCensus:
		v = feedhistory.VerdictWindow
	case l.Kind == feedhistory.KindPlain, l.Kind == feedhistory.KindComplete, l.Kind == feedhistory.KindArchived:
		v = feedhistory.VerdictWhole
	}
	if l.Cap != nil {
		v = min(v, *l.Cap)
	}
	return v
}

// isUnread reports whether nothing of the feed has ever been read.
func (l *ledger) isUnread() bool { return l.Known.URL == "" && l.Census == noCensus }

// URL returns where the subscription document was last read; "" means never.
func (l Ledger) URL() string { return l.l.Known.URL }

// Pending returns the number of documents that links lead to and polls have not read.
func (l Ledger) Pending() int { return l.l.documents() }

// Debts returns the missing parts: the documents first, and an exhausted Quota only once.
func (l Ledger) Debts() (debts []Debt) {
	full := false
	for _, d := range l.l.debts() {
		if !full || !d.Quota {
			debts = append(debts, Debt{d.gap(), receipts[cmp.Or(d.Kind, d.kind())], feedtime.Later(d.Retry, d.Wait)})
		}
		full = full || d.Quota
	}
	return debts
}

// debts returns the debts: the documents first.
func (l *ledger) debts() []debt {
	return slices.SortedStableFunc(slices.Values(l.Debts), compareKinds)
}

// Gaps returns the Gaps of the Debts.
func (l Ledger) Gaps() (gaps []*feedhistory.Gap) {
	for _, d := range l.Debts() {
		gaps = append(gaps, d.Gap)
	}
	return gaps
}

// Withdrawn returns the documents written off: they were never read, and the chain neither
// names nor needs them. At most the latest eight are known; Found is the time of writing off.
func (l Ledger) Withdrawn() (gaps []*feedhistory.Gap) {
	for _, d := range l.l.Unread {
		gaps = append(gaps, d.gap())
	}
	return gaps
}

// Add adds a gap that no reading has found: one that was exported, for instance, or that
// the caller knows of.
func (l *Ledger) Add(g *feedhistory.Gap) {
	if g != nil {
		l.l.add(newDebt(g))
	}
}

// add adds a debt as it is. Another Ledger may have the list before.
func (l *ledger) add(d debt) {
	d.Kind = cmp.Or(d.Kind, d.kind())
	l.Debts = append(slices.Clone(l.Debts), d)
}

// Proof reports whether a Keep has proved that it has brought everything. If the proof is a
// server's count, which polls do not repeat, it was made asOf then, of the given number of
// live entries; asOf is otherwise zero.
func (l Ledger) Proof() (asOf time.Time, entries int64, ok bool) {
	return l.l.AsOf, l.l.Counted, l.l.Census == provenCensus
}

// Checked returns the time since which each archive document that links lead to has been
// read at least once: the Verdict speaks of the archives as of then. It is zero if there
// are none.
func (l Ledger) Checked() time.Time { return l.l.Checked }

// Shown returns the number of entries in the subscription document as it was last read: at
// most 10,000.
func (l Ledger) Shown() int { return len(l.l.Shown) }

// Unverified reports whether the Verdict is of a version before there were ledgers, whose
// archives have not all been read again since. Update reads them within thirty days.
func (l Ledger) Unverified() bool { return l.l.isUnverified() }

// Reset makes the next poll read the subscription document even if it has not changed and,
// if the chain of archives is to be forgotten as well, as if it were the first. Debts stay.
func (l *Ledger) Reset(chain bool) {
	if chain {
		l.l.Known = feedhistory.Known{}
	}
	l.l.Known.ETag, l.l.Known.LastModified, l.l.Known.Digest = "", "", ""
	l.l.Rows, l.l.Ahead = nil, 0
}

func (l *ledger) isUnverified() bool {
	return l.Kind == feedhistory.KindArchived && l.Known.URL != "" && (!l.hasReading() || l.Checked.Before(l.Inherited))
}

// hasReading reports whether there is a reading, or anything else that a feed read before
// there were ledgers lacks.
func (l *ledger) hasReading() bool {
	return l.Shown != nil || l.IDs != nil || l.Recent != nil || l.Former != nil || l.Stranger != nil || l.Past != nil || l.Elsewhere || l.Since != 0 || !l.Inherited.IsZero()
}

// forget removes an erased entry.
func (l *ledger) forget(id string) {
	is := func(other string) bool { return other == id }
	l.setShown(slices.DeleteFunc(l.shown(), func(e shownEntry) bool { return e.id == id }))
	if l.Newest == id {
		l.Newest = ""
	}
	l.Copied = nil
	l.crossOut(func(d debt) bool { return d.Entry == id })
	for i, d := range l.Debts {
		l.Debts[i].Before = slices.DeleteFunc(slices.Clone(d.Before), is)
		l.Debts[i].After = slices.DeleteFunc(slices.Clone(d.After), is)
	}
}

// check returns an error if the lists of a ledger do not fit.
func (l *ledger) check() error {
	isNone := func(i int) bool { return i < 0 || i >= len(l.Shown) }
	if len(l.Versions) != 4*len(l.Shown) || slices.ContainsFunc(slices.Concat(l.Back, l.Stored), isNone) ||
		len(l.Rows) > 0 && len(l.Rows) != len(rowKey{})*len(l.Shown) {
		return errors.New("the lists of the ledger's entries do not fit")
	}
	if l.Copied != nil {
		if err := (&ledger{lastReading: *l.Copied}).check(); err != nil {
			return err
		}
	}
	if l.Past != nil {
		return l.Past.Ledger.check()
	}
	return nil
}

// clone returns a copy. Lists other than Debts never change.
func (l ledger) clone() ledger {
	l.Debts = slices.Clone(l.Debts)
	return l
}

// MarshalJSON implements json.Marshaler.
func (l Ledger) MarshalJSON() ([]byte, error) {
	if l.memo != nil {
		return l.memo.marshal(l.l)
	}
	return unescaped(l.l.utc())
}

// ownTimes returns the moments of readings, in lists and values of the ledger's own.
func (l *ledger) ownTimes() []*time.Time {
	times := []*time.Time{&l.Looked, &l.Checked, &l.Stale, &l.Inherited, &l.AsOf, &l.Answered}
	l.Debts, l.Unread = slices.Clone(l.Debts), slices.Clone(l.Unread)
	for _, debts := range [][]debt{l.Debts, l.Unread} {
		for i := range debts {
			times = append(times, &debts[i].Found)
		}
	}
	if l.Stranger != nil {
		l.Stranger = clone(l.Stranger)
		times = append(times, &l.Stranger.Since)
	}
	if l.Move != nil {
		l.Move = clone(l.Move)
		times = append(times, &l.Move.Since, &l.Move.Asked)
	}
	return times
}

// setRight takes the moments that lie in the future, which a wrong clock has set, for now.
func (l *ledger) setRight(now time.Time) {
	for _, t := range l.ownTimes() {
		if t.After(now) {
			*t = now
		}
	}
	if l.Past != nil {
		l.Past = clone(l.Past)
		l.Past.Ledger.setRight(now)
	}
}

// utc returns a copy with all times in UTC, because JSON refuses extreme offsets.
func (l ledger) utc() *ledger {
	times := append(l.ownTimes(), &l.Clock, &l.Rank.Time)
	if l.Move != nil {
		times = append(times, &l.Move.Wait)
	}
	for _, debts := range [][]debt{l.Debts, l.Unread} {
		for i := range debts {
			d := &debts[i]
			times = append(times, &d.Retry, &d.Wait, &d.Rank.Time)
		}
	}
	for _, t := range times {
		*t = t.UTC()
	}
	if l.Past != nil {
		l.Past = &generation{l.Past.Title, l.Past.Head, *l.Past.Ledger.utc(), l.Past.Table}
	}
	return &l
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Ledger) UnmarshalJSON(text []byte) error {
	*l = Ledger{}
	if memo, err := unmarshalMemo(text); memo != nil || err != nil {
		*l = memo.ledger()
		return err
	}
	if err := json.Unmarshal(text, &l.l); err != nil {
		return err
	}
	return l.l.check()
}

// An earlier has the members of a Feed, or a generation, as they were stored before they
// became its Ledger.
type earlier struct {
	Kind    feedhistory.Kind  `json:"kind"`
	Known   feedhistory.Known `json:"known"`
	Pending []debt            `json:"pending"`
	Gaps    []debt            `json:"gaps"`
	Further []string          `json:"further"`
	Looked  time.Time         `json:"looked"`
	Checked time.Time         `json:"checked"`
}

// moveTo moves what is there to a ledger.
func (e *earlier) moveTo(l *ledger) {
	if e.Known.URL != "" {
		l.Kind, l.Known, l.Further, l.Looked, l.Checked = e.Kind, e.Known, e.Further, e.Looked, e.Checked
	}
	for _, d := range e.Pending {
		d.Kind = debtDocument
		l.Debts = append(l.Debts, d)
	}
	for _, d := range e.Gaps {
		d.Kind = d.kind()
		l.Debts = append(l.Debts, d)
	}
}

// UnmarshalJSON implements json.Unmarshaler. It reads the states of earlier versions, too,
// which had less in the Ledger.
func (f *Feed) UnmarshalJSON(text []byte) error {
	type plain Feed
	stored := struct {
		*plain
		Ledger ledger `json:"ledger"`
		*earlier
		upkeep
		Kind   feedhistory.Kind `json:"kind"`
		Proven bool             `json:"proven"`
	}{plain: (*plain)(f), earlier: new(earlier)}
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	l := &f.Ledger.l
	*l, f.Kind, stored.earlier.Kind = stored.Ledger, stored.Kind, stored.Kind
	l.upkeep = cmp.Or(l.upkeep, stored.upkeep)
	if stored.moveTo(l); stored.Known.URL != "" || l.Kind == "" && f.Kind != feedhistory.KindUnknown { // or an import, never read
		l.Kind, l.Unsettled = f.Kind, f.Kind == feedhistory.KindArchived && f.Verdict != feedhistory.VerdictWhole
	}
	if l.Census == noCensus && !f.Importing() {
		l.Census = censusOf(f.Source, stored.Proven)
	}
	return l.check()
}

// UnmarshalJSON implements json.Unmarshaler, like that of Feed.
func (g *generation) UnmarshalJSON(text []byte) error {
	type plain generation
	stored := struct {
		*plain
		*earlier
	}{(*plain)(g), new(earlier)}
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	if stored.moveTo(&g.Ledger); stored.Known.URL != "" {
		g.Ledger.Unsettled = g.Ledger.Kind == feedhistory.KindArchived
	}
	return nil
}

// convert moves documents that polls before the ledger kept among other debts to where
// they are asked for again.
func (l *ledger) convert() {
	old := slices.Clone(l.Debts)
	isDocument := func(d debt) bool {
		return d.Kind == debtChain && !d.Again && d.From != "" && d.From != d.URL && d.Reason != feedhistory.ReasonDeclared
	}
	l.crossOut(func(d debt) bool { return isDocument(d) && d.Reason != feedhistory.ReasonLoop })
	for _, d := range old {
		u, err := feedhistory.ParseURL(d.URL)
		if isDocument(d) && err == nil && u.Host != "" && l.document(d.URL) == nil && l.documents() < pendingLimit { // something can request it
			d.Kind, d.Page, d.Tries = debtDocument, l.Kind == feedhistory.KindPaged, 1
			l.Debts = append(l.Debts, d)
		}
	}
}
