package explain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/feedhistory/feedhistory"
)

// Place returns the words for a place in a text.
func Place(line, column int) string { return fmt.Sprintf("line %d, column %d", line, column) }

// formatNames are the names of formats in text for people.
var formatNames = map[feedhistory.Format]string{feedhistory.Atom: "Atom", feedhistory.RSS: "RSS", feedhistory.JSONFeed: "JSON Feed"}

// FormatText returns the usual name of a format.
func FormatText(f feedhistory.Format) string { return cmp.Or(formatNames[f], f.String()) }

// KindText is the name of a document's role in its feed.
func KindText(d *feedhistory.Document) string {
	s := d.Kind().String() + ": "
	switch d.Kind() {
	case feedhistory.Complete:
		s += "this document has every entry of the feed"
	case feedhistory.Archived:
		if _, newer := d.Links.Rel(feedhistory.RelNextArchive); d.Archive || newer {
			s += "this is one of the archive documents of a feed"
		} else {
			s += "this is the newest document of a feed whose older entries are in archives"
		}
	case feedhistory.Paged:
		s += "this is one page of a series"
	default:
		s += "this document has the latest entries; it does not say whether there are older ones"
	}
	if kinds := d.Combines(); len(kinds) > 1 {
		s += " (it has signs of " + kindList(kinds) + " at once; RFC 5005 does not define that)"
	}
	return s
}

func kindList(kinds []feedhistory.Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.String())
	}
	return strings.Join(names, " and ")
}

// FlagText returns the marks of a document in words.
func FlagText(d *feedhistory.Document) string {
	var flags []string
	if d.Complete {
		flags = append(flags, "complete")
	}
	if d.Archive {
		flags = append(flags, "archive")
	}
	return strings.Join(flags, ", ")
}

// VerdictText is the meaning of a verdict.
func VerdictText(v feedhistory.Verdict) string {
	switch v {
	case feedhistory.Whole:
		return "Every entry the feed says it has is here."
	case feedhistory.Window:
		return "These are the feed's latest entries; it does not say whether there were earlier ones."
	case feedhistory.Lossy:
		return "Every page was read, but pages shift while a feed grows: entries may have slipped through."
	}
	return "Something is missing:"
}
