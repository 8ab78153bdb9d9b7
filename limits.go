package feedhistory

import (
	"cmp"
	"fmt"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

// Limits bound the cost of reading one document. A zero field means its default, which
// real feeds do not reach. A negative one is an error.
//
// A document beyond a limit is refused with a *ParseError. Three limits concern a
// single entry, which is then left out and becomes a Gap of the document: the length of
// its id, 4,096 links, and its inheritance.
//
// The last one is fixed. A document has its namespaces, xml:base and xml:lang once, but
// each entry needs a copy, and each relative reference needs the base. An entry may
// take 16 times its own length plus 1 KiB of them; no honest entry comes near this. So
// everything derived from a document of n bytes (its links, texts and XML, and the
// document in another format) has at most 80 times n bytes, plus 4 KiB for each entry.
// Only 64 KiB of a head section are kept, because every document of a republished feed
// repeats it.
type Limits struct {
	Bytes      int64 // Bytes is the size of a document, decompressed and decoded; the default is 16 MiB.
	Ratio      int   // Ratio is the ratio of decompressed to compressed size, beyond the first MiB; the default is 200.
	Depth      int   // Depth is the number of nested elements; the default is 256.
	Attributes int   // Attributes is the number of attributes of one element; the default is 256.
	Namespaces int   // Namespaces is the number of namespaces in scope at one place; the default is 256.
	Elements   int   // Elements is the number of elements of a document; the default is 1,000,000.
	Entries    int   // Entries is the number of entries of a document; the default is 50,000.
	HeadLinks  int   // HeadLinks is the number of links in a head section; the default is 64.
	ID         int   // ID is the length of an entry's or feed's id in bytes; the default is 4 KiB.
	URL        int   // URL is the length of a link's target in bytes; the default is 8 KiB.
}

// withDefaults fills in the zero fields a reader uses.
func (l Limits) withDefaults() Limits {
	l.Bytes = cmp.Or(l.Bytes, fetch.DefaultBytes)
	l.Entries = cmp.Or(l.Entries, 50_000)
	l.HeadLinks = cmp.Or(l.HeadLinks, 64)
	l.ID = cmp.Or(l.ID, 4<<10)
	l.URL = cmp.Or(l.URL, fetch.DefaultURL)
	return l
}

// A number is a setting, with its name.
type number struct {
	name  string
	value int64
}

// checkNumbers returns an error if a number of the settings is negative.
func checkNumbers(of string, numbers []number) error {
	for _, n := range numbers {
		if n.value < 0 {
			return fmt.Errorf("feedhistory: %s.%s is negative", of, n.name)
		}
	}
	return nil
}

func (l Limits) numbers() []number {
	return []number{
		{"Limits.Bytes", l.Bytes}, {"Limits.Ratio", int64(l.Ratio)}, {"Limits.Depth", int64(l.Depth)},
		{"Limits.Attributes", int64(l.Attributes)}, {"Limits.Namespaces", int64(l.Namespaces)},
		{"Limits.Elements", int64(l.Elements)}, {"Limits.Entries", int64(l.Entries)},
		{"Limits.HeadLinks", int64(l.HeadLinks)}, {"Limits.ID", int64(l.ID)}, {"Limits.URL", int64(l.URL)},
	}
}
