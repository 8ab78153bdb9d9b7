package feedhistory

// A Budget bounds what one walk may cost (5005#28). Zero fields stand for the
// defaults.
type Budget struct {
	Documents int   // that are requested: 10,000
	Bytes     int64 // of all documents together, decompressed: 1 GiB
	Barren    int   // documents in a row that bring nothing new: 20

	// More, if not nil, is asked when one of the three is spent, with what the
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
	return w.used.Documents+documents >= w.budget.Documents ||
		w.used.Bytes >= w.budget.Bytes || w.used.Barren >= w.budget.Barren
}
