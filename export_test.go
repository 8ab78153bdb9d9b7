package feedhistory

import "github.com/feedhistory/feedhistory/internal/fetch"

// What tests need and users do not reach.

// BoundBarren sets how many documents in a row may bring nothing new, and how many archives
// may be empty.
func (b *Budget) BoundBarren(barren, empty int) { b.barren, b.empty = barren, empty }

// WithDefaults returns the budget a walk has.
func (b Budget) WithDefaults() Budget { return b.withDefaults() }

// Validators returns those in force after a response.
func (r Response) Validators() (etag, lastModified string) { return r.etag, r.lastModified }

// OwnGaps returns the gaps a document has without a walk.
func (d *Document) OwnGaps() []*Gap { return d.gaps }

// MendedDamage returns the possible losses despite mending.
func (d *Document) MendedDamage(feed Kind) *ParseError { return d.mendedDamage(feed) }

// Raw returns the entry as published.
func (e *Entry) Raw() string { return e.raw }

// Peek reads the head section from the beginning of a document.
func (p Parser) Peek(prefix, base string) (*Document, bool) { return p.peek(prefix, base) }

// NewFailure returns the error for a failed request.
func NewFailure(f *fetch.Failure) *FetchError { return public(f) }

// NewTooLarge returns the error for a document of more bytes.
func NewTooLarge(bytes int64) error { return tooLarge(bytes) }

var (
	ReadHeaderLinks = headerLinks
	Relation        = relation
)
