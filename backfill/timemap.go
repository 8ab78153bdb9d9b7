package backfill

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// A snapshot is a copy of a feed document in a web archive, a memento.
type snapshot struct {
	URL  string    // its address in the archive
	Time time.Time // when the archive took it
}

// A timeMap is the list of a web archive's snapshots of a document (RFC 7089
// §5).
type timeMap struct {
	Original  string // the URL of the document; "" if the list does not say
	Snapshots []snapshot
	More      []string // the URLs of further lists
}

// maxSnapshots is the maximum number of snapshots in a TimeMap.
const maxSnapshots = 1_000_000

// parseTimeMap reads a TimeMap in the link format (RFC 6690). References
// resolve against base, the URL of the list. The snapshots are sorted, oldest
// first; those without a readable time are left out. If the text has no link at
// all, parseTimeMap returns an error.
func parseTimeMap(text, base string) (*timeMap, error) {
	own, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	m := &timeMap{}
	found := false
	for text != "" && len(m.Snapshots) < maxSnapshots {
		target, params, rest := iri.CutLink(text)
		if params == nil {
			break
		}
		text, found = rest, true
		u, err := own.Parse(target)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			continue
		}
		m.add(target, u.String(), params, own.String())
	}
	if !found {
		return nil, errors.New("a TimeMap is a list of links (RFC 7089 §5)")
	}
	m.sort()
	return m, nil
}

// sort sorts the snapshots, oldest first, and removes duplicates.
func (m *timeMap) sort() {
	slices.SortStableFunc(m.Snapshots, func(a, b snapshot) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.URL, b.URL))
	})
	m.Snapshots = slices.Compact(m.Snapshots)
}

// add adds a link. It may have several relations: "first memento".
func (m *timeMap) add(target, absolute string, params map[string]string, own string) {
	for rel := range strings.FieldsSeq(params["rel"]) {
		switch rel {
		case "original":
			m.Original = cmp.Or(m.Original, target)
		case "memento":
			if at, err := http.ParseTime(params["datetime"]); err == nil {
				m.Snapshots = append(m.Snapshots, snapshot{absolute, at})
			}
		case "timemap":
			if absolute != own && (params["type"] == "" || strings.HasPrefix(params["type"], "application/link-format")) {
				m.More = append(m.More, absolute)
			}
		}
	}
}
