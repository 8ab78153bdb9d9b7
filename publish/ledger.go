package publish

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// A ledger is a subscription document's message to the next Publisher, in a processing
// instruction before the root element, which feed readers ignore. So all state is in
// the documents, and no archive need be read to continue.
type ledger struct {
	open     int       // the number of entries, from the first, not archived yet
	archives int       // the number of archives ever closed
	latest   time.Time // archived items are not newer than this
	prev     string    // the name of the newest archive; "" for none

	added  feedtime.Additions // the entries recent calls have added
	source int                // number of entries the source's own document shows; zero if unknown

	// The remaining work, in a note (see commit.go).
	before string // the name of the archive whose successor is new; "" for none
	next   string // the name of the successor; "" for none
	erase  bool   // whether unreferenced archives are to be removed
}

const ledgerTarget = "<?feedhistory "

// String returns the processing instruction.
func (m ledger) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, `%sopen="%d" archives="%d"`, ledgerTarget, m.open, m.archives)
	if !m.latest.IsZero() {
		fmt.Fprintf(&b, ` latest="%s"`, m.latest.UTC().Format(time.RFC3339Nano))
	}
	for _, attr := range [][2]string{{"prev", m.prev}, {"added", m.added.String()}, {"before", m.before}, {"next", m.next}} {
		if attr[1] != "" {
			fmt.Fprintf(&b, ` %s="%s"`, attr[0], attr[1])
		}
	}
	if m.source > 0 {
		fmt.Fprintf(&b, ` source="%d"`, m.source)
	}
	if m.erase {
		b.WriteString(` erase="1"`)
	}
	return b.String() + "?>\n"
}

// withLedger puts a ledger into a document, replacing the old one.
func withLedger(text string, m ledger) string {
	if from, to := findLedger(text); to > 0 {
		return text[:from] + m.String() + text[to:]
	}
	declaration := strings.IndexByte(text, '\n') + 1
	return text[:declaration] + m.String() + text[declaration:]
}

// findLedger returns the position of a document's ledger, after the first line.
func findLedger(text string) (from, to int) {
	from = strings.IndexByte(text, '\n') + 1
	if !strings.HasPrefix(text[from:], ledgerTarget) {
		return 0, 0
	}
	return from, from + strings.Index(text[from:], "?>\n") + len("?>\n")
}

// readLedger reads a document's ledger.
func readLedger(text string) (ledger, bool) {
	from, to := findLedger(text)
	if to <= from {
		return ledger{}, false
	}
	var m ledger
	var err error
	for _, attr := range strings.Fields(strings.TrimSuffix(text[from+len(ledgerTarget):to], "?>\n")) {
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
		case "source":
			m.source, err = strconv.Atoi(value)
		case "added":
			m.added, err = feedtime.ParseAdditions(value)
		case "before":
			m.before = value
		case "next":
			m.next = value
		case "erase":
			m.erase = true
		}
		if err != nil {
			return ledger{}, false
		}
	}
	return m, true
}
