package modifiedrange

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// An answer is the server's answer to one request.
type answer struct {
	asked  Range
	sent   Range // the requested range
	status int
	doc    *feedhistory.Document // its new items

	covered *Range // the range named by the answer; nil if it names none

	stamps   []time.Time // the stamps of all items with one
	fresh    int         // the number of items new in this dialect
	oldest   time.Time   // the oldest stamp of the entries, or of the deletions if there are no entries
	stranger string      // the ID of an item clearly outside of the range; "" if there is none
	outside  bool        // an item is outside of the range, perhaps only by a fraction of a second
	over     bool        // an item is at the end of the range, or after it
}

// above returns the number of items no older than a time.
func (a *answer) above(t time.Time) (n int) {
	for _, at := range a.stamps {
		if !at.Before(t) {
			n++
		}
	}
	return n
}

// within returns the number of items in a range, without those after a time.
func (a *answer) within(in Range, last time.Time) (n int) {
	for _, at := range a.stamps {
		if in.Contains(at) && !at.After(last) {
			n++
		}
	}
	return n
}

// An itemState identifies an item in one state (modified-range#5).
type itemState struct {
	id      string
	deleted bool
	at      time.Time
}

// ask makes one request. The answer's document has its new items.
func (r *run) ask() (*answer, error) {
	if r.requests >= r.limits.Requests {
		return nil, r.limit("requests", int64(r.limits.Requests))
	}
	if r.bytes > r.limits.Bytes {
		return nil, r.limit("bytes", r.limits.Bytes)
	}
	if r.items > r.limits.Items {
		return nil, r.limit("items", int64(r.limits.Items))
	}
	if r.asked[r.question] {
		return nil, &PossibleLossError{URL: r.c.URL, Asked: r.span, At: r.oldest, Stuck: true, Clause: clauseBounded}
	}
	r.asked[r.question] = true
	sent := r.span
	if r.closed && !sent.End.IsZero() {
		sent.End = sent.End.Add(-tick)
	}
	url, fields, err := r.dialects[0].request(r.c.URL, sent)
	if err != nil {
		return nil, err
	}
	r.requests++
	resp, err := r.http.Do(r.ctx, feedhistory.Request{URL: url, Header: fields, Partial: true})
	if err != nil {
		return nil, r.damaged(nil, nil, err)
	}
	status, header := resp.Status, resp.Header
	doc, err := resp.Document()
	if err != nil {
		return nil, r.damaged(doc, header, err)
	}
	if missing := doc.Missing(feedhistory.Complete); len(missing) > 0 {
		return nil, r.damaged(doc, header, missing[0].Err)
	}
	a := &answer{asked: r.span, sent: sent, status: status, doc: doc}
	if covered, err := parseRange(header.Get(fieldModifiedRange)); err == nil {
		a.covered = &covered
	}
	r.bytes += int64(len(doc.Text()))
	if err := r.read(a, doc, header); err != nil {
		r.hand(doc)
		return nil, err
	}
	r.oldest = a.oldest
	return a, nil
}

// damaged keeps the readable part of a damaged document.
func (r *run) damaged(doc *feedhistory.Document, header http.Header, err error) error {
	if doc == nil || !r.begun {
		return err
	}
	if r.read(new(answer), doc, header) != nil {
		return err
	}
	g := gap(r.c.URL, err)
	g.Document = doc
	return g
}

// read processes the items of an answer, and removes those from the document that have
// come before.
func (r *run) read(a *answer, doc *feedhistory.Document, header http.Header) error {
	if r.stamp == stampUnknown {
		r.stamp = choose(doc.Entries)
	}
	for _, e := range doc.Entries {
		if r.stamp.of(e).IsZero() {
			return &StampError{URL: r.c.URL, ID: e.ID, Clause: clauseStamp}
		}
	}
	if r.Harvest.next.Since.IsZero() { // the first answer
		r.Harvest.next = r.following(doc, header)
	}
	doc.Entries = slices.DeleteFunc(doc.Entries, func(e *feedhistory.Entry) bool {
		at := r.stamp.of(e)
		a.oldest = older(a.oldest, at)
		return !r.take(a, itemState{e.ID, false, at.UTC()})
	})
	deletions := time.Time{}
	doc.Deleted = slices.DeleteFunc(doc.Deleted, func(t feedhistory.Tombstone) bool {
		if !t.When.IsZero() {
			deletions = older(deletions, t.When)
		}
		return !r.take(a, itemState{t.Ref, true, t.When.UTC()})
	})
	a.oldest = cmp.Or(a.oldest, deletions)
	return nil
}

// take records an item, and reports whether it is new.
func (r *run) take(a *answer, item itemState) bool {
	last, again := r.seen[item]
	if !again {
		r.items++
	}
	if r.seen[item] = r.dialects[0]; last != r.dialects[0] {
		a.fresh++
	}
	if !item.at.IsZero() {
		a.stamps = append(a.stamps, item.at)
		r.weigh(a, item)
	}
	return !again && (item.deleted || !r.changed(item))
}

// changed reports whether an entry was modified after it came. The modification comes
// with the next harvest; nothing comes twice within one (modified-range#9).
func (r *run) changed(item itemState) bool {
	came, ok := r.ids[item.id]
	if !ok {
		r.ids[item.id] = r.requests
		return false
	}
	next := r.Harvest.next.Since
	return came != r.requests && !next.IsZero() && !item.at.Before(next)
}

// weigh examines the stamp of an item.
func (r *run) weigh(a *answer, item itemState) {
	if unit := unitOf(item.at); r.unit == 0 || unit < r.unit {
		r.unit = unit
	}
	if item.at.After(r.newest) {
		r.newest = item.at
	}
	if a.covered != nil && a.covered.Contains(item.at) {
		return // a superset is safe
	}
	if !a.asked.Contains(item.at) {
		a.outside = true
	}
	a.over = a.over || a.asked.above(item.at, 0)
	if a.asked.beyond(item.at, time.Second) {
		a.stranger = item.id
	}
}

// following returns the mark after this harvest: the server's time at its
// beginning, less the overlap (modified-range#8). If the server does not tell
// the time, the newest stamp is used, because the client's clock may be wrong.
func (r *run) following(doc *feedhistory.Document, header http.Header) Mark {
	overlap := r.c.overlap()
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		return Mark{Since: date.UTC().Add(-overlap)}
	}
	var newest time.Time
	for _, e := range doc.Entries {
		if at := r.stamp.of(e); at.After(newest) {
			newest = at
		}
	}
	if newest.IsZero() {
		return Mark{Since: r.from.Since}
	}
	return Mark{Since: newest.UTC().Add(-overlap)}
}

// older returns the earlier of two times, ignoring a zero time.
func older(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
