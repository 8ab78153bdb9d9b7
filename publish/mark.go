package publish

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A mark is what a subscription document says to the next Publisher, in a
// processing instruction before the root element, which feed readers do not
// look at. So all state is in the documents, and the archives need not be read
// to go on.
type mark struct {
	open     int       // how many entries, from the first, are not archived yet
	archives int       // that were ever closed
	latest   time.Time // what is archived is not newer
	prev     string    // the newest archive's name; "" for none

	// What is still to be done, in a note (see commit.go).
	before string // the name of the archive whose successor is new; "" for none
	next   string // that successor; "" for none
	erase  bool   // and what is unreferenced is to be removed
}

const markTarget = "<?feedhistory "

// String returns the instruction.
func (m mark) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, `%sopen="%d" archives="%d"`, markTarget, m.open, m.archives)
	if !m.latest.IsZero() {
		fmt.Fprintf(&b, ` latest="%s"`, m.latest.UTC().Format(time.RFC3339Nano))
	}
	for _, attr := range [][2]string{{"prev", m.prev}, {"before", m.before}, {"next", m.next}} {
		if attr[1] != "" {
			fmt.Fprintf(&b, ` %s="%s"`, attr[0], attr[1])
		}
	}
	if m.erase {
		b.WriteString(` erase="1"`)
	}
	return b.String() + "?>\n"
}

// withMark puts a mark into a document, in the place of the one it has, if any.
func withMark(text string, m mark) string {
	if from, to := findMark(text); to > 0 {
		return text[:from] + m.String() + text[to:]
	}
	declaration := strings.IndexByte(text, '\n') + 1
	return text[:declaration] + m.String() + text[declaration:]
}

// findMark returns where a document's mark is: after its first line.
func findMark(text string) (from, to int) {
	from = strings.IndexByte(text, '\n') + 1
	if !strings.HasPrefix(text[from:], markTarget) {
		return 0, 0
	}
	return from, from + strings.Index(text[from:], "?>\n") + len("?>\n")
}

// readMark reads a document's mark.
func readMark(text string) (mark, bool) {
	from, to := findMark(text)
	if to <= from {
		return mark{}, false
	}
	var m mark
	var err error
	for _, attr := range strings.Fields(strings.TrimSuffix(text[from+len(markTarget):to], "?>\n")) {
		name, value, _ := strings.Cut(attr, "=")
		value = strings.Trim(value, `"`)
		switch name {
		case "open":
			m.open, err = strconv.Atoi(value)
		case "archives":
			m.archives, err = strconv.Atoi(value)
		case "latest":
			m.latest, err = time.Parse(time.RFC3339Nano, value)
		case "prev":
			m.prev = value
		case "before":
			m.before = value
		case "next":
			m.next = value
		case "erase":
			m.erase = true
		}
		if err != nil {
			return mark{}, false
		}
	}
	return m, true
}
