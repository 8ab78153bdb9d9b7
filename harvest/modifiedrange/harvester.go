package modifiedrange

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/fetch"
	shared "github.com/feedhistory/feedhistory/internal/harvest"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/mirror"
)

// A Harvester keeps up with a collection. Do not change its fields during a harvest.
type Harvester struct {
	HTTP    *feedhistory.Client // HTTP makes the requests; nil means a client with the default settings.
	URL     string              // URL is the URL of the collection.
	Dialect Dialect             // Dialect is how to ask for ranges; zero means to try them in order.

	// Header returns additional header fields for a request, such as Authorization with a
	// token. It is called for each request to the origin of URL, by several goroutines, so
	// tokens can be renewed. If it returns an error, the request fails. Nil means no
	// additional fields.
	Header func(ctx context.Context, url string) (http.Header, error)

	// Overlap is how far the next harvest reaches back before the server's time at the
	// beginning of this one; it never begins after the newest stamp seen (modified-range#8).
	// It should be the longest time a change may take to appear after it was stamped. Zero
	// means a minute, a negative value none.
	Overlap time.Duration

	// Budget bounds the cost of one harvest (modified-range#12); the next one continues where
	// one reaches a limit. Zero means 10,000 requests, 1,000,000 items, and 1 GiB.
	Budget harvest.Budget
}

// overlap returns the Overlap with its default.
func (h *Harvester) overlap() time.Duration { return max(cmp.Or(h.Overlap, time.Minute), 0) }

// withDefaults returns the limits of a harvest.
func withDefaults(b harvest.Budget) harvest.Budget {
	b.Requests, b.Items, b.Bytes = cmp.Or(b.Requests, 10_000), cmp.Or(b.Items, 1_000_000), cmp.Or(b.Bytes, 1<<30)
	return b
}

// A Mark is a client's memory between two harvests. Store it together with the harvest's
// documents. With the zero value, a harvest gets everything.
type Mark struct {
	Since time.Time `json:"since,omitzero"` // a time by the clock of the stamps
	Rest  Rest      `json:"rest,omitzero"`  // zero unless a harvest was cut short: the next one continues there

	// Seen has digests of the items modified at Since or later, or with a Rest at its Next or
	// later, that have come, so the next harvest does not yield them again. It has no more than
	// a thousand; "" if there are none.
	Seen string `json:"seen,omitempty"`
}

// again returns the mark of a harvest that asks for the whole range again.
func (m Mark) again() Mark {
	if m.Rest != (Rest{}) {
		m.Seen = ""
	}
	return Mark{Since: m.Since, Seen: m.Seen}
}

// A Rest is the part of a range a harvest has not asked for yet.
type Rest struct {
	End     time.Time `json:"end,omitzero"`      // everything modified at this time or later has come
	Next    time.Time `json:"next,omitzero"`     // the Since after the Rest has come
	Dialect Dialect   `json:"dialect,omitempty"` // the dialect the server understands
	Closed  bool      `json:"closed,omitempty"`  // the server takes the end to be part of a range
	Stage   stage     `json:"stage,omitzero"`    // the questions under way, and the server's habits
}

// Harvest returns the harvest of modifications since the given mark. It makes no request
// until you range over its documents.
func (h *Harvester) Harvest(ctx context.Context, from Mark) *Harvest {
	return &Harvest{h: h, ctx: ctx, from: from}
}

// A Harvest gets the modifications of a collection since a Mark. Use it in one goroutine
// only.
type Harvest struct {
	h    *Harvester
	ctx  context.Context
	from Mark

	next     Mark // of a whole harvest
	at       Mark // where to continue, if the harvest is cut short
	whole    bool
	dialect  Dialect
	stamp    stampKind
	requests int
	gaps     []*feedhistory.Gap
}

// Readings yields the server's answers, most recently modified items first, and no item
// twice. From a Mark with a Rest, it yields the Rest first, and then the items modified
// since, some of which may come a second time. Their entries and deletions are changes:
// anything else has not changed. A document without any means only that Mark has moved.
//
// An error on the first document ends the harvest, as does the context's. Later, a
// missing part is a Gap of a Reading without a document. After a Gap
// wrapping a harvest.ErrLoss, the harvest may continue with older items; any other
// *harvest.Error or the error of a request ends it. So
// you can pass the sequence to feedhistory.Merge, as you would a walk's. Ranging again
// starts the harvest again.
func (h *Harvest) Readings() iter.Seq2[*feedhistory.Reading, error] {
	return func(yield func(*feedhistory.Reading, error) bool) {
		*h = Harvest{h: h.h, ctx: h.ctx, from: h.from, at: h.from}
		if err := h.h.Budget.Check("modifiedrange"); err != nil {
			yield(nil, err)
			return
		}
		client, done := settings.Shared(h.h.HTTP)
		defer done()
		r := &run{
			Harvest: h, ctx: fetch.WithFields(h.ctx, h.h.URL, h.h.Header), http: client, yield: yield, limits: withDefaults(h.h.Budget),
			dialects: h.h.Dialect.candidates(),
			seen:     map[itemState]Dialect{}, ids: map[string]int{}, from: h.from, reported: h.from,
			had: seenItems(h.from.again().Seen), mark: newNextMark(h.from.Since),
		}
		if i := slices.Index(r.dialects, h.from.Rest.Dialect); i >= 0 {
			r.dialects = r.dialects[i:]
		}
		r.run()
	}
}

// Mark returns the mark from which the next harvest must start; store it in either case. If
// whole is false, something is missing; the next harvest then continues at the Rest, or starts
// where this one did.
func (h *Harvest) Mark() (next Mark, whole bool) {
	if h.whole {
		return h.next, true
	}
	return h.at, false
}

// Dialect returns the dialect of the last request.
func (h *Harvest) Dialect() Dialect { return h.dialect }

// Requests returns the number of requests.
func (h *Harvest) Requests() int { return h.requests }

// Gaps returns what is missing: the gaps of its Readings.
func (h *Harvest) Gaps() []*feedhistory.Gap { return slices.Clone(h.gaps) }

// A run is a harvest under way.
type run struct {
	*Harvest
	ctx    context.Context // for the requests
	http   *feedhistory.Client
	yield  func(*feedhistory.Reading, error) bool
	limits harvest.Budget
	from   Mark // the Harvest's; after its Rest, the following one
	bytes  int64
	items  int // the number of items received

	dialects []Dialect // the possible dialects, the one in use first
	begun    bool      // a document was yielded
	reported Mark      // the mark after the last document yielded
	stopped  bool      // the caller has stopped ranging over the documents
	lossy    bool      // a loss was yielded

	unit   time.Duration         // the smallest unit of the stamps so far; zero if there are none
	seen   map[itemState]Dialect // the items received, each with the last dialect that brought it
	ids    map[string]int        // the IDs of the entries received, with the number of the request
	newest time.Time             // the newest stamp so far
	oldest time.Time             // the oldest stamp of the last answer

	had  map[string]bool // digests of the items of earlier harvests, by the mark
	mark nextMark

	progress
}

// A progress is how far a run has come in the dialect in use.
type progress struct {
	question       // the next one
	supported bool // the server has proved its support for ranges

	// A server that does not name the range of its answers may answer 200 with a part, as
	// GData does. So one more request confirms its first 200.
	claimed time.Time // the oldest item of the 200 to confirm
	newer   int       // the number of items of the 200 left out by the confirmation

	tie time.Time // the group of equal stamps no answer went beyond; zero if there is none

	suspended Range // the range requested before the one in doubt

	most       int       // the largest number of items in an answer so far
	top        time.Time // the newest item of the answer to confirm
	confirming confirmation

	questions map[question]bool // the questions so far: no question brings anything new twice
	lost      []*harvest.Error  // those not yielded yet
}

// A question must not be asked again, because the answer would be the same.
//
// A server may take the end to be part of the range; it is then asked for a tick less. But
// a server that ignores the range looks the same, so the client first requests a range to
// distinguish the two.
type question struct {
	span     Range
	closed   bool // the end is part of the range
	doubt    bool // this is the distinguishing range
	distrust bool // a 200 was found to be a part
}

// run makes requests until nothing is left.
func (r *run) run() {
	r.restart()
	for !r.stopped {
		if err := r.ctx.Err(); err != nil {
			r.yield(nil, err)
			return
		}
		err := r.step()
		if err == nil && r.span.isEmpty() && len(r.lost) > 0 && !r.supported {
			r.span = r.after(nothing)
		}
		if r.supported {
			r.yieldLosses()
		}
		switch {
		case r.stopped:
			return
		case err == nil && r.span.isEmpty() && r.from.Rest != (Rest{}):
			r.yieldLosses()
			since := r.mark.since(r.h.overlap())
			r.from = Mark{Since: since, Seen: r.mark.seenSince(since, mostSeen)}
			r.had = seenItems(r.from.Seen)
			if r.mark = newNextMark(r.from.Since); !r.lossy {
				r.at = r.from
			}
			clear(r.seen)
			clear(r.ids)
			r.restart()
		case err == nil && r.span.isEmpty():
			r.finish()
			return
		case err != nil && !r.nextDialect(err):
			r.end(err)
			return
		}
	}
}

// finish ends a harvest that has nothing left to ask for. After a loss, the next one asks for
// the whole range again.
func (r *run) finish() {
	r.yieldLosses()
	switch {
	case r.stopped:
	case r.lossy:
		r.at = r.Harvest.from.again()
	default:
		since := r.mark.since(r.h.overlap())
		r.Harvest.next, r.whole = Mark{Since: since, Seen: r.mark.seenSince(since, mostSeen)}, true
	}
}

// step asks one question. It yields the answer last, so Mark then has the place after it.
func (r *run) step() error {
	a, err := r.ask()
	if err != nil {
		return err
	}
	r.span, err = r.next(a)
	r.most = max(r.most, len(a.stamps))
	if err == nil && r.isSettled(a) {
		r.save()
		r.forget()
	}
	r.yieldDocument(a.doc)
	return err
}

// yieldLosses yields the losses. As long as it is unknown whether the server supports ranges
// at all, another dialect may still bring the lost items.
func (r *run) yieldLosses() {
	for _, loss := range r.lost {
		r.lossy = true
		if r.stopped = r.stopped || !r.miss(harvest.NewGap(r.h.URL, loss)); r.stopped {
			break
		}
	}
	r.lost = nil
}

// restart begins with everything since the last harvest (modified-range#8), or with the rest
// of a harvest that was cut short.
func (r *run) restart() {
	r.progress = progress{question: question{span: Range{Start: r.from.Since}}, questions: map[question]bool{}}
	if rest := r.from.Rest; rest != (Rest{}) && rest.Dialect == r.dialects[0] {
		r.resume(rest)
	}
	r.Harvest.dialect = r.dialects[0]
}

// nextDialect switches to the next dialect if the error is about an unsupported one, and
// reports whether there is a next.
func (r *run) nextDialect(err error) bool {
	answer, refused := errors.AsType[*feedhistory.FetchError](err)
	refused = refused && slices.Contains([]int{
		http.StatusBadRequest, http.StatusRequestedRangeNotSatisfiable, http.StatusNotImplemented,
	}, answer.Status)
	ignored := errors.Is(err, harvest.ErrIgnored)
	if !refused && !ignored || len(r.dialects) == 1 {
		return false
	}
	r.dialects = r.dialects[1:]
	r.restart()
	return true
}

// end yields the harvest's last error. A fault of the server would meet the next harvest at the
// same place again, before anything newer, so that one starts where this one did.
func (r *run) end(err error) {
	if e, ok := errors.AsType[*harvest.Error](err); ok && e.Code != harvest.ErrBudget {
		r.at = r.Harvest.from.again()
	}
	g, isGap := errors.AsType[*feedhistory.Gap](err)
	answer, answered := errors.AsType[*feedhistory.FetchError](err)
	ctxErr := r.ctx.Err()
	switch {
	case ctxErr != nil:
		r.yield(nil, ctxErr)
	case !r.begun:
		r.yield(nil, err)
	case isGap:
		r.miss(g)
	case answered && answer.Reason == feedhistory.ReasonStatus && r.h.Dialect == AnyDialect && !r.supported:
		// The earlier dialects were ignored, and this one is refused.
		r.miss(harvest.NewGap(r.h.URL, r.ignored("")))
	default:
		r.miss(harvest.NewGap(r.h.URL, err))
	}
}

// miss yields a gap.
func (r *run) miss(g *feedhistory.Gap) bool {
	r.gaps = append(r.gaps, g)
	return r.yield(&feedhistory.Reading{URL: g.URL, Gaps: []*feedhistory.Gap{g}}, nil)
}

// yieldDocument yields a document if it has something new, or is the first, or if the mark has moved.
func (r *run) yieldDocument(doc *feedhistory.Document) {
	if r.begun && len(doc.Entries)+len(doc.Deleted) == 0 && r.at == r.reported {
		return
	}
	r.begun, r.reported = true, r.at
	r.stopped = !r.yield(&feedhistory.Reading{URL: r.h.URL, Document: doc, Response: doc.Response}, nil)
}

// ignored returns the error for a server that ignores all dialects so far.
func (r *run) ignored(id string) error {
	all := r.h.Dialect.candidates()
	var tried []string
	for _, d := range all[:len(all)-len(r.dialects)+1] {
		tried = append(tried, d.String())
	}
	text := fmt.Sprintf("the server ignores the range (%s)", strings.Join(tried, ", "))
	if id != "" {
		text += fmt.Sprintf(": asked for %s it sent %s", r.span, clip(id))
	}
	return &harvest.Error{Code: harvest.ErrIgnored, URL: r.h.URL, Item: id, Text: text, Clause: clauseHeed}
}

// An answer is the server's answer to one request.
type answer struct {
	span   Range
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
	limit, most := "", int64(0)
	switch {
	case r.requests >= r.limits.Requests:
		limit, most = "requests", int64(r.limits.Requests)
	case r.bytes > r.limits.Bytes:
		limit, most = "bytes", r.limits.Bytes
	case r.items > r.limits.Items:
		limit, most = "items", int64(r.limits.Items)
	}
	if limit != "" {
		return nil, shared.OverBudget(r.h.URL, limit, most, clauseBounded)
	}
	if r.questions[r.question] {
		return nil, &harvest.Error{
			Code: harvest.ErrStuck, URL: r.h.URL, At: r.oldest, Clause: clauseBounded,
			Text: fmt.Sprintf("possible data loss: the server gives the same answer for %s again, so items older than %s cannot be retrieved", r.span, formatTime(r.oldest)),
		}
	}
	r.questions[r.question] = true
	sent := r.span
	if r.closed && !sent.End.IsZero() {
		sent.End = sent.End.Add(-tick)
	}
	url, fields, err := r.dialects[0].request(r.h.URL, sent)
	if err != nil {
		return nil, err
	}
	r.requests++
	if fields = fields.Clone(); fields == nil {
		fields = http.Header{}
	}
	fields.Set("Accept", "application/atom+xml, application/rss+xml, application/feed+json, */*;q=0.5")
	text, resp, cut := settings.Read(r.ctx, r.http, url, fields)
	if resp == nil {
		return nil, r.damaged(nil, nil, cut)
	}
	status, header := resp.StatusCode, resp.Header
	doc, err := feedhistory.Parser{MaxBytes: r.http.MaxBytes, Header: header}.Parse(bytes.NewReader(text), resp.Request.URL.String())
	if err = cmp.Or(cut, err); err != nil {
		return nil, r.damaged(doc, header, err)
	}
	if missing := doc.Missing(feedhistory.KindComplete); len(missing) > 0 {
		return nil, r.damaged(doc, header, missing[0].Err)
	}
	a := &answer{span: r.span, sent: sent, status: status, doc: doc}
	if covered, err := parseRange(header.Get(fieldModifiedRange)); err == nil {
		a.covered = &covered
	}
	r.bytes += int64(len(doc.Text()))
	if err := r.read(a, doc, header); err != nil {
		r.yieldDocument(doc)
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
	g := harvest.NewGap(r.h.URL, err)
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
			return &harvest.Error{
				Code: harvest.ErrStamp, URL: r.h.URL, Item: e.ID, Clause: clauseStamp,
				Text: clip(e.ID) + " does not say when it was last modified, or not as the others do",
			}
		}
	}
	r.note(doc, header)
	doc.Entries = slices.DeleteFunc(doc.Entries, func(e *feedhistory.Entry) bool {
		at := r.stamp.of(e)
		a.oldest = older(a.oldest, at)
		return !r.record(a, itemState{e.ID, false, at.UTC()}, e.XML())
	})
	deletions := time.Time{}
	doc.Deleted = slices.DeleteFunc(doc.Deleted, func(t feedhistory.Tombstone) bool {
		if !t.When.IsZero() {
			deletions = older(deletions, t.When)
		}
		return !r.record(a, itemState{t.Ref, true, t.When.UTC()}, nil)
	})
	a.oldest = cmp.Or(a.oldest, deletions)
	return nil
}

// record records an item with its XML, nil for a deletion, and reports whether it is new.
func (r *run) record(a *answer, item itemState, xml []byte) bool {
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
	if again || !item.deleted && r.changed(item) {
		return false
	}
	if len(r.had) == 0 && item.at.Before(r.mark.least) {
		return true
	}
	digest := item.digest(xml)
	r.mark.remember(digest, item.at)
	return !r.had[digest]
}

// changed reports whether an entry was modified after it came. The modification comes
// with the next harvest; nothing comes twice within one (modified-range#9).
func (r *run) changed(item itemState) bool {
	request, ok := r.ids[item.id]
	switch {
	case !ok:
		r.ids[item.id] = r.requests
		return false
	case request == r.requests || item.at.Before(r.mark.least):
		return false
	}
	r.mark.leave(item.at)
	return true
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
	if !a.span.Contains(item.at) {
		a.outside = true
	}
	a.over = a.over || a.span.above(item.at, 0)
	if a.span.beyond(item.at, time.Second) {
		a.stranger = item.id
	}
}

// older returns the earlier of two times, ignoring a zero time.
func older(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// Keep harvests the collection into a mirror's store, from the mark stored with its feed
// there. The URL of the feed is the Harvester's.
//
// Keep commits each answer with the part of the range still to be asked for. So an
// interrupted harvest continues there, and repeats only the request under way.
//
// The stamps decide which state of an entry is the latest, and whether a deletion is, even
// if they are not the entries' update times.
//
// Missing parts are among the Gaps of the result. The error is the first document's,
// the store's or the context's.
func (h *Harvester) Keep(ctx context.Context, m *mirror.Mirror) (*mirror.Report, error) {
	const name = "modified-range"
	var from Mark
	if err := m.ReadMark(ctx, h.URL, name, &from); err != nil {
		return nil, err
	}
	run := h.Harvest(ctx, from)
	mark := func() (json.RawMessage, bool, time.Time) {
		next, whole := run.Mark()
		if next == (Mark{}) {
			return nil, whole, time.Time{}
		}
		mark, _ := json.Marshal(next) // cannot fail: the times were text before
		return mark, whole, time.Time{}
	}
	return m.Keep(ctx, h.URL, mirror.Source{
		Name: name, Readings: run.Readings(), Stamp: func(e *feedhistory.Entry) time.Time { return run.stamp.of(e) },
		End: mark, Adds: from.Rest != Rest{},
		Mark: func() json.RawMessage {
			mark, _, _ := mark()
			return mark
		},
	})
}
