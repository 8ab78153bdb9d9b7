package check

import (
	"cmp"
	"context"
	"hash/maphash"
	"io"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// A Sample has some of the representations of metadata records, and requests them: that
// alternate links lead to them, and say their types, no document shows (atom-pmh#15,
// atom-pmh#16, atom-pmh#34). The zero value is ready to use, for one feed.
type Sample struct {
	Size int // Size is the maximum number of records to take representations of; zero means 20.

	seed    maphash.Seed
	records []sampledRecord // by their order
}

// A sampledRecord is a record, in its latest state so far. The records whose identifiers
// have the lowest digests are a random choice.
type sampledRecord struct {
	order     uint64
	id        string
	updated   time.Time
	url       string           // of the document
	alternate feedhistory.Link // zero for a deletion
}

// mostSampledBytes is how much of a representation is read.
const mostSampledBytes = 16 << 20

// Add adds the records of a document to choose from. An older entry of a record does not
// count.
//
// A nil document, or entry, is passed over.
func (s *Sample) Add(doc *feedhistory.Document) {
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	size := s.Size
	if size <= 0 {
		size = 20
	}
	if doc == nil {
		return
	}
	for _, e := range doc.Entries {
		if e == nil {
			continue
		}
		r := sampledRecord{order: maphash.String(s.seed, e.ID), id: e.ID, updated: e.Updated, url: doc.URL}
		alternates := 0
		for _, l := range e.Links {
			if l.Rel == feedhistory.RelAlternate {
				if alternates++; alternates == 1 || (r.order>>8)%uint64(alternates) == 0 { // any one of them
					r.alternate = l
				}
			}
		}
		i, known := slices.BinarySearchFunc(s.records, r.order, func(r sampledRecord, order uint64) int { return cmp.Compare(r.order, order) })
		switch {
		case known && !r.updated.After(s.records[i].updated):
		case known:
			s.records[i] = r
		case i < size:
			s.records = slices.Insert(s.records, i, r)
			s.records = s.records[:min(len(s.records), size)]
		}
	}
}

// Check requests the representations, and yields the findings. The error is the
// context's, or names a negative Size.
func (s *Sample) Check(ctx context.Context, client *feedhistory.Client) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		if err := plain.Check("check", plain.Number{Name: "Sample.Size", Value: int64(s.Size)}); err != nil {
			yield(Finding{}, err)
			return
		}
		for _, r := range s.records {
			if r.alternate.Href == "" {
				continue
			}
			code, message := r.check(ctx, client)
			if err := ctx.Err(); err != nil {
				yield(Finding{}, err)
				return
			}
			if code == "" {
				continue
			}
			if !yield(newFinding(code, r.url, "the representation "+clip(r.alternate.Href)+" of record "+clip(r.id)+" "+message), nil) {
				return
			}
		}
	}
}

// check requests the representation. It returns the code of a finding, with the rest of its
// message, or "".
func (r *sampledRecord) check(ctx context.Context, client *feedhistory.Client) (code, message string) {
	resp, err := client.Do(ctx, feedhistory.Request{URL: r.alternate.Href, Accept: "*/*"})
	if err != nil {
		if feedhistory.IsStatus(err, http.StatusForbidden, http.StatusNotFound, http.StatusGone) {
			return "pmh-representation-missing", "is not there: " + reasonText(err)
		}
		return "pmh-representation-unavailable", "cannot be retrieved: " + reasonText(err)
	}
	defer resp.Body.Close()
	given, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	said, _, badLink := mime.ParseMediaType(r.alternate.Type)
	if badLink == nil && err == nil && given != said {
		return "pmh-representation-type", "has the type " + clip(given) + ", but the link says " + clip(said)
	}
	if !strings.EqualFold(strings.TrimSpace(r.alternate.Type), "application/atom+xml") {
		return "", "" // not Atom-RDC
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostSampledBytes))
	if err != nil {
		return "pmh-representation-unavailable", "cannot be read: " + reasonText(err)
	}
	entry, err := feedhistory.ReadEntry(feedhistory.Atom, string(body), resp.URL)
	if err != nil {
		return "", ""
	}
	if self, ok := entry.Links.Rel(feedhistory.RelSelf); ok && self.Href != r.alternate.Href {
		return "pmh-self-differs", "names itself " + clip(self.Href)
	}
	return "", ""
}
