package feedhistory

import (
	"cmp"
	"time"

	"github.com/feedhistory/feedhistory/internal/chain"
)

// A Budget bounds the cost of one walk (5005#28). A walk also ends after 20 consecutive
// documents without anything new, or 1,000 archives in a row without any entry.
type Budget struct {
	Documents int   // Documents is the maximum number of documents to request, not counting those repeated (see Client.Tries), redirects, and requests in advance that turn out to be wasted; zero means 10,000.
	Bytes     int64 // Bytes is the maximum size of all documents together, decompressed; zero means 1 GiB.

	// Time is the time of the walk, without that of its caller, after which it requests no further
	// document, so that a feed that is slow and without end does not keep others waiting; zero
	// means ten minutes. A mirror's next poll goes on there.
	Time time.Duration

	barren, empty int // documents in a row without anything new, and archives without entries
}

func (b Budget) withDefaults() Budget {
	b.Documents, b.Bytes, b.Time = cmp.Or(b.Documents, 10_000), cmp.Or(b.Bytes, 1<<30), cmp.Or(b.Time, 10*time.Minute)
	b.barren, b.empty = cmp.Or(b.barren, chain.MostBarren), cmp.Or(b.empty, 1000)
	return b
}

// A meter measures the cost of a walk.
type meter struct {
	most, used Budget
	begun      time.Time // later by the caller's time
	vacant     int       // of the barren documents, those without entries
}

// spent reports whether the budget is spent after the given number of further
// documents.
func (m *meter) spent(documents int) bool {
	return m.used.Documents+documents >= m.most.Documents || m.used.Bytes >= m.most.Bytes || m.isLate() || m.barren()
}

// isLate reports whether the time of the walk is spent.
func (m *meter) isLate() bool { return time.Since(m.begun) >= m.most.Time }

// barren reports whether too many documents in a row have brought nothing new.
func (m *meter) barren() bool {
	return m.used.barren >= m.most.barren || m.used.empty >= m.most.empty
}
