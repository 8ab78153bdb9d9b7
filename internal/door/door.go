// Package door gives the other packages of this module the elements of documents and entries as
// they were read, which users do not need. The root package sets it.
package door

import (
	"context"

	"github.com/feedhistory/feedhistory/internal/feedxml"
)

// Root has the functions set by the root package. The entries are *feedhistory.Entry, and the
// documents *feedhistory.Document, which this package cannot import.
var Root Functions

// Functions are the functions of the root package.
type Functions struct {
	// Element returns an entry's element: the one its method XML returns, with its
	// inheritance apart. The error says why there is none.
	Element func(entry any) (feedxml.Element, error)

	// XML returns the text that an entry's method XML copies.
	XML func(entry any) string

	// PostID returns the part of an entry's ID in common with other entries of the same post; "" if
	// it has no Post. It takes no digest of the texts, as the method Post does.
	PostID func(entry any) string

	// Head returns the head section of a document as read.
	Head func(document any) feedxml.Head

	// Published returns a *feedhistory.Document with the fields as they were read from the head
	// section of a document, before a program changed any.
	Published func(document any) any

	// IsStranger reports whether a document is of another feed than the one with this subscription
	// document, also these ids, and entries with these IDs.
	IsStranger func(document, subscription any, ids, entries []string) bool

	// LeadsTo reports whether a document links to a URL by a relation between the documents of a
	// feed.
	LeadsTo func(document any, url string) bool

	// Around returns the IDs of the entries above the damaged part of a document, and of those
	// below it, in its order.
	Around func(document any) (above, below []string)

	// Contradicts returns the target of the link contradicting a mark of its document, of a
	// gap's error; "" if it is no contradiction.
	Contradicts func(err error) string

	// Observe reads the text of a document again for an observer. It calls see where a head
	// section, an entry, or RSS's root begins, at each other child of these before it is read,
	// and where a head section or an entry ends, with the numbers of the links of the head
	// section and of the entries so far. The error is the scanner's.
	Observe func(document any, see func(links, entries int, event feedxml.Event, r *feedxml.Elements)) error
}

// A memory is the key of a walk's memory in a context.
type memory struct{}

// WithPast returns a context in which Client.Walk remembers earlier walks: past is a *chain.Memory
// of feedhistory.Known and *feedhistory.Document. It is not a function in Root, because that would
// link the walk, and all of net/http, into a program that only parses.
func WithPast(ctx context.Context, past any) context.Context {
	return context.WithValue(ctx, memory{}, past)
}

// TakePast returns the memory of a walk, nil if the context has none, and the context without it.
func TakePast(ctx context.Context) (rest context.Context, past any) {
	if past = ctx.Value(memory{}); past != nil {
		ctx = context.WithValue(ctx, memory{}, nil)
	}
	return ctx, past
}

// Former makes a *compose.Writer write in an earlier form of package publish. Package compose sets
// it.
//
//   - Form 1 has only those parts of the model natively that earlier versions knew; the others are
//     carried as elements of their format.
//   - Form 2 has each part by the format's own element, but an entry's contributors and rights, and
//     those of Dublin Core as well.
//   - Form 3 is the present one.
var Former func(writer any, form int)

// OpenWriter sets Former, and returns it.
func OpenWriter(former func(writer any, form int)) func(writer any, form int) {
	Former = former
	return Former
}

// Open sets Root, and returns it.
func Open(root Functions) Functions {
	Root = root
	return Root
}
