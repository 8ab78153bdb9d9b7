package republish

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish/serve"
)

// describe sets the fields of a document's answer.
func describe(w http.ResponseWriter, format feedhistory.Format, cache string) {
	h := w.Header()
	h.Set("Content-Type", mediaTypeOf(format))
	h.Set("Cache-Control", cache)
	h.Set("Content-Security-Policy", serve.Policy)
}

// serveDocument answers with a document.
func serveDocument(w http.ResponseWriter, r *http.Request, format feedhistory.Format, cache string, doc *feedhistory.Document) error {
	var b bytes.Buffer
	if err := compose.NewWriter(&b, format, doc).Close(); err != nil {
		return err
	}
	describe(w, format, cache)
	serve.NewBody(b.Bytes()).Serve(w, r, http.StatusOK)
	return nil
}

// limits of answers made while they are sent: each may hold a large entry in memory as
// long as its client takes to read it.
const (
	mostStreams = 16
	streamWait  = 2 * time.Second // for one of the others to end
)

// enter waits until an answer may be made; leave ends it. The error is an *Error
// if there are too many.
func (h *Handler) enter(ctx context.Context) (leave func(), err error) {
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(streamWait):
		return nil, &Error{http.StatusServiceUnavailable, "too many large documents are being sent", "Try again in a moment."}
	}
}

// Slices of a feed's history are for readers that refuse large documents. Each slice is
// a feed with the entries of a period.

// A Slice is a part of a feed: the entries from one time until before another.
type Slice struct {
	Since, Until time.Time // zero means from the beginning, or without an end
	Entries      int       // number of entries
	Bytes        int64     // approximate size of its document
}

// String returns the name of the slice.
func (s Slice) String() string {
	switch {
	case s.Since.IsZero() && s.Until.IsZero():
		return "from its beginning"
	case s.Since.IsZero():
		return "until " + day(s.Until.Add(-1))
	case s.Until.IsZero():
		return "since " + day(s.Since)
	}
	return day(s.Since) + " – " + day(s.Until.Add(-1))
}

// Query returns the query of the slice's URL, without a question mark.
func (s Slice) Query() string {
	q := url.Values{}
	for name, bound := range s.bounds() {
		if !bound.IsZero() {
			q.Set(name, bound.UTC().Format(time.RFC3339Nano))
		}
	}
	return q.Encode()
}

// bounds returns the times of the slice by the names of their parameters.
func (s *Slice) bounds() map[string]*time.Time {
	return map[string]*time.Time{"since": &s.Since, "until": &s.Until}
}

// has reports whether an entry is in the time of the slice.
func (s Slice) has(r *mirror.Record) bool {
	return !r.Time().Before(s.Since) && (s.Until.IsZero() || r.Time().Before(s.Until))
}

// A Plan is a way to cut a feed into slices.
type Plan struct {
	Slices []Slice // oldest first
	Bytes  int64   // approximate size of one document with everything
}

// mostSized is the minimum number of feeds to keep the sizes of.
const mostSized = 8

// Slices cuts a feed into slices of at most a size in bytes, from its oldest entry on,
// so existing slices stay when the feed grows. Entries with the same time stay
// together, so a slice may be larger; with a size of zero, each time has its own. A
// negative size is an error.
func (h *Handler) Slices(ctx context.Context, feed *mirror.Feed, size int64) (Plan, error) {
	if err := cmp.Or(h.ready(), settings.Check("republish", settings.Number{Name: "Slices: the size", Value: size})); err != nil {
		return Plan{}, err
	}
	if feed == nil {
		return Plan{}, errors.New("republish: Handler.Slices: the Feed is nil")
	}
	sized, err := h.sized(ctx, feed)
	if err != nil {
		return Plan{}, err
	}
	return cut(sized.groups, size, sized.overhead), nil
}

// sizedEntries are the sizes of a feed's entries in one of its states.
type sizedEntries struct {
	groups   []Slice // one group for each time, newest first
	overhead int64   // the size of a document without entries
}

// sized returns the sizes of a feed's entries. They are found out once, whatever the sizes of
// the slices, and without making the entries.
func (h *Handler) sized(ctx context.Context, feed *mirror.Feed) (sizedEntries, error) {
	key := tagOf(h.base(), feed, "sizes")
	if known, ok := h.sizedFeeds.Get(key); ok {
		return known, nil
	}
	sized, _, err := share(ctx, h, patience, key, func(ctx context.Context) (sized sizedEntries, err error) {
		whole := &part{request: request{feed: feed, format: feedhistory.FormatAtom}, title: "x"}
		m, err := newSource(feed, feedhistory.FormatAtom, "")
		if err != nil {
			return sized, err
		}
		lost := h.lost(feed)
		frame, err := h.partHead(ctx, whole, lost)
		if err != nil {
			return sized, err
		}
		var empty strings.Builder
		if err := compose.WriteAtom(&empty, frame); err != nil {
			return sized, err
		}
		sized.overhead = int64(empty.Len()) + 1000 // addresses and titles differ
		for record, err := range h.store.Entries(ctx, mirror.Query{Feed: feed.URL}) {
			if err != nil {
				return sized, err
			}
			if lost.has(record.ID) {
				continue // no document has it; each says so
			}
			if n := len(sized.groups); n == 0 || !sized.groups[n-1].Since.Equal(record.Time()) {
				sized.groups = append(sized.groups, Slice{Since: record.Time()})
			}
			last := &sized.groups[len(sized.groups)-1]
			last.Entries++
			last.Bytes += m.size(record)
		}
		h.sizedFeeds.Put(key, sized)
		return sized, nil
	})
	return sized, err
}

// cut joins groups of entries, newest first, into slices, oldest first.
func cut(groups []Slice, most, overhead int64) (p Plan) {
	for i := len(groups) - 1; i >= 0; i-- {
		g := groups[i]
		p.Bytes += g.Bytes
		n := len(p.Slices)
		if n == 0 || p.Slices[n-1].Bytes+g.Bytes > most {
			if n > 0 {
				p.Slices[n-1].Until = g.Since
			}
			next := Slice{Since: g.Since, Bytes: overhead}
			if n == 0 {
				next.Since = time.Time{}
			}
			p.Slices = append(p.Slices, next)
			n++
		}
		p.Slices[n-1].Entries += g.Entries
		p.Slices[n-1].Bytes += g.Bytes
	}
	p.Bytes += overhead
	return p
}

// serveSlice answers with a slice.
func (h *Handler) serveSlice(w http.ResponseWriter, r *http.Request, asked request) error {
	q := r.URL.Query()
	err := checkKeys(q, "since", "until")
	if err != nil {
		return wrongAddress(err.Error())
	}
	var s Slice
	for _, name := range []string{"since", "until"} {
		if text := q.Get(name); q.Has(name) {
			if *s.bounds()[name], err = parseMoment(text, time.UTC); err != nil {
				return wrongAddress(fmt.Sprintf("%s=%s: %v", name, text, err))
			}
		}
	}
	if !s.Until.IsZero() && !s.Since.Before(s.Until) {
		return wrongAddress("since= must be before until=")
	}
	self := strings.TrimSuffix(h.feeds()+asked.name+"/slice."+string(asked.format)+"?"+s.Query(), "?")
	return h.servePart(w, r, &part{request: asked, self: self, title: s.String(), Slice: s})
}

// parseMoment reads a time in RFC 3339, or a date, which means its beginning in
// a zone.
func parseMoment(text string, zone *time.Location) (time.Time, error) {
	t, err := time.ParseInLocation(time.DateOnly, text, zone)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return t, fmt.Errorf("that is neither a date, such as 2026-12-01, nor a time, such as 2026-12-01T07:30:00Z")
	}
	if t.Year() < 1 || t.Year() > 9999 {
		return t, fmt.Errorf("that is out of range")
	}
	return t, nil
}

// wrongAddress returns the error of an address with invalid parameters.
func wrongAddress(why string) error {
	return &Error{http.StatusBadRequest, "this address is not valid: " + why, "The page of the feed makes valid addresses."}
}

func day(t time.Time) string { return t.UTC().Format("2 January 2006") }

// serveComplete answers with all entries of a feed in one document, newest
// first. The document is marked as complete if the mirror is whole (5005#2).
func (h *Handler) serveComplete(w http.ResponseWriter, r *http.Request, asked request) error {
	return h.servePart(w, r, &part{request: asked, self: h.feeds() + asked.name + "/complete.atom"})
}

// A part is the part of a feed in a document; it may be all of it.
type part struct {
	request
	self  string // the URL of the document
	title string // added to the feed's title; "" for the whole feed
	Slice        // the time of the entries
}

// servePart answers with a part of a feed.
func (h *Handler) servePart(w http.ResponseWriter, r *http.Request, p *part) error {
	ctx, lost := r.Context(), h.lost(p.feed)
	var doc *feedhistory.Document
	var m *source
	describe(w, p.format, "no-cache")
	document := p.self + "\n" + strings.Join(lost.ids, "\n")
	return serve.Stream{
		Tag: tagOf(h.base(), p.feed, document),
		Begin: func() (end func(), err error) {
			if end, err = h.enter(ctx); err != nil {
				return nil, err
			}
			if m, err = newSource(p.feed, p.format, ""); err == nil {
				doc, err = h.partHead(ctx, p, lost)
			}
			if err != nil {
				end()
			}
			return end, err
		},
		Write: func(w io.Writer) error {
			return h.writePart(ctx, w, m, p, mirror.Query{Feed: p.feed.URL, Since: p.Since, Until: p.Until}, doc, lost)
		},
		Unchanged: func() bool { return h.isVersion(ctx, p.feed) },
		Sizes:     &h.sizes,
		Since: func(tags []string) (func(io.Writer) error, error) {
			after, err := h.known(ctx, p, document, tags)
			if after == 0 || err != nil {
				return nil, err
			}
			return func(w io.Writer) error {
				doc.Complete = false // it has only the changes
				if doc.Deleted, err = h.deleted(ctx, p, after); err != nil {
					return err
				}
				return h.writePart(ctx, w, m, p, mirror.Query{Feed: p.feed.URL, AfterCommit: &after}, doc, lost)
			}, nil
		},
	}.Serve(w, r)
}

// known returns the version of the feed that one of a document's tags names; zero if none does.
// A feed removed and added again begins with version one: it then has nothing as old.
func (h *Handler) known(ctx context.Context, p *part, document string, tags []string) (version int64, err error) {
	for _, tag := range tags {
		commits, changed, ok := stateOf(h.base(), p.feed.URL, document, tag)
		if !ok || commits > p.feed.Commits {
			continue
		}
		for r, err := range h.store.Entries(ctx, mirror.Query{Feed: p.feed.URL, AfterCommit: new(int64), Limit: 1, States: mirror.Current | mirror.Former}) {
			if err != nil {
				return 0, err
			}
			if r.LastCommit <= commits && !r.Changed.After(changed) {
				return commits, nil
			}
		}
	}
	return 0, nil
}

// deleted returns the deletions after a version.
func (h *Handler) deleted(ctx context.Context, p *part, after int64) (deleted []feedhistory.Tombstone, err error) {
	for r, err := range h.store.Entries(ctx, mirror.Query{Feed: p.feed.URL, AfterCommit: &after, States: mirror.AllStates}) {
		if err != nil {
			return nil, err
		}
		if t, ok := r.Deletion(); ok {
			deleted = append(deleted, t)
		}
	}
	return deleted, nil
}

// isVersion reports whether a feed is still in the same state.
func (h *Handler) isVersion(ctx context.Context, feed *mirror.Feed) bool {
	now, err := h.store.Feed(ctx, feed.URL)
	return err == nil && now.Commits == feed.Commits
}

// writePart writes a document with those entries of a query that are in a part. If an entry
// cannot be read, the document breaks off; the next one names the gap.
func (h *Handler) writePart(ctx context.Context, w io.Writer, m *source, p *part, q mirror.Query, doc *feedhistory.Document, lost loss) error {
	out := bufio.NewWriterSize(w, 64<<10)
	feed := compose.NewWriter(out, p.format, doc)
	for record, err := range h.store.Entries(ctx, q) {
		if err != nil {
			h.Logger.ErrorContext(ctx, "a document was cut short", "feed", p.feed.URL, "error", err)
			return err
		}
		if lost.has(record.ID) || !p.has(record) {
			continue
		}
		e, err := m.entry(record)
		if err != nil {
			h.Logger.ErrorContext(ctx, "an entry cannot be published", "feed", p.feed.URL, "entry", record.ID, "error", err)
			return errors.Join(err, h.recordLoss(ctx, p.feed))
		}
		if err := feed.Add(e); err != nil {
			return err // the client has gone
		}
	}
	if err := feed.Close(); err != nil {
		return err
	}
	return out.Flush()
}

// partHead returns the document of a part without its entries.
func (h *Handler) partHead(ctx context.Context, p *part, lost loss) (*feedhistory.Document, error) {
	head, err := heading(p.feed, p.format, coverageOf(p.feed, lost))
	if err != nil {
		return nil, err
	}
	doc := compose.Complete(head, nil, p.self)
	doc.Complete = head.Coverage.Verdict == feedhistory.VerdictWhole
	newest, err := newestOf(ctx, h.store, p.feed.URL, time.Time{})
	if err != nil {
		return nil, err
	}
	doc.Updated = feedtime.Later(time.Unix(0, 0), feedtime.Later(p.feed.Changed, newest)).UTC()
	if p.title != "" {
		doc.ID = p.self
		doc.Title += ", " + p.title
	}
	gaps := head.Coverage.Gaps
	if p.title != "" {
		gaps = lost.gaps(p.feed) // only the whole document reports the gaps of the feed
	}
	for _, gap := range gaps {
		e := compose.PseudoEntry(gap)
		doc.Entries = append(doc.Entries, e)
		if e.Updated.After(doc.Updated) {
			doc.Updated = e.Updated.UTC()
		}
	}
	return doc, nil
}

// newestOf returns the time of the newest entry of a feed before a time, or of
// all if the time is zero; the zero time if there is none.
func newestOf(ctx context.Context, s mirror.Store, feed string, before time.Time) (time.Time, error) {
	for r, err := range s.Entries(ctx, mirror.Query{Feed: feed, Until: before, Limit: 1}) {
		if err != nil {
			return time.Time{}, err
		}
		return r.Time(), nil
	}
	return time.Time{}, nil
}

// A loss is the entries of a feed the mirror has and cannot read. Documents
// without them are not complete, and say so.
type loss struct {
	version int64    // of the feed
	ids     []string // in order
}

func (l loss) has(id string) bool {
	_, found := slices.BinarySearch(l.ids, id)
	return found
}

// add returns the loss with one more entry.
func (l loss) add(id string) loss {
	if at, found := slices.BinarySearch(l.ids, id); !found {
		l.ids = slices.Insert(slices.Clone(l.ids), at, id)
	}
	return l
}

// gaps returns the gap for the loss; none if nothing is lost.
func (l loss) gaps(feed *mirror.Feed) []*feedhistory.Gap {
	if len(l.ids) == 0 {
		return nil
	}
	address := cmp.Or(addressOf(feed), hostOf(feed))
	return []*feedhistory.Gap{{
		URL: address, From: address, Reason: feedhistory.ReasonMalformed, Found: feed.Changed,
		Err: fmt.Errorf("the mirror cannot read its copy of %s, such as %q", plural(len(l.ids), "entry", "entries"), l.ids[0]),
	}}
}

// coverageOf returns how much of a feed the mirror has, apart from a loss.
func coverageOf(feed *mirror.Feed, lost loss) *feedhistory.Coverage {
	c := feed.Coverage()
	c.Of, c.Gaps = addressOf(feed), gapsOf(feed)
	if len(lost.ids) > 0 {
		c.Verdict, c.Gaps = min(c.Verdict, feedhistory.VerdictPartial), slices.Concat(c.Gaps, lost.gaps(feed))
	}
	return c
}

// lost returns the known loss of a feed in its present state.
func (h *Handler) lost(feed *mirror.Feed) loss {
	if known, ok := h.losses.Get(feed.URL); ok && known.version == feed.Commits {
		return known
	}
	return loss{version: feed.Commits}
}

// recordLoss finds the unreadable entries of a feed.
func (h *Handler) recordLoss(ctx context.Context, feed *mirror.Feed) error {
	m, err := newSource(feed, feedhistory.FormatAtom, "")
	if err != nil {
		return err
	}
	lost := loss{version: feed.Commits}
	for record, err := range h.store.Entries(ctx, mirror.Query{Feed: feed.URL}) {
		if err != nil {
			return err
		}
		if _, err := m.entry(record); err != nil {
			lost = lost.add(record.ID)
		}
	}
	h.losses.Put(feed.URL, lost)
	return nil
}
