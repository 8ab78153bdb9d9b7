package chain

// A Memory tells a walk about the documents of earlier ones. K is the memory of a
// document, D a document. All fields may be zero. The functions are called by the
// goroutine ranging over the walk.
type Memory[K, D any] struct {
	// Processed reports whether the archive document at a URL was processed before this
	// walk: the walk does not go beyond it (5005#19). It may look into a store that the
	// walk fills: documents of this walk do not end it. It is asked with a URL as links
	// have it, and with the one after redirects.
	Processed func(url string) bool

	// Last reports whether a page of a paged feed is the last one to read, after the page
	// was yielded. Pages change, so only their entries tell whether older ones are known.
	// With Last, the walk requests no page in advance.
	Last func(page D) bool

	// Shown returns the subscription document as it was last read, as far as it is known, for a
	// walk finding it unchanged: its head section, and the IDs of its entries. IDs are other
	// ids of the feed. Has reports whether one of a document's entries is known. Any may be nil.
	Shown func() (head D, entries []string)
	IDs   []string
	Has   func(doc D) bool

	// Known returns the memory of a document, or the zero value. The walk requests such a
	// document conditionally, and continues beyond it if it has not changed.
	Known func(url string) K

	// Pending are the archive documents at which earlier walks were cut short, and
	// PendingPages such pages of a paged feed. At its end, the walk continues at each
	// Pending document in this order, and then at each of PendingPages.
	Pending, PendingPages []string

	// Wanted reports whether one of them is still wanted when the walk comes to it; nil
	// means they all are. A document read by then may have paid for it.
	Wanted func(url string) bool
}
