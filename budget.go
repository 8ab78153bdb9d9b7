package feedhistory

// A Budget bounds what one walk may cost (5005#28). Zero fields stand for the
// defaults.
type Budget struct {
	Documents int   // that are requested: 10,000
	Bytes     int64 // of all documents together, decompressed: 1 GiB
	Barren    int   // documents in a row that bring nothing new: 20
	Empty     int   // archive documents in a row without any entry, which are not among those: 1,000

	// More, if not nil, is asked when one of these is spent, with what the
	// walk has used so far, and may grant a larger budget. If that is not
	// larger, the chain ends in a gap.
	More func(used Budget) Budget
}

func (b Budget) withDefaults() Budget {
	if b.Documents == 0 {
		b.Documents = 10_000
	}
	if b.Bytes == 0 {
		b.Bytes = 1 << 30
	}
	if b.Barren == 0 {
		b.Barren = 20
	}
	if b.Empty == 0 {
		b.Empty = 1000
	}
	return b
}

// affordable reports whether the budget allows for one more document.
func (w *walk) affordable() bool {
	if w.spent(0) && w.budget.More != nil {
		more := w.budget.More
		w.budget = more(w.used).withDefaults()
		w.budget.More = more
	}
	return !w.spent(0)
}

// spent reports whether the budget is, once the given number of documents more
// will have been read.
func (w *walk) spent(documents int) bool {
	return w.used.Documents+documents >= w.budget.Documents || w.used.Bytes >= w.budget.Bytes || w.barren()
}

// barren reports whether too many documents in a row have brought nothing new.
func (w *walk) barren() bool {
	return w.used.Barren >= w.budget.Barren || w.used.Empty >= w.budget.Empty
}

// count counts a document that is part of the walk. An archive without any entry
// may be that of a day on which nothing happened; one whose entries are all known
// is what a server sends that does not see what it is asked for.
func (w *walk) count(l *loaded, fresh bool) {
	switch {
	case fresh:
		w.used.Barren, w.used.Empty = 0, 0
	case w.kind == Archived && l.err == nil && len(l.doc.Entries)+len(l.doc.Deleted) == 0:
		w.used.Empty++
	default:
		w.used.Barren++
	}
}
