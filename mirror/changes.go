package mirror

import (
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/ranks"
)

// An Op is what a Change does to a program's table of entries.
type Op string

// The operations, with their statements for a table with the columns feed, id, rank and content,
// of which feed and id together are unique; the content of a deleted entry is NULL, and its row
// stays.
const (
	// OpPut stores an entry, or its deletion, unless a greater rank is stored:
	//
	//	INSERT INTO entries (feed, id, rank, content) VALUES (…) ON CONFLICT (feed, id)
	//	DO UPDATE SET rank = excluded.rank, content = excluded.content WHERE excluded.rank >= entries.rank
	OpPut = Op(ranks.Put)

	// OpKeep raises the rank of an entry, unless a greater one is stored:
	//
	//	UPDATE entries SET rank = :rank WHERE feed = :feed AND id = :id AND rank < :rank
	OpKeep = Op(ranks.Keep)

	// OpClear deletes what is stored with a rank from Since to below Rank:
	//
	//	UPDATE entries SET rank = :rank, content = NULL
	//	WHERE feed = :feed AND rank >= :since AND rank < :rank AND content IS NOT NULL
	OpClear = Op(ranks.Clear)
)

// A Change is what a Reading changes in a program's table of entries: one statement, whatever is
// stored. If all are executed in their order, the table has the entries of a merge of everything
// ever read, each as it counts (5005#1, 5005#20, 5005#21, RFC 6721), however often walks are
// cut short, or a Reading comes again.
type Change struct {
	Op   Op
	ID   string // the ID of the entry; "" for OpClear
	Rank string // the rank to store with it: 68 digits and letters from a to g, compared as text

	Entry *feedhistory.Entry // of OpPut: the entry; nil for a deletion
	New   bool               // of OpPut with an Entry: it is live, and no document had it before, as far as the Ledger remembers
	When  time.Time          // of a deletion: as its publisher says; zero if it does not
	Since string             // of OpClear
}

// A program is the reader of a Poll, with a table of its own. Nil is none.
type program struct {
	ledger  *ledger
	shelf   *shelf
	pending []Change // of an adoption, to come with the next document
}

func newProgram(m *Mirror, l *ledger) *program {
	if m.shelf == nil {
		return nil
	}
	return &program{ledger: l, shelf: m.shelf}
}

// read returns the changes by the entries and the tombstones of a document. An archive with the
// entries it had changes none of them, except those with signatures in their addresses.
func (p *program) read(m *mergeResult) []Change {
	if p == nil {
		return nil
	}
	s, items := m.source, m.entries
	d := ranks.Document{Time: s.rank.Time, Place: s.rank.Seq, Subscription: s.window, Complete: s.voids, Replaces: s.replaces}
	if s.same {
		items = slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return it.digest.text == "" })
	}
	d.Copies = make([]ranks.Copy, 0, len(items)+len(s.doc.Deleted))
	for _, it := range items {
		c := ranks.Copy{ID: it.id, Version: it.digest.version(), At: it.entry.Updated}
		if c.Kept = it.entry.KeptBy != ""; c.Kept {
			c.At = it.entry.Changed()
		}
		d.Copies = append(d.Copies, c)
	}
	for _, t := range s.doc.Deleted {
		d.Copies = append(d.Copies, ranks.Copy{ID: t.Ref, At: t.When})
	}
	if s.same && len(d.Copies) == 0 {
		return p.take(nil)
	}
	found, table := p.table().Read(d)
	p.ledger.Table = &table
	changes := p.take(nil)
	ofCopies := make([]Change, len(d.Copies)) // in the document's order
	for _, c := range found {
		switch change := changeOf(c); {
		case c.Copy < 0:
			changes = append(changes, change)
		case c.Copy < len(items):
			change.Entry, change.New = items[c.Copy].entry, !items[c.Copy].isKnown() && items[c.Copy].record.State == Live
			ofCopies[c.Copy] = change
		default:
			change.When = d.Copies[c.Copy].At
			ofCopies[c.Copy] = change
		}
	}
	ofCopies = slices.DeleteFunc(ofCopies, func(c Change) bool { return c.Op == "" })
	if len(changes) == 0 {
		return ofCopies
	}
	return append(changes, ofCopies...)
}

func changeOf(c ranks.Change) Change {
	return Change{Op: Op(c.Op), ID: c.ID, Rank: c.Rank, Since: c.Since}
}

// take returns changes, after the pending ones.
func (p *program) take(changes []Change) []Change {
	changes = append(p.pending, changes...)
	p.pending = nil
	return changes
}

// adopt begins the rows of another feed at the address.
func (p *program) adopt() {
	if p != nil {
		p.begin(p.table().Adopt())
	}
}

// revive continues the rows of the earlier feed, of which the Table was closed.
func (p *program) revive(past *ranks.Table) {
	if p == nil || past == nil {
		p.adopt()
		return
	}
	p.begin(p.table().Revive(*past))
}

// begin takes the Table of another generation. Its changes come with the next document.
func (p *program) begin(changes []ranks.Change, table ranks.Table) {
	p.ledger.Table = &table
	for _, c := range changes {
		p.pending = append(p.pending, changeOf(c))
	}
}

// closed returns the Table without its rows, to be kept with an earlier feed; nil if there is none.
func (p *program) closed() *ranks.Table {
	if p == nil {
		return nil
	}
	t := p.table().Closed()
	return &t
}

func (p *program) table() ranks.Table {
	if p.ledger.Table == nil {
		return ranks.Table{}
	}
	return *p.ledger.Table
}
