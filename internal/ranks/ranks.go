// Package ranks decides which rows of a table of entries a document changes. The table then has
// the copies of a merge of everything ever read, whatever the order of the readings (5005#20,
// 5005#21, RFC 6721).
//
// A Rank is a text of fixed width, of digits and the letters a to g, so any collation sorts it:
// the epoch, the time of the copy, the time of its document, the document's place, and the number
// of the reading. A deletion comes after all copies of its time. An epoch begins with a complete
// document (5005#1), or with another feed at the address.
package ranks

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Op is an operation on a row.
type Op string

const (
	Put   Op = "put"   // store a copy or a deletion, unless a greater rank is stored
	Keep  Op = "keep"  // raise the rank of what is stored, unless it is greater
	Clear Op = "clear" // delete live rows with ranks from Since to below Rank, which becomes theirs
)

// A Change is one operation of a reading on a table.
type Change struct {
	Op          Op
	ID          string // of an entry; "" for a Clear
	Copy        int    // of a Put, the place in Document.Copies; -1 is none, of a Put a deletion without a copy
	Rank, Since string
}

// A Copy is a copy of an entry in a document, or its deletion.
type Copy struct {
	ID      string
	Version string    // a digest of the copy; "" is a deletion
	At      time.Time // when it was updated, or deleted; zero if it does not say
	Kept    bool      // a reader has kept it: it counts only if the publisher has shown none, and deleted none
}

// A Document is a step of a walk. An archive with the entries it had before is none.
type Document struct {
	Time         time.Time // when it was updated, or as its place says
	Place        int64     // in the sequence of documents: newer ones have larger numbers
	Subscription bool      // it is the subscription document
	Complete     bool      // it voids all that was read before (5005#1)
	Replaces     bool      // it does so but for a part that is missing: its copies count, and what it lacks stays
	Copies       []Copy    // of its entries, each once, and its deletions
}

// A Table remembers the rows of the entries in the subscription document. The zero Table has none.
type Table struct {
	Reading    int64     `json:"reading"`         // the number of the latest reading
	Epoch      int64     `json:"epoch"`           // the reading with which it began
	Generation int64     `json:"generation"`      // the epoch with which the feed at the address began
	Alone      bool      `json:"alone,omitempty"` // nothing was read since the complete document that began the epoch
	Newest     Newest    `json:"newest,omitzero"` // of the documents of this epoch
	Latest     time.Time `json:"latest,omitzero"` // the latest time of a copy of this epoch
	Gone       bool      `json:"gone,omitempty"`  // a deletion has it

	Rows []Row `json:"rows,omitempty"`

	at map[string]int // the places of the Rows; nil until they are needed
}

// A Newest is the time and the place of the newest document.
type Newest struct {
	Time  time.Time `json:"time,omitzero"`
	Place int64     `json:"place,omitempty"`
}

// A Row is remembered of an entry in the subscription document.
type Row struct {
	ID      string
	Version string // of the copy that counts; "" is a deletion
	Rank    string // of that copy
	Behind  bool   // the row has a smaller rank
	Unsure  bool   // the row may be another copy, from before the entry came into the document
}

// Adopt begins another generation: of a feed that answers in place of the one before, whose
// entries it leaves alone.
func (t Table) Adopt() ([]Change, Table) {
	t.next()
	changes := t.leave(nil)
	t.begin(t.Reading)
	t.Generation, t.Alone = t.Epoch, false
	return changes, t
}

// Closed returns the Table without its Rows, as Revive needs it.
func (t Table) Closed() Table {
	t.next()
	t.Rows, t.at, t.Alone = nil, nil, false
	t.Latest, t.Newest.Time = t.Latest.UTC(), t.Newest.Time.UTC()
	return t
}

// Revive goes on with the generation of an earlier feed, which answers again: its copies are as
// recent as they were.
func (t Table) Revive(closed Table) ([]Change, Table) {
	t.next()
	changes := t.leave(nil)
	closed.Reading = t.Reading
	return changes, closed
}

// Read returns the changes of a document, and the Table after it.
func (t Table) Read(d Document) ([]Change, Table) {
	t.next()
	alone := t.Alone
	if t.Alone = d.Complete; d.Complete || d.Replaces {
		t.begin(t.Reading)
	}
	copies := t.copies(d)
	if d.Complete {
		return t.replace(copies, alone), t
	}
	if !d.Subscription {
		return t.put(copies, false), t
	}
	return append(t.leave(copies), t.put(copies, true)...), t
}

// next begins a reading.
func (t *Table) next() {
	if t.Reading == 0 {
		t.Reading, t.Epoch, t.Generation = 1, 1, 1
	}
	t.Reading++
}

// begin begins an epoch.
func (t *Table) begin(epoch int64) {
	t.Epoch, t.Newest, t.Latest, t.Gone = epoch, Newest{}, time.Time{}, false
}

// A candidate is a copy with its rank. It is sure if nothing from before can have a greater rank,
// nor, with a time of its own, one between this and those it will have when its document has a
// later time.
type candidate struct {
	Copy
	place  int
	rank   string
	unsure bool
}

// copies returns the copies and deletions of a document, the smallest rank first.
func (t *Table) copies(d Document) []candidate {
	latest, gone := t.Latest, t.Gone
	isNewest := t.Newest.isBefore(d)
	copies := make([]candidate, len(d.Copies))
	epoch, suffix := epochOf(t.Epoch), OfTime(d.Time)+digits(d.Place, widths[3])+digits(t.Reading, widths[4])
	rank := func(at time.Time, rest ...string) string {
		var text [width]byte
		all := appendTime(append(text[:0], epoch...), at)
		for _, part := range rest {
			all = append(all, part...)
		}
		return string(all)
	}
	for i, c := range d.Copies {
		at, isDated := c.At, !c.At.IsZero()
		if !isDated {
			at = d.Time
		}
		r := candidate{Copy: c, place: i}
		switch {
		case c.Kept:
			r.rank, r.unsure = rank(time.Time{}, OfTime(c.At), suffix[widths[2]:]), true
		case c.Version == "":
			r.rank = rank(at, "g", zeros[:len(suffix)-1])
			r.unsure = at.Before(latest)
			t.see(at, true)
		default:
			r.rank = rank(at, suffix)
			r.unsure = !at.After(latest) && !(isNewest && (isDated || at.Equal(latest) && !gone))
			t.see(at, false)
		}
		copies[len(copies)-1-i] = r // the newest mostly come first
	}
	if isNewest {
		t.Newest = Newest{d.Time, d.Place}
	}
	slices.SortStableFunc(copies, func(a, b candidate) int { return strings.Compare(a.rank, b.rank) })
	return copies
}

// see notes the time of a copy or a deletion.
func (t *Table) see(at time.Time, gone bool) {
	switch at.Compare(t.Latest) {
	case 1:
		t.Latest, t.Gone = at, gone
	case 0:
		t.Gone = t.Gone || gone
	}
}

func (n Newest) isBefore(d Document) bool {
	return d.Time.After(n.Time) || d.Time.Equal(n.Time) && d.Place > n.Place
}

// put returns the changes by the copies of a document.
func (t *Table) put(copies []candidate, isSubscription bool) (changes []Change) {
	at, rows := t.places(), []Row(nil)
	changes = make([]Change, 0, len(copies))
	for _, c := range copies {
		i, isShown := at[c.ID]
		if !isShown && !isSubscription {
			changes = append(changes, c.put())
			continue
		}
		if rows == nil {
			rows = slices.Clone(t.Rows)
			if isSubscription {
				at = maps.Clone(at)
			}
		}
		switch {
		case !isShown:
			at[c.ID] = len(rows)
			rows = append(rows, c.row())
		case c.rank <= rows[i].Rank: // outranked by what the subscription document shows
			continue
		case rows[i].Version == c.Version && !rows[i].Unsure: // only the document's time differs
			rows[i].Rank, rows[i].Behind = c.rank, true
			continue
		default:
			rows[i] = c.row()
		}
		changes = append(changes, c.put())
	}
	if rows != nil {
		t.Rows, t.at = rows, at
	}
	return changes
}

func (c candidate) put() Change { return Change{Op: Put, ID: c.ID, Copy: c.place, Rank: c.rank} }

func (c candidate) row() Row {
	return Row{ID: c.ID, Version: c.Version, Rank: c.rank, Unsure: c.unsure}
}

// replace returns the changes by a complete document: entries missing from it go. If the table has
// the complete document before and nothing else, only the differences are said.
func (t *Table) replace(copies []candidate, alone bool) (changes []Change) {
	shown := map[string]Row{}
	if alone {
		for _, r := range t.Rows {
			shown[r.ID] = r
		}
	} else {
		changes = append(changes, Change{Op: Clear, Copy: -1, Since: below(t.Generation), Rank: below(t.Epoch)})
	}
	t.Rows, t.at = nil, map[string]int{}
	for _, c := range slices.Backward(copies) { // of an id, the greatest rank counts
		if _, ok := t.at[c.ID]; ok {
			continue
		}
		row := c.row()
		row.Unsure = false
		if old, ok := shown[c.ID]; ok && old.Version == c.Version {
			row.Behind = true
		} else {
			changes = append(changes, c.put())
		}
		t.at[c.ID] = len(t.Rows)
		t.Rows = append(t.Rows, row)
	}
	for _, id := range slices.Sorted(maps.Keys(shown)) {
		if _, ok := t.at[id]; !ok && shown[id].Version != "" {
			changes = append(changes, Change{Op: Put, ID: id, Copy: -1, Rank: below(t.Epoch)})
		}
	}
	return changes
}

// leave forgets the rows of entries not among the copies: their stored copies take the rank they
// leave with.
func (t *Table) leave(copies []candidate) (changes []Change) {
	shows := make(map[string]bool, len(copies))
	for _, c := range copies {
		shows[c.ID] = true
	}
	var rows []Row
	for _, r := range t.Rows {
		switch {
		case shows[r.ID]:
			rows = append(rows, r)
		case r.Behind:
			changes = append(changes, Change{Op: Keep, ID: r.ID, Copy: -1, Rank: r.Rank})
		}
	}
	t.Rows, t.at = rows, nil
	return changes
}

// places returns the places of the rows.
func (t *Table) places() map[string]int {
	if t.at == nil {
		t.at = make(map[string]int, len(t.Rows))
		for i, r := range t.Rows {
			t.at[r.ID] = i
		}
	}
	return t.at
}

// The widths of a rank's parts: the epoch, two times, the place and the reading.
var widths = []int{8, 18, 18, 16, 8}

// Parts is the number of the parts of a rank, and width the length of it.
const (
	Parts = 5
	width = 68
)

// Split returns the parts of a rank; five empty ones of another text.
func Split(rank string) []string {
	parts := make([]string, Parts)
	for i, width := range widths {
		if len(rank) < width {
			return make([]string, Parts)
		}
		parts[i], rank = rank[:width], rank[width:]
	}
	return parts
}

func epochOf(epoch int64) string { return digits(epoch, widths[0]) }

// digits returns a number in hexadecimal digits of a width.
func digits(n int64, width int) string { return string(appendDigits(nil, n, width)) }

func appendDigits(text []byte, n int64, width int) []byte {
	var own [16]byte
	number := strconv.AppendInt(own[:0], n, 16)
	return append(append(text, zeros[:max(0, width-len(number))]...), number...)
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// below returns the rank that sorts before all of an epoch.
func below(epoch int64) string {
	return epochOf(epoch) + zeros[:widths[1]+widths[2]+widths[3]+widths[4]]
}

// OfTime returns the part of a rank for a time: the seconds since the year 1, and the
// nanoseconds.
func OfTime(at time.Time) string {
	var text [18]byte
	return string(appendTime(text[:0], at))
}

func appendTime(text []byte, at time.Time) []byte {
	seconds := max(0, at.Unix()-time.Time{}.Unix())
	return appendDigits(appendDigits(text, seconds, 10), int64(at.Nanosecond()), 8)
}
