package feedhistory

import (
	"strconv"
	"time"
)

// Archived feeds, RFC 5005 §4: a subscription document with the latest
// entries, and archive documents that do not change, each linked from the
// next newer one by prev-archive.

// isArchived reports whether the document is a subscription document or an archive,
// by its links (5005#11) or by fh:archive (5005#14).
func (d *Document) isArchived() bool {
	return d.Archive || d.says(RelPrevArchive, RelNextArchive)
}

// NewSubscription returns the subscription document of an archived feed, with its
// latest entries, newest first, and the link to the newest archive (5005#11). An empty
// prevArchive means there is no archive yet.
func NewSubscription(head *Document, entries []*Entry, self, prevArchive string) *Document {
	d := newDocument(head, entries, self)
	d.link(RelPrevArchive, prevArchive)
	return d
}

// NewArchive returns an archive document (5005#11–14) with its entries, newest first.
// Its update time is that of its latest entry, so it does not change.
func NewArchive(head *Document, entries []*Entry, at DocumentLinks) *Document {
	d := newDocument(head, entries, at.Self)
	d.Archive, d.Coverage = true, nil // a Coverage changes
	d.link(RelCurrent, at.Current)
	d.link(RelPrevArchive, at.Prev)
	d.link(RelNextArchive, at.Next)
	d.Updated, d.LastModified = time.Time{}, time.Time{}
	d.Updated = d.lastChange(d.Entries)
	return d
}

// A Split says where to cut a log of entries into archives: after a number of
// entries, or at the end of a period. The zero value means every 100 entries.
type Split struct {
	Size   int    // Size is the number of entries of an archive, if Period is zero. Zero means 100; a negative number is an error of a Publisher, and 100 elsewhere.
	Period Period // Period is the period of an archive, by update times in UTC; zero means to use Size.
}

// A Period is a unit of the calendar.
type Period uint8

// The periods of a Split.
const (
	Year Period = iota + 1
	Month
	Day
)

// String returns "year", "month" or "day".
func (p Period) String() string { return name(p, "", "year", "month", "day") }

// A Chunk is the part of a log in one archive.
type Chunk struct {
	Name    string // the period, such as "2003/11", or the number, such as "1", if split by size
	Entries []*Entry
}

// Cut cuts a log, oldest entry first, into the archives to close and the entries to
// stay in the subscription document: less than a full archive, or the latest period.
// Chunks by size are numbered from first.
func (s Split) Cut(log []*Entry, first int) (closed []Chunk, open []*Entry) {
	if s.Period != 0 {
		return s.cutPeriods(log)
	}
	size := s.Size
	if size <= 0 {
		size = 100
	}
	for ; len(log) >= size; first++ {
		closed = append(closed, Chunk{strconv.Itoa(first), log[:size:size]})
		log = log[size:]
	}
	return closed, log
}

// cutPeriods cuts before each entry of a later period than the ones before it. An entry
// older than the one before it stays in the same chunk.
func (s Split) cutPeriods(log []*Entry) (closed []Chunk, open []*Entry) {
	from, current := 0, ""
	for i, e := range log {
		name := s.Period.of(e.lastChange())
		if name <= current {
			continue
		}
		if i > from {
			closed = append(closed, Chunk{current, log[from:i:i]})
		}
		from, current = i, name
	}
	return closed, log[from:]
}

// of returns the name of the period a time belongs to. Names sort like times.
func (p Period) of(t time.Time) string {
	return t.UTC().Format(map[Period]string{Year: "2006", Month: "2006/01", Day: "2006/01/02"}[p])
}
