// Package mirror keeps local copies of feeds, complete and up to date, poll
// after poll:
//
//	m := &mirror.Mirror{Store: store}
//	report, err := m.Update(ctx, "https://example.org/feed.atom")
//
// The first Update walks the feed's whole history. Later ones read new documents, and
// those an earlier one could not read. A Mirror keeps everything in its Store: package
// sqlstore uses SQLite or PostgreSQL, NewMemory keeps it in memory.
//
// # Guarantees
//
// A poll commits documents as they come, entries and links together. So at any time,
// every archive document the mirror ever saw a link to is either processed or pending
// (5005#19). An error, a budget or a kill may cut a poll short anywhere; a later poll
// finishes it, even if newer archives have come in between.
//
// # When a poll is due
//
// A state committed in the middle of a walk is Unfinished. Whatever ends the walk
// there, the feed is Due at once, however fresh it is, unless its host has sent a
// Retry-After. A feed left unread by a Budget is Due as well; its Next is some minutes
// away, for programs polling continually.
//
// # The steps of a poll
//
// They depend on the kind of feed, which the subscription document declares:
//
//   - KindComplete: the document replaces everything in the mirror. Entries missing from it
//     are no longer part of the feed (5005#1).
//   - KindArchived: the walk reads up to the first processed archive, then the pending
//     ones. While something is owed, it requests known archives again, conditionally,
//     down to the first that has not changed, and those that name the missing (5005#9).
//   - KindPaged: the walk reads until a page has nothing new. The feed stays lossy
//     (5005#4).
//   - KindPlain: the document is a window. If nothing in it proves that it joins the reading
//     before, there is a gap.
//
// # The ledger
//
// A gap is a debt: it is entered when it is seen, and only the receipt named for its kind
// crosses it out. A poll that fails cancels nothing. A document that could not be read is
// owed until it is read, or until a complete reading of the chain shows that nothing names
// or needs it any more. A window is owed until archives join both sides. Entries that
// return, are pinned, or have changed prove nothing. Another feed that answers at the
// address is set aside, until it has answered three polls over a day.
//
// Whatever the order of the documents, and over however many polls they come, the
// mirror keeps the same one of several duplicates (5005#20, 5005#21). A tombstone (RFC
// 6721) counts even if it comes before the entry it deletes.
//
// A function that takes a context may return the error of the context. Methods of nil pointers
// may panic, unless their comments say otherwise.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A Mirror keeps the feeds in a Store up to date. Only Store must be set; Poll uses none.
// Several mirrors, even in different processes, may share a store: if two are
// at work on the same feed, one gives way with ErrConflict.
//
// Do not copy or change a Mirror after its first use. Many goroutines may use it
// at the same time.
type Mirror struct {
	Store  Store               // Store keeps the feeds.
	Client *feedhistory.Client // Client makes the requests; nil means a client with default settings.

	// ClientFor returns the client for a feed that needs its own, such as a Clone of
	// Client with Credentials. If ClientFor is nil or returns nil, Client is used. Several
	// goroutines may call it at the same time.
	ClientFor func(feed string) *feedhistory.Client

	// Every is the minimum time between two polls of a feed; a feed may ask for
	// more. Zero means an hour.
	Every time.Duration

	// Versions is the number of earlier versions to keep of each entry. Zero
	// means 10, a negative number none.
	Versions int

	// Revalidate makes Update request every archive document again,
	// conditionally, even those whose earlier failures give little hope. The
	// Budget bounds this, too; the next Update then begins again.
	Revalidate bool

	// Recheck is the time between two polls with repeated, conditional requests for known
	// archive documents of a feed, to see whether they have changed (5005#9): the newest or
	// the oldest one, and others in turn, so that each is requested within thirty days. Of
	// more than 600 archives, polls request some more often. Zero means a day. With a
	// negative number, Update requests none unless it needs to.
	Recheck time.Duration

	Quota Quota // Quota limits how much is stored of each feed.

	// Now is the clock all stored times are of. Machines that share a Store need one that
	// agrees, such as its database's. Nil means time.Now.
	Now func() time.Time

	client feedhistory.Client // used if Client is nil
}

// now returns the time by Now.
func (m *Mirror) now() time.Time {
	if m.Now == nil {
		return time.Now()
	}
	return m.Now()
}

// byNow converts a time of this machine's clock.
func (m *Mirror) byNow(t time.Time) time.Time {
	if m.Now == nil {
		return t
	}
	return m.Now().Add(time.Until(t))
}

// A Report is the result of a poll, or of a Recall.
type Report struct {
	// Feed is the feed's state afterwards. Its Ledger has the missing parts: one that this
	// poll found has a Found not before Feed.Polled.
	Feed *Feed

	Added, Changed, Deleted int // the numbers of entries added, changed and deleted

	Refused int // of a Recall: the number of entries for which the Quota has no room
	Closed  int // of a Recall: the number of missed windows it has closed

	// Response is the response with the subscription document, or the answer that it has not
	// changed. It is zero if there was none, or none but the Failure.
	Response feedhistory.Response

	Documents int // the number of documents read to their end
	Altered   int // the number of archive documents, among those, whose entries have changed (5005#9)

	// Failure is the reason why the poll got no subscription document, or only a damaged
	// one, whose entries count nevertheless; the verdict is then partial until the
	// document is read. It is the error of Client.Get, or matches ErrWaits if the host has
	// asked to be left alone, in which case nothing was requested. Nil means the document
	// was read or has not changed. Feed.Failures counts the failures other than ErrWaits.
	Failure error

	More bool // whether the Budget ended the poll; the next one continues there

	// Moved is the URL to request the feed from, if it has changed: the target of
	// permanent redirects, or URL again if the target has failed for good. "" means it has
	// not changed.
	Moved string
}

// check returns an error for settings a Mirror cannot work with.
func (m *Mirror) check() error {
	if m == nil || m.Store == nil {
		return errors.New("mirror: Mirror.Store must be set")
	}
	return settings.Check("mirror", settings.Number{Name: "Mirror.Every", Value: int64(m.Every)})
}

// clientFor returns the client for requesting a feed.
func (m *Mirror) clientFor(feed string) *feedhistory.Client {
	if m.ClientFor != nil {
		if own := m.ClientFor(feed); own != nil {
			return own
		}
	}
	return m.http()
}

func (m *Mirror) http() *feedhistory.Client {
	if m.Client != nil {
		return m.Client
	}
	return &m.client
}

func (m *Mirror) every() time.Duration { return cmp.Or(m.Every, time.Hour) }

// keep returns how many versions the store keeps.
func (m *Mirror) keep() int { return max(cmp.Or(m.Versions, 10), 0) }

// Update polls a feed, and adds it to the Store if it is not there yet, even if it cannot
// be read: Remove it then, unless it should be polled again. Update requests the
// subscription document even if you have just read it, because it keeps the validators
// and the place in the chain itself.
//
// The error comes from the Store or from the context, or says that the URL of a new feed is
// not an absolute one. The Store keeps everything read before an error of the context, and
// the Report is of it. After an error of the Store, it may lack the last of what the Report
// counts; the Verdict is then unknown. The Report is nil only if the Store could not be read,
// or the feed not added. An unreadable subscription document is not an error of Update but
// Report.Failure. Other unreadable documents are in Gaps.
func (m *Mirror) Update(ctx context.Context, url string) (*Report, error) {
	p, err := m.begin(ctx, url)
	if err != nil {
		return nil, err
	}
	defer p.commits.await()
	if p.feed.Waits(p.now) {
		p.failure = p.feed.waitError(p.feed.Wait)
		return p.report(), nil
	}
	p.update, p.feed.Wait = true, time.Time{}
	p.ledger.convert()
	if err := p.feed.fillSides(ctx, m.Store); err != nil {
		return p.stop(err)
	}
	if err := p.chooseRechecks(); err != nil {
		return p.stop(err)
	}
	p.choosePages()
	if err := p.walks(); err != nil {
		return p.stop(err)
	}
	return p.finish()
}

// errEnded ends a walk whose remaining documents are not wanted.
var errEnded = errors.New("the walk has ended")

// walk requests the feed at an address, and processes the documents of the walk.
func (p *poll) walk(address string) error {
	p.request.url = address
	client := p.m.clientFor(p.feed.URL)
	defer func() {
		if p.waits.heed(address, client) {
			p.commits.hold()
		}
	}()
	for r, err := range client.Walk(door.WithPast(p.ctx, p.past()), address) {
		if err := p.take(r, err); errors.Is(err, errEnded) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// take processes the next Reading of the walk, or the error that ends it.
func (p *poll) take(r *feedhistory.Reading, err error) error {
	switch {
	case p.documents.err != nil:
		return p.documents.err
	case err != nil:
		doc := r.Readable()
		return p.step(doc, func() error { return p.fail(doc, err) })
	case r.Document != nil || r.Unchanged:
		if err := p.step(r.Document, func() error { return p.read(r) }); err != nil {
			return err
		}
		if r.Document != nil {
			p.chain.received[r.URL], p.chain.received[r.Document.URL] = true, true
		}
	}
	p.chain.ended = r.End
	for _, gap := range r.Gaps {
		if err := p.miss(gap, r.Known); err != nil {
			return err
		}
	}
	return nil
}

// miss processes a gap of a Reading, or in its place. One within a document belongs to the
// document's commit.
func (p *poll) miss(gap *feedhistory.Gap, known feedhistory.Known) error {
	p.pages.torn = p.pages.torn || isWithin(gap) || !p.isAside(gap.URL)
	switch {
	case !isWithin(gap):
		return p.step(gap.Document, func() error {
			p.waitFor(gap)
			p.reach(gap.URL)
			return p.gap(gap, known)
		})
	case gap.Reason != feedhistory.ReasonContradiction || p.brought || p.rereads || p.ledger.Kind == feedhistory.KindComplete:
		p.oweWithin(gap)
	}
	return nil
}

// step does the work on a document, or on something without one, in a commit of its own. If it
// fails, neither the held change nor the feed's state can be used.
func (p *poll) step(next *feedhistory.Document, work func() error) error {
	p.brought = false
	if err := p.makeRoom(next); err != nil {
		return err
	}
	p.snapshot, p.merger.digests = p.feed.clone(), newDigests()
	err := work()
	if err == nil || errors.Is(err, errEnded) {
		p.snapshot = nil
	}
	return err
}

// makeRoom commits earlier documents, or lets them wait, before the next one is
// processed. The subscription document asks the store for more than its own entries, as
// does any document of a feed that turns out to be complete.
func (p *poll) makeRoom(next *feedhistory.Document) error {
	p.notEnded(feedtime.Later(p.m.now(), p.feed.Wait))
	decisive := next != nil && (p.update && (!p.chain.read || next.Response.Requested == p.chain.start) || next.Complete || p.merger.mayRename(next))
	return p.commits.makeRoom(next, decisive)
}

// read processes a document, or the answer that it has not changed.
func (p *poll) read(r *feedhistory.Reading) error {
	if !p.chain.read {
		p.changes.Response = r.Response
		if err := p.first(r.Document, r.Response); err != nil {
			return err
		}
		if p.update && !p.request.doubted {
			if aside, err := p.meet(r.Document, r.Response); err != nil {
				return err
			} else if aside {
				return errEnded
			}
		}
	}
	p.reach(r.URL)
	switch {
	case r.Unchanged:
		p.unchanged(r)
		return nil
	case !p.chain.read || r.URL == p.chain.start:
		return p.subscription(r)
	default:
		return p.older(r)
	}
}

// fail processes the error that ends the walk.
func (p *poll) fail(doc *feedhistory.Document, err error) error {
	if p.chain.read || p.ctx.Err() != nil {
		return err
	}
	until, _ := p.waits.asked(err)
	p.feed.Wait = feedtime.Later(p.feed.Wait, until)
	return p.failed(doc, err)
}

// reach notes that the walk has come to a document.
func (p *poll) reach(url string) {
	if p.chain.read {
		p.chain.aside = p.chain.own[url] && p.rechecks[url] || p.chain.aside && p.chain.leadsTo(url)
		p.chain.beyond = p.isAside(url)
	}
	if p.backlog.urls[url] && !p.rechecks[url] {
		delete(p.backlog.urls, url) // a gap naming the document may follow
		p.backlog.reached = true
	}
}

// isAside reports whether the walk does not come to a document along the chain from the
// subscription document.
func (p *poll) isAside(url string) bool {
	return url != p.chain.start && (p.chain.beyond || !p.chain.leadsTo(url) && url != p.ledger.Known.Older)
}

// wants reports whether a document owed or to be requested again is still wanted: a link
// may have led to it under another name, or the feed's new kind may make it needless, with
// the documents it leads to.
func (p *poll) wants(url string) bool {
	if p.rechecks[url] {
		return p.ledger.Kind == feedhistory.KindArchived || p.completed != nil
	}
	return p.ledger.document(url) != nil
}

// unchanged notes an unchanged document.
func (p *poll) unchanged(r *feedhistory.Reading) {
	if p.chain.read {
		if d := p.documents.get(r.URL); d != nil {
			p.chain.linked, p.chain.links, p.chain.forms = r.Known.Older, append(slices.Clone(d.Further), r.Known.Instead), r.Known.Formats
			if !p.chain.beyond {
				p.chain.asks = p.chain.asks && d.First >= p.chain.until && p.chain.until > 0
				p.chain.met, p.chain.joined = true, true
			}
			p.commits.reread(d, r.Known, p.now)
		}
		return
	}
	p.chain.read, p.chain.start = true, r.URL
	p.chain.linked, p.chain.links, p.chain.forms = r.Known.Older, []string{r.Known.Instead}, r.Known.Formats
	p.ledger.Known.ETag, p.ledger.Known.LastModified = r.Known.ETag, r.Known.LastModified
	p.pages.ended = p.pages.toEnd && r.Known.Older == "" && !r.Known.Lost // the only page
	if p.asksAnew() || p.ledger.Answered.IsZero() {
		p.ledger.Answered = p.now
	}
	p.readAt(r.Response)
}

// asksAnew reports whether the poll requests the subscription document without conditions,
// to find out a server answering 304 whatever has changed.
func (p *poll) asksAnew() bool {
	at := p.ledger.Answered
	return p.m.Revalidate || !at.IsZero() && p.now.Sub(at) >= anewAfter
}

// anewAfter is the time after which an unchanged subscription document is requested
// without conditions.
const anewAfter = 7 * 24 * time.Hour

// readAt notes the reading of the subscription document, and where.
func (p *poll) readAt(r feedhistory.Response) {
	f := p.feed
	address := f.Address
	f.Address = cmp.Or(r.Permanent, r.Requested)
	p.changes.Moved = cmp.Or(r.Permanent, p.changes.Moved)
	if f.Address == f.URL {
		f.Address = ""
	}
	switch {
	case f.Address == "":
		p.ledger.Move = nil
	case f.Address != address && r.Permanent != "":
		p.ledger.Move = &move{Since: p.now, Poll: f.Polls}
	}
	if f.Address == address {
		p.changes.Moved = ""
	}
	f.Failures, f.Error, f.Gone, f.Alias, f.Lost = 0, "", false, "", ""
	p.ready, p.unended = p.later(p.inTime(p.ledger.Schedule.Next(r))), false
}

// respected is the longest wait for which a feed may ask, even if its window fills meanwhile.
const respected = 6 * time.Hour

// inTime returns the time for which a feed asks, or an earlier one, at which its entries are
// probably half replaced.
func (p *poll) inTime(asked time.Time) time.Time {
	if span := p.ledger.Pace; span > 0 && asked.Sub(p.now) > respected {
		if filled := p.now.Add(max(respected, span/2)); filled.Before(asked) {
			return filled
		}
	}
	return asked
}

// failed notes the lack of a subscription document, or a damaged one, whose entries
// count nevertheless.
func (p *poll) failed(doc *feedhistory.Document, err error) error {
	if p.failure != nil { // another address has no document either
		if p.request.url == p.feed.URL {
			p.lost(err)
		}
		return nil
	}
	f := p.feed
	f.Failures++
	f.Error = feedhistory.Describe(err)
	p.failure, p.cut = err, true
	p.ready, p.unended = p.later(p.now.Add(backoff(p.m.every(), f.Failures, 24*time.Hour))), false
	f.Gone = isGone(err) || p.request.doubted && isAway(err) // the other address has been withdrawn
	if doc == nil {
		return nil
	}
	url := iri.WithoutFragment(p.request.url)
	gap := feedhistory.NewGap(url, err)
	gap.From, gap.Found = url, p.now
	p.oweAgain(gap) // it may have more than the mirror
	m, err := p.merger.merge(source{doc: doc, rank: rankOf(doc, p.chain.rank)})
	if err == nil {
		p.commits.held = &m.change
		p.short(doc, m)
	}
	return err
}

// isCutShort reports whether a debt is for a damaged subscription document that has not
// been read since.
func isCutShort(d debt) bool { return d.Again && d.From == d.URL }

// rankOf returns the rank of a document with the given place. A document without a time
// of its own has its newer neighbour's.
func rankOf(doc *feedhistory.Document, neighbour Rank) Rank {
	neighbour.Time = feedtime.First(doc.Updated, doc.LastModified, neighbour.Time)
	return neighbour
}

// A poll is an Update or a Keep under way.
type poll struct {
	ctx     context.Context
	m       *Mirror
	feed    *Feed // the feed's state, as the next commit stores it
	from    int64 // the feed's Commits when the poll began
	now     time.Time
	changes *Report
	update  bool   // the poll is an Update, which requests the subscription document
	source  string // the Source.Name of a Keep, as debt.From has it

	request   request
	chain     chainWalk
	pages     pageWalk
	backlog   backlog
	completed *mergeResult    // the complete document whose links contradict its mark
	whole     map[string]bool // those of them to request even if they have not changed
	rechecks  map[string]bool // the known archives to request again
	waits     hostWaits
	ready     time.Time // when the feed is due again after the poll
	failure   error     // why there is no subscription document
	spent     bool      // the budget has left a known archive unasked
	brought   bool      // the latest document has entries never known before
	had       bool      // the feed had entries before the poll
	late      bool      // a document was read that had failed before
	rereads   bool      // the poll reads all documents again; see settle
	vain      int       // the number of polls that have done so in vain
	cut       bool      // the walk did not reach its end
	unended   bool      // an earlier poll has still not finished
	snapshot  *Feed     // a copy of the state, while a document is being processed
	ledger    *ledger   // that of the feed

	commits   commits
	allowance *allowance
	documents documents
	merger    merger
}

// request is where the subscription document is requested.
type request struct {
	url     string // the address requested by the walk
	doubted bool   // the answer from there counts only if it is the same feed
}

// A chainWalk is how far the walk has come from the subscription document.
type chainWalk struct {
	read   bool     // the subscription document has come
	start  string   // the URL by which it was requested
	linked string   // the older document linked by the latest one
	links  []string // all it links to, as there may be several links
	forms  bool     // the first two of these lead to one document in two formats
	rank   Rank     // the rank of the latest document
	beyond bool     // the walk has left the chain from the subscription document
	aside  bool     // it reads a document of that chain again, and perhaps those the document newly leads to
	ended  bool     // the walk has ended by itself
	chainReading
}

// A pageWalk is how far the walk follows a paged feed.
type pageWalk struct {
	toEnd bool // to the end, not only to the first known page
	fresh bool // the latest page brought something new
	ended bool // it has come to a page that names no next
	torn  bool // a page on the way could not be read, or not all of it
}

// goesOn reports whether the page after the latest one is wanted.
func (w pageWalk) goesOn() bool { return w.toEnd || w.fresh }

// A backlog is the walk through documents left pending by earlier polls.
type backlog struct {
	urls    map[string]bool // the documents still ahead of the walk
	reached bool            // the walk has reached one of them
	unread  bool            // earlier polls left documents unread: these come before any search
}

// begin starts a poll.
func (m *Mirror) begin(ctx context.Context, url string) (*poll, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	url = iri.WithoutFragment(strings.TrimSpace(url))
	feed, err := m.Store.Feed(ctx, url)
	if errors.Is(err, ErrNotFound) {
		feed, err = NewFeed(url), checkURL(url)
	}
	if err != nil {
		return nil, err
	}
	now, ledger := m.now(), &feed.Ledger.l
	ledger.setRight(now)
	if ledger.Known.URL != "" && !ledger.hasReading() {
		ledger.Inherited = now
	}
	if ledger.Kind = feed.Kind; feed.Kind == feedhistory.KindUnknown { // an import may have set it, of a feed never read
		ledger.Kind = ""
	}
	ledger.Unsettled = feed.Kind == feedhistory.KindArchived && feed.Verdict != feedhistory.VerdictWhole
	p := &poll{
		ctx: ctx, m: m, feed: feed, ledger: ledger, from: feed.Commits, now: now, changes: &Report{},
		ready: feed.Next, unended: feed.Unfinished, had: feed.Entries+feed.Deleted > 0,
		pages: pageWalk{toEnd: feed.Kind != feedhistory.KindPaged || ledger.Known.URL == ""},
		waits: hostWaits{feed: feed, m: m, now: now, until: map[string]time.Time{}}, allowance: newAllowance(ctx, m, feed),
	}
	p.commits = commits{ctx: ctx, store: m.Store, feed: feed, prepare: p.prepare}
	p.documents = documents{ctx: ctx, store: m.Store, feed: feed, commits: &p.commits, found: map[string]*DocumentRecord{}}
	p.merger = merger{
		ctx: ctx, store: m.Store, feed: feed, from: feed.Commits, now: now, changes: p.changes, allowance: p.allowance,
	}
	feed.Polls++
	feed.Polled = now
	p.chain.rank = Rank{Time: feedtime.Later(now, ledger.Clock), Seq: feed.Polls << 32}
	p.chain.received, p.chain.gone, p.chain.ranks = map[string]bool{}, map[string]bool{}, map[string][]int64{}
	if i := slices.IndexFunc(ledger.Debts, debt.isAlternative); i >= 0 {
		p.rereads, p.vain = !ledger.Debts[i].rests(now), ledger.Debts[i].Tries
	}
	p.pages.toEnd = p.pages.toEnd || ledger.owes(func(d debt) bool { return d.Again })
	p.leavePages()
	p.backlog.fill(p)
	return p, nil
}

// checkURL returns an error if a URL is not absolute.
func checkURL(url string) error {
	if u, err := feedhistory.ParseURL(url); err != nil || u.Host == "" {
		return fmt.Errorf("mirror: %q is not an absolute URL", feedhistory.Redact(url))
	}
	return nil
}

// fill decides which of the documents owed the walk requests. Those with the fewest tries
// come first.
func (b *backlog) fill(p *poll) {
	b.urls = map[string]bool{}
	isUnnamed := func(debt) bool { return false }
	if p.ledger.Kind == feedhistory.KindArchived && p.ledger.owes(func(d debt) bool { return d.Tries > 1 }) {
		isUnnamed = p.unnamed()
	}
	slices.SortStableFunc(p.ledger.Debts, func(a, b debt) int { return cmp.Or(compareKinds(a, b), cmp.Compare(a.Tries, b.Tries)) })
	for _, d := range p.ledger.Debts[:p.ledger.documents()] {
		rests := d.rests(p.now) && !isUnnamed(d)
		if (p.m.Revalidate || !rests) && !p.leavesAlone(&d) {
			b.urls[d.URL] = true
			b.unread = b.unread || d.Tries == 0
		}
	}
}

// prepare updates the feed's state for a change to be committed.
func (p *poll) prepare(c *Commit) {
	p.ledger.Cap = p.feed.bound()
	p.ledger.Unsettled = p.ledger.Unsettled && p.ledger.Kind == feedhistory.KindArchived
	p.feed.Kind, p.feed.Verdict = cmp.Or(p.ledger.Kind, feedhistory.KindUnknown), p.ledger.verdict()
	p.documents.forget(c)
	c.response = p.changes.Response
}

// later returns when the feed is due again, given the time it asks for.
func (p *poll) later(asked time.Time) time.Time { return feedtime.Later(asked, p.now.Add(p.m.every())) }

// past returns the memory of the walk.
func (p *poll) past() *chain.Memory[feedhistory.Known, *feedhistory.Document] {
	past := &chain.Memory[feedhistory.Known, *feedhistory.Document]{Processed: p.processed, Known: p.known, Wanted: p.wants}
	if p.had || p.ledger.Known.URL != "" { // of a feed without entries, its head tells
		past.Shown, past.IDs, past.Has = p.shownBefore, p.ledger.IDs, p.hasOrShows
	}
	if p.m.Revalidate || p.rereads {
		past.Processed = nil
	}
	for _, d := range p.ledger.Debts {
		switch {
		case !d.isDocument() || !p.backlog.urls[d.URL]:
		case d.Page:
			past.PendingPages = append(past.PendingPages, d.URL)
		default:
			past.Pending = append(past.Pending, d.URL)
		}
	}
	past.Pending = append(past.Pending, slices.Sorted(maps.Keys(p.rechecks))...)
	if !p.pages.toEnd {
		past.Last = func(*feedhistory.Document) bool { return !p.pages.goesOn() && !p.backlog.reached }
	}
	return past
}

// shownBefore returns the head section of the subscription document as it was last read, and the
// IDs of its entries.
func (p *poll) shownBefore() (*feedhistory.Document, []string) {
	head, err := p.feed.Document()
	if err != nil {
		return nil, nil
	}
	return head, p.ledger.Shown
}

// hasOrShows reports whether an entry of a document is known.
func (p *poll) hasOrShows(doc *feedhistory.Document) bool {
	shown := idsOf(p.ledger.shown())
	if slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return shown[e.ID] }) {
		return true
	}
	has, err := p.hasEntryOf(doc)
	p.documents.err = cmp.Or(p.documents.err, err)
	return has
}

// processed reports whether an archive document was processed in an earlier poll.
// During a search for entries no document counts as processed, but unread documents
// come first; nor does one needed by the join, or to be requested again.
func (p *poll) processed(url string) bool {
	if p.completed != nil || p.rechecks[url] || p.chain.asks && !p.chain.beyond && p.owes() {
		return false
	}
	if d := p.ledger.document(url); d != nil && (p.leavesAlone(d) || d.Quota || p.backlog.urls[url]) {
		return p.leavesAlone(d)
	}
	d := p.documents.get(url)
	return d != nil && d.First < p.feed.Polls && !(p.chain.beyond && !p.chain.aside && p.isUnasked(d))
}

// leavesAlone reports whether a document owed is not to be requested now.
func (p *poll) leavesAlone(d *debt) bool {
	return isAsked(d.Wait, p.now) || d.Quota && p.allowance.full
}

// known returns the validators for a conditional request. If the first of
// several pages has not changed, the second is not requested.
func (p *poll) known(url string) feedhistory.Known {
	if p.rereads {
		return feedhistory.Known{}
	}
	if url == iri.WithoutFragment(p.request.url) {
		known := p.ledger.Known
		if p.request.doubted || !p.allowance.full && p.ledger.owes(isShort) || p.ledger.owes(isCutShort) {
			return feedhistory.Known{}
		}
		if p.ledger.Kind == feedhistory.KindPaged && !p.pages.toEnd {
			known.Older, known.Instead = "", ""
		}
		if p.asksAnew() {
			known.ETag, known.LastModified = "", ""
		}
		return known
	}
	owed := p.ledger.document(url)
	if d := p.documents.get(url); d != nil && (owed == nil || !owed.Quota) && !p.whole[url] {
		return d.Known
	}
	return feedhistory.Known{}
}

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

// stop ends the poll with an error not caused by the feed.
func (p *poll) stop(err error) (*Report, error) {
	if p.snapshot != nil {
		*p.feed, p.commits.held = *p.snapshot, nil
	}
	if failed := p.commits.land(); failed != nil {
		err = errors.Join(err, failed)
	}
	p.commits.gather()
	if p.ctx.Err() == nil && p.commits.waiting != nil && !p.commits.broken {
		err = errors.Join(err, p.commits.drain()) // this stores everything read until then
	}
	begun := p.commits.waiting != nil || p.feed.Commits > p.from || len(p.waits.until) > 0
	if begun {
		p.notEnded(p.feed.Wait) // nobody is at work on the feed
	} else {
		p.feed.Next = p.ready
	}
	if p.ctx.Err() != nil && begun && !p.commits.broken && !errors.Is(err, ErrConflict) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), landing)
		defer cancel()
		err = errors.Join(err, p.commits.last(ctx))
	}
	if p.commits.broken || p.commits.waiting != nil {
		p.feed.Verdict = feedhistory.VerdictUnknown // of what the Store has
	}
	return p.report(), err
}

// finish commits the end of the poll.
func (p *poll) finish() (*Report, error) {
	if p.documents.err != nil {
		return p.stop(p.documents.err)
	}
	if err := p.commits.land(); err != nil {
		return p.stop(err)
	}
	p.commits.gather()
	if err := p.replace(); err != nil {
		return p.stop(err)
	}
	p.ledger.crossOut(func(d debt) bool {
		if failed := d.Tries > 0 && d.Poll == p.feed.Polls; failed || !d.isDocument() || d.Page || d.Quota {
			return false
		}
		known := p.documents.get(d.URL) // processed under another name, or before; an earlier, damaged copy pays for nothing
		return known != nil && (known.Last >= d.Poll || !known.Known.Damaged)
	})
	if p.documents.err != nil {
		return p.stop(p.documents.err)
	}
	p.ledger.crossOut(p.isNotMissed)
	p.settlePages()
	changed := p.ledger.Unsettled
	if changed || p.owes() {
		if err := p.settle(); err != nil {
			return p.stop(err)
		}
	}
	if err := p.noteChecked(changed); err != nil {
		return p.stop(err)
	}
	p.declare()
	p.ended()
	if err := p.commits.last(p.ctx); err != nil {
		return p.stop(err)
	}
	return p.report(), nil
}

func (p *poll) report() *Report {
	c := p.changes
	c.Feed, c.Failure = p.feed, p.failure
	return c
}
