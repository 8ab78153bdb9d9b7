package mirror

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// documents are the archive documents a feed has processed.
type documents struct {
	ctx     context.Context
	store   Store
	feed    *Feed
	commits *commits
	found   map[string]*DocumentRecord
	steps   map[string]step // all of them, by their names; nil until they are needed
	err     error           // an error of the store, which callbacks cannot return
}

// get returns a processed document, or nil. It must not be changed.
func (ds *documents) get(url string) *DocumentRecord {
	if d := ds.commits.document(url); d != nil {
		return d
	}
	if d, ok := ds.found[url]; ok || ds.feed.Documents == 0 || ds.err != nil {
		return d
	}
	d, err := ds.store.Document(ds.ctx, ds.feed.URL, url)
	if err != nil {
		if d = nil; !errors.Is(err, ErrNotFound) {
			ds.err = err
			return nil
		}
	}
	if len(ds.found) > 100 { // each document is looked up a few times in succession
		clear(ds.found)
	}
	ds.found[url] = d
	return d
}

// forget forgets the documents replaced by a change.
func (ds *documents) forget(c *Commit) {
	ds.replace(c)
	for _, d := range c.Documents {
		for _, name := range d.Names {
			delete(ds.found, name)
		}
	}
}

// all returns the documents by all of their names, including those of the next commit. The
// Store is read once.
func (ds *documents) all() (map[string]step, error) {
	if ds.steps == nil {
		steps := map[string]step{}
		for d, err := range ds.store.Documents(ds.ctx, ds.feed.URL) {
			if err != nil {
				return nil, err
			}
			for _, name := range d.Names {
				if _, ok := steps[name]; !ok || name == d.URL {
					steps[name] = d.step()
				}
			}
		}
		ds.steps = steps
	}
	if ds.commits.waiting != nil {
		ds.replace(&ds.commits.waiting.change)
	}
	return ds.steps, nil
}

// replace replaces the documents of a change.
func (ds *documents) replace(c *Commit) {
	if ds.steps == nil || c.Forget {
		ds.steps = nil
		return
	}
	for _, d := range c.Documents {
		for _, name := range d.Names {
			if name == d.URL || ds.steps[name].url != name { // it is no other document's first name
				ds.steps[name] = d.step()
			}
		}
	}
}

// A step is a document in the chain.
type step struct {
	url, older string
	instead    string // another format of the older one; "" if there is none
	link       string // the name by which the chain leads to it
	names      []string
	further    []string  // where it goes on beyond the chain
	lost       bool      // whether its link cannot be used
	damaged    bool      // whether it was, as it was last read
	read       time.Time // when it was last read
	last       int64     // the number of the last poll to read it
	seq        int64     // of its rank
	first      int64     // the number of the first poll to read it
	altered    int64     // the number of the last poll to find it changed
}

// step returns the document as the chain sees it.
func (d *DocumentRecord) step() step {
	return step{
		url: d.URL, older: d.Known.Older, instead: otherFormat(d.Known), names: d.Names, further: d.Further, lost: d.Known.Lost, damaged: d.Known.Damaged,
		read: d.Read, last: d.Last, seq: d.Rank.Seq, first: d.First, altered: d.Altered,
	}
}

// isReadSince reports whether the document has been read since a debt was entered: by the
// numbers of the polls, which no clock can spoil, and by their times, as a debt from elsewhere
// has no number.
func (at step) isReadSince(d debt) bool { return at.last >= d.Poll && !at.read.Before(d.Found) }

// otherFormat returns the URL of the next document back in time in its second format; "" if it
// has one alone.
func otherFormat(k feedhistory.Known) string {
	if !k.Formats {
		return ""
	}
	return k.Instead
}

// reread notes an archive requested again and unchanged.
func (cs *commits) reread(d *DocumentRecord, known feedhistory.Known, now time.Time) {
	d = d.clone()
	d.Known.ETag, d.Known.LastModified = known.ETag, known.LastModified
	d.Read, d.Last = now, cs.feed.Polls
	cs.hold()
	cs.held.Documents = append(cs.held.Documents, d)
}

// A DocumentRecord describes a processed archive document.
type DocumentRecord struct {
	URL   string            `json:"url"`             // the URL by which it was requested
	Names []string          `json:"names,omitempty"` // the URLs it is known by: URL, the target of a redirect
	Known feedhistory.Known `json:"known,omitzero"`  // the document as it was last read
	Rank  Rank              `json:"rank,omitzero"`   // how recent it is

	First   int64     `json:"first,omitempty"`   // the number of the first poll to read it
	Altered int64     `json:"altered,omitempty"` // the number of the last poll to find it changed
	Last    int64     `json:"last,omitempty"`    // the number of the last poll to read it
	Read    time.Time `json:"read,omitzero"`     // when it was last read
	Entries int       `json:"entries,omitempty"` // the number of its entries
	Digest  string    `json:"digest,omitempty"`  // a digest of the set of its entries (5005#9)
	Further []string  `json:"further,omitempty"` // the URLs at which it goes on beyond the chain, against its own marks

	Oldest time.Time `json:"oldest,omitzero"` // the earliest time of an entry; zero if none has a time
	Newest time.Time `json:"newest,omitzero"` // the latest time of an entry; zero if none has a time
}

// compare orders the documents of a feed: the newest first, by Rank, and of equal ones the
// one with the greater URL.
func (d *DocumentRecord) compare(other *DocumentRecord) int {
	return cmp.Or(other.Rank.compare(d.Rank), cmp.Compare(other.URL, d.URL))
}

// size returns the size of a document's record in bytes.
func (d *DocumentRecord) size() int64 {
	n := len(d.URL) + len(d.Digest) + len(d.Known.URL) + len(d.Known.ETag) + len(d.Known.LastModified) +
		len(d.Known.Digest) + len(d.Known.Older)
	for _, name := range d.Names {
		n += len(name)
	}
	return int64(n)
}

func (d *DocumentRecord) clone() *DocumentRecord {
	twin := clone(d)
	twin.Names, twin.Further = slices.Clone(d.Names), slices.Clone(d.Further)
	return twin
}

// newDocument returns the mirror's record of an archive document.
func (s *session) newDocument(r *feedhistory.Reading, rank Rank, digest string) *DocumentRecord {
	doc := r.Document
	d := &DocumentRecord{
		URL: r.URL, Known: r.Known, Rank: rank, Names: []string{r.URL},
		First: s.feed.Polls, Last: s.feed.Polls, Read: s.now, Entries: len(doc.Entries), Digest: digest,
	}
	d.Known.Kind = feedhistory.KindArchived
	d.Known.Older, _ = olderOf(doc, feedhistory.KindArchived)
	d.Further = furtherOf(doc)
	if doc.URL != d.URL {
		d.Names = append(d.Names, doc.URL)
	}
	d.Oldest, d.Newest = spanOf(doc)
	return d
}

// furtherOf returns the URLs at which an archive goes on beyond its chain, against its marks.
func furtherOf(doc *feedhistory.Document) (urls []string) {
	for _, l := range doc.Further(feedhistory.KindArchived) {
		if l.Rel != "next-archive" && l.Rel != "last" {
			urls = append(urls, l.Href)
		}
	}
	return urls
}

// olderOf returns the URL of the next document back in time, in a chain of the
// given kind.
func olderOf(doc *feedhistory.Document, kind feedhistory.Kind) (string, bool) {
	rel := kind.Older()
	link, ok := doc.Links.Rel(rel)
	return iri.Address(link.Href), ok && rel != ""
}
