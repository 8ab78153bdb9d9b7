package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A poll is an Update or a Merge under way.
type poll struct {
	ctx     context.Context
	m       *Mirror
	feed    *Feed // the feed's state, as the next commit stores it
	from    int64 // the feed's Commits when the poll began
	now     time.Time
	changes *Report
	update  bool   // the poll is an Update, which requests the subscription document
	source  string // the Source.Name of a Merge, as GapRecord.From has it

	request   request
	chain     chain
	pages     pageWalk
	backlog   backlog
	search    search
	join      join
	completed *mergeResult // the complete document whose links contradict its mark
	recheck   string       // the known archive to request again; "" for none
	waits     hostWaits
	ready     time.Time // when the feed is due again after the poll
	failure   error     // why there is no subscription document
	cut       bool      // the walk did not reach its end
	unended   bool      // an earlier poll has still not finished
	snapshot  *Feed     // a copy of the state, while a document is being processed

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

// chain is how far the walk has come from the subscription document.
type chain struct {
	read    bool     // the subscription document has come
	start   string   // the URL by which it was requested
	linked  string   // the older document linked by the latest one
	links   []string // all it links to, as there may be several links
	rank    Rank     // the rank of the latest document
	changed bool     // the chain of archives may have changed
}

// A pageWalk is how far the walk follows a paged feed.
type pageWalk struct {
	toEnd bool // to the end, not only to the first known page
	fresh bool // the latest page brought something new
}

// goesOn reports whether the page after the latest one is wanted.
func (w pageWalk) goesOn() bool { return w.toEnd || w.fresh }

// A backlog is the walk through documents left pending by earlier polls.
type backlog struct {
	urls    map[string]bool // the documents still ahead of the walk
	reached bool            // the walk has reached one of them
	dropped bool            // the walk has reached one no longer pending; its links are not followed
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
		if u, bad := feedhistory.ParseURL(url); bad != nil || u.Host == "" {
			return nil, fmt.Errorf("mirror: %q is not an absolute URL", feedhistory.Redact(url))
		}
		feed, err = NewFeed(url), nil
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	p := &poll{
		ctx: ctx, m: m, feed: feed, from: feed.Commits, now: now, changes: &Report{URL: url},
		ready: feed.Next, unended: feed.Unfinished,
		chain: chain{changed: feed.Kind == feedhistory.Archived && feed.Verdict != feedhistory.Whole},
		pages: pageWalk{toEnd: feed.Kind != feedhistory.Paged || feed.Known.URL == ""},
		waits: hostWaits{feed: feed, now: now, until: map[string]time.Time{}}, allowance: newAllowance(ctx, m, feed),
	}
	p.commits = commits{ctx: ctx, store: m.Store, feed: feed, prepare: p.prepare}
	p.documents = documents{ctx: ctx, store: m.Store, feed: feed, commits: &p.commits, found: map[string]*DocumentRecord{}}
	p.merger = merger{
		ctx: ctx, store: m.Store, feed: feed, from: feed.Commits, now: now, changes: p.changes, allowance: p.allowance,
	}
	feed.Polls++
	feed.Polled = now
	p.chain.rank = Rank{Time: now, Seq: feed.Polls << 32}
	p.search, p.join = newSearch(feed), join{feed: feed}
	p.backlog.fill(p)
	return p, nil
}

// fill decides which pending documents the walk requests. Those with the fewest
// tries come first.
func (b *backlog) fill(p *poll) {
	f := p.feed
	b.urls = map[string]bool{}
	slices.SortStableFunc(f.Pending, func(a, b PendingDocument) int { return cmp.Compare(a.Tries, b.Tries) })
	for _, pending := range f.Pending {
		rests := pending.Retry.After(p.now) && !pending.Retry.After(p.now.Add(longestRetry+clockError))
		if (p.m.Revalidate || !rests) && !p.leavesAlone(&pending) {
			b.urls[pending.URL] = true
			b.unread = b.unread || pending.Tries == 0
		}
	}
}

// prepare updates the feed's state for a change to be committed.
func (p *poll) prepare(c *Commit) {
	p.feed.Verdict = feedhistory.Worse(p.verdict(), p.feed.bound())
	p.feed.Sought = p.search.sorted()
	p.documents.forget(c)
}

// later returns when the feed is due again, given the time it asks for.
func (p *poll) later(asked time.Time) time.Time { return feedtime.Later(asked, p.now.Add(p.m.every())) }

// options returns the options of the walk.
func (p *poll) options() *feedhistory.WalkOptions {
	opt := &feedhistory.WalkOptions{Processed: p.processed, Known: p.known}
	if p.m.Revalidate {
		opt.Processed = nil
	}
	for _, pending := range p.feed.Pending {
		switch {
		case !p.backlog.urls[pending.URL]:
		case pending.Page:
			opt.PendingPages = append(opt.PendingPages, pending.URL)
		default:
			opt.Pending = append(opt.Pending, pending.URL)
		}
	}
	if p.feed.Search != "" && !p.backlog.unread {
		opt.Pending = append(opt.Pending, p.feed.Search)
	}
	if p.recheck != "" {
		opt.Pending = append(opt.Pending, p.recheck)
	}
	if !p.pages.toEnd {
		opt.Last = func(*feedhistory.Document) bool { return !p.pages.goesOn() && !p.backlog.reached }
	}
	return opt
}

// processed reports whether an archive document was processed in an earlier poll.
// During a search for entries no document counts as processed, but unread documents
// come first; nor does one needed by the join, or to be requested again.
func (p *poll) processed(url string) bool {
	if p.completed != nil || url == p.recheck || p.join.covers() || !p.backlog.unread && p.search.covers(url) {
		return false
	}
	if i := p.feed.pending(url); i >= 0 && (p.leavesAlone(&p.feed.Pending[i]) || p.feed.Pending[i].Quota) {
		return p.leavesAlone(&p.feed.Pending[i])
	}
	d := p.documents.get(url)
	return d != nil && d.First < p.feed.Polls
}

// leavesAlone reports whether a pending document is not to be requested now.
func (p *poll) leavesAlone(pending *PendingDocument) bool {
	return isAsked(pending.Wait, p.now) || pending.Quota && p.allowance.full
}

// known returns the validators for a conditional request. If the first of
// several pages has not changed, the second is not requested.
func (p *poll) known(url string) feedhistory.Known {
	if url == iri.WithoutFragment(p.request.url) {
		known := p.feed.Known
		if p.request.doubted || !p.allowance.full && slices.ContainsFunc(p.feed.Gaps, isShort) || slices.ContainsFunc(p.feed.Gaps, func(g GapRecord) bool { return p.feed.isCut(g, url) }) {
			return feedhistory.Known{}
		}
		if p.feed.Kind == feedhistory.Paged {
			known.Older, known.Instead = "", ""
		}
		return known
	}
	i := p.feed.pending(url)
	if d := p.documents.get(url); d != nil && (i < 0 || !p.feed.Pending[i].Quota) {
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
	err     error // an error of the store, which callbacks cannot return
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
	for _, d := range c.Documents {
		for _, name := range d.Names {
			delete(ds.found, name)
		}
	}
}
