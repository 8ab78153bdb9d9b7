package mirror

import (
	"bytes"
	"compress/flate"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Reading is a step of a Poll: one document of the feed or several, or the end of the poll.
type Reading struct {
	// The entries that the Reading changes. The method Entry of each returns the new copy; the
	// Document of the Reading has them all. A later Reading may have one of them again. A
	// Record's JSON has neither its Feed nor its ID: store these besides.
	Added   []*Record // entries new to the feed, or part of it again
	Changed []*Record // entries with another content, or another state of a signature
	Deleted []*Record // entries no longer part of the feed, or never part of it: see Record.Deletion

	// Response is the response with the subscription document, once it has come in this
	// walk: its status, Retry-After and other fields. Ledger has its validators.
	Response feedhistory.Response

	// Ledger is what to remember of the feed after the Reading. Store it in the transaction
	// with the entries of this Reading, or of several: what belongs together is the Ledger of
	// the last with the entries of all of them. To have one is cheap; to marshal it takes
	// time for all it remembers, so commit some fifty Readings at a time, or each second.
	Ledger Ledger
}

// Document returns the entries of Added and Changed, with the head section of the feed, for a
// program with a model of its own: togofeed.Document returns it as a gofeed.Feed, and
// compose.Write writes it for another parser, in RSS if an entry was published in RSS, else in
// Atom.
func (r *Reading) Document() (*feedhistory.Document, error) {
	doc, err := r.Ledger.Feed().Document()
	if errors.Is(err, ErrNotFound) {
		doc, err = &feedhistory.Document{URL: r.Ledger.URL()}, nil
	}
	if err != nil {
		return nil, err
	}
	doc.Format = feedhistory.FormatAtom
	for _, record := range slices.Concat(r.Added, r.Changed) {
		e, err := record.Entry()
		if err != nil {
			return nil, err
		}
		if doc.Entries = append(doc.Entries, e); record.Content.Format == feedhistory.FormatRSS {
			doc.Format = feedhistory.FormatRSS
		}
	}
	return doc, nil
}

// Poll polls a feed for a program that keeps entries in tables of its own, where Update
// keeps them in a Store. It does what Update does, and remembers what it has to in a Ledger
// instead; the zero Ledger is that of a feed never read:
//
//	for r, err := range m.Poll(ctx, url, ledger) {
//		if err != nil {
//			return err
//		}
//		// in one transaction: store r.Added and r.Changed, delete r.Deleted, store r.Ledger
//	}
//
// Interrupted or killed anywhere, the next Poll with the stored Ledger reads the
// missing documents, and little else. Leave the loop if you cannot store a Reading: the next Poll,
// with the Ledger before, brings it again. Of two programs at work on one feed, one would
// spoil the other's work: store a Ledger only if it Follows the stored one.
//
// The Mirror needs no Store, keeps no Versions, and erases nothing. The Ledger remembers at
// most a hundred thousand entries of archives, the newest: an older one that comes again is
// Added again. An entry with signatures in its addresses may be Changed by them alone.
//
// The error ends the walk. If there is no subscription document, or it is damaged, it is the
// one of Report.Failure, and the last Reading before it has a Ledger that says when to try
// again, unless it is ErrWaits. If the context has ended, the next Poll reads the
// documents in no Reading before it. If the Ledger is another feed's, or the URL is not
// absolute, there is no Reading. Any other gap is in Ledger.Gaps.
func (m *Mirror) Poll(ctx context.Context, url string, from Ledger) iter.Seq2[*Reading, error] {
	return func(yield func(*Reading, error) bool) {
		s := &shelf{yield: yield, walk: walkID{Walk: rand.Uint64()}}
		if from.kept != nil {
			if known := from.kept.state.URL; known != iri.WithoutFragment(url) {
				yield(nil, fmt.Errorf("mirror: the Ledger is of another feed, %s", iri.Shown(known)))
				return
			}
			f := from.kept.rows()
			f.state = f.state.clone()
			f.state.Ledger.l = from.l.clone() // which Reset may have changed
			s.feeds, s.walk.Began = map[string]*memoryFeed{f.state.URL: f}, from.kept.id.step()
			s.base = f.copied()
		}
		walker := &Mirror{
			Store: s, Client: m.http(), ClientFor: m.ClientFor, Every: m.Every, Versions: -1,
			Revalidate: m.Revalidate, Recheck: m.Recheck, Quota: m.Quota, Now: m.Now,
		}
		report, err := walker.Update(ctx, url)
		if err == nil {
			err = report.Failure
		}
		if err != nil && !s.left {
			yield(nil, err)
		}
	}
}

// NewLedger returns the Ledger of a feed that the program has read by other means: the ETag
// and LastModified of known make the first request conditional. Until the feed changes, the
// Verdict is unknown; then a Poll reads all of it.
func NewLedger(url string, known feedhistory.Known) Ledger {
	f := NewFeed(iri.WithoutFragment(url))
	f.Ledger.l.Known = feedhistory.Known{ETag: known.ETag, LastModified: known.LastModified}
	return (&ledgerFeed{memoryFeed: newMemoryFeed(f), state: f}).ledger()
}

// Follows reports whether a Ledger of a Poll may replace the stored one, old: the walk began
// with old, or old is of an earlier Reading of the same walk. Otherwise another program has
// stored it meanwhile.
func (l Ledger) Follows(old Ledger) bool {
	if l.kept == nil {
		return false
	}
	if old.kept == nil {
		return l.kept.id.Began == walkStep{}
	}
	to, was := l.kept.id, old.kept.id
	return l.kept.state.URL == old.kept.state.URL &&
		(to.Began == was.step() || to.Walk == was.Walk && to.Number > was.Number)
}

// A walkID names a Ledger: the walk it is of, by a random number, and how many Readings the walk
// had then. Began is the Ledger with which the walk began.
type walkID struct {
	Walk   uint64   `json:"walk,omitempty"`
	Number int      `json:"number,omitempty"`
	Began  walkStep `json:"began,omitzero"`
}

// A walkStep is a Ledger in the life of another one.
type walkStep struct {
	Walk   uint64 `json:"walk,omitempty"`
	Number int    `json:"number,omitempty"`
}

func (id walkID) step() walkStep { return walkStep{id.Walk, id.Number} }

// Feed returns the state of the feed, when the Ledger is of a Poll: Verdict, Kind, Title and
// the time of the next poll, for instance. Of the zero Ledger, and of a Store's, it is that
// of a feed never read, without a URL.
func (l Ledger) Feed() *Feed {
	if l.kept == nil {
		return NewFeed("")
	}
	return l.kept.state.clone()
}

// Value implements driver.Valuer: a Ledger is stored as text, its JSON.
func (l Ledger) Value() (driver.Value, error) {
	text, err := l.MarshalJSON()
	return string(text), err
}

// Scan implements sql.Scanner. NULL and an empty text are the zero Ledger.
func (l *Ledger) Scan(value any) error {
	var text []byte
	switch value := value.(type) {
	case nil:
	case string:
		text = []byte(value)
	case []byte:
		text = value
	default:
		return fmt.Errorf("mirror: a %T is no Ledger", value)
	}
	if len(text) == 0 {
		*l = Ledger{}
		return nil
	}
	return l.UnmarshalJSON(text)
}

// A shelf is the Store of a Poll. It has no contents, and each Commit is a Reading.
type shelf struct {
	memory
	yield   func(*Reading, error) bool
	left    bool // the caller has left the loop
	walk    walkID
	base    *memoryFeed    // the feed as it was when the walk began; nil if it was never read
	commits []*shelfCommit // since then
}

// A shelfCommit is a commit, with the posts among its entries.
type shelfCommit struct {
	Commit
	posts map[string]string
}

// errLeft ends a poll whose caller has left.
var errLeft = errors.New("the caller has left the walk")

// Commit implements Store.
func (s *shelf) Commit(ctx context.Context, c *Commit) error {
	if s.left {
		return errLeft
	}
	r := s.reading(c)
	posts := map[string]string{}
	for _, r := range c.Put {
		if iri.Post(r.ID) == "" {
			continue
		}
		if e, err := r.Entry(); err == nil && e.Post() != "" {
			posts[r.ID] = shortKey(e.Post())
		}
	}
	c.Put, c.Touch, c.Versions = bare(c.Put), bare(c.Touch), nil
	c.Keep = 0
	if err := s.memory.Commit(ctx, c); err != nil {
		return err
	}
	f := s.feeds[c.Feed.URL]
	if s.base == nil {
		s.base = newMemoryFeed(f.state)
	}
	kept := &shelfCommit{*c, posts}
	kept.Feed = f.state
	f.finish(kept)
	s.commits = append(s.commits, kept)
	s.walk.Number++
	ledger := &ledgerFeed{memoryFeed: s.base, later: slices.Clip(s.commits), state: f.state, id: s.walk}
	r.Ledger = ledger.ledger()
	if s.left = !s.yield(r, nil); s.left {
		return errLeft
	}
	return nil
}

// reading returns the Reading of a commit.
func (s *shelf) reading(c *Commit) *Reading {
	r := &Reading{Response: c.response}
	stored := s.feeds[c.Feed.URL]
	add := func(to *Record, content bool) {
		was := stored != nil && stored.entries[to.ID].record != nil && stored.entries[to.ID].record.State == Live
		switch {
		case to.State != Live:
			r.Deleted = append(r.Deleted, to)
		case !was:
			r.Added = append(r.Added, to)
		case content:
			r.Changed = append(r.Changed, to)
		}
	}
	for _, to := range c.Put {
		add(to, true)
	}
	for _, to := range c.Touch {
		if to.LastCommit == c.next() {
			add(to, false)
		}
	}
	return r
}

// isPost reports whether an entry is the post of a record, under another ID.
func (s *shelf) isPost(r *Record, e *feedhistory.Entry) bool {
	return s.feeds[r.Feed].posts[r.ID] == shortKey(e.Post())
}

// goneDigest is the beginning of the digest of an entry that is no longer part of the feed:
// if it returns, even unchanged, the caller needs its content.
const goneDigest = "gone:"

// bare returns the records without the texts of their contents, but for digests by which findTwin
// knows an entry.
func bare(records []*Record) []*Record {
	bare := make([]*Record, len(records))
	for i, r := range records {
		r = clone(r)
		if d := strings.TrimPrefix(r.Copy.Digest, goneDigest); r.State != Live && d != "" {
			r.Copy.Digest = goneDigest + d
		}
		c := r.Content
		r.Content = Content{Format: c.Format, WeakID: c.WeakID, Updated: c.Updated, Published: c.Published, Size: c.Size}
		if e, err := (&Record{ID: r.ID, Content: c}).Entry(); err == nil {
			r.Content.Title, r.Content.Link = twinKeys(e)
		}
		bare[i] = r
	}
	return bare
}

// keptLimit is the maximum number of entries that archives have to remember.
const keptLimit = 100_000

// shrink forgets the oldest entries beyond a limit. They are in archives read to their end,
// which polls do not read again unless they change.
func (f *memoryFeed) shrink() {
	if len(f.entries) <= keptLimit {
		return
	}
	var archived []*Record
	for _, e := range f.entries {
		if e.record != nil && e.record.Archived && e.record.State != Erased {
			archived = append(archived, e.record)
		}
	}
	slices.SortFunc(archived, func(a, b *Record) int { return a.Copy.compare(b.Copy) })
	for _, r := range archived[:max(0, len(archived)-keptLimit*9/10)] {
		delete(f.entries, r.ID)
		delete(f.posts, r.ID)
	}
}

// copied returns a copy that later commits do not change.
func (f *memoryFeed) copied() *memoryFeed {
	return &memoryFeed{
		state: f.state.clone(), entries: maps.Clone(f.entries),
		documents: slices.Clone(f.documents), posts: maps.Clone(f.posts),
	}
}

// finish does what a shelf does after a commit.
func (f *memoryFeed) finish(c *shelfCommit) {
	if f.posts == nil {
		f.posts = map[string]string{}
	}
	maps.Copy(f.posts, c.posts)
	f.shrink()
}

// A ledgerFeed is the content of a Poll's Ledger: a feed, and the commits since. So a walk hands
// out a Ledger after each document without copying all before it.
type ledgerFeed struct {
	*memoryFeed
	later []*shelfCommit
	state *Feed // after the commits
	id    walkID
}

// rows returns the feed after the commits, which the caller may change.
func (k *ledgerFeed) rows() *memoryFeed {
	f := k.copied()
	for _, c := range k.later {
		f.apply(&c.Commit)
		f.finish(c)
	}
	return f
}

// ledger returns the Ledger; the zero one of none.
func (k *ledgerFeed) ledger() Ledger {
	if k == nil {
		return Ledger{}
	}
	return Ledger{l: k.state.Ledger.l, kept: k}
}

// A ledgerForm is a Poll's Ledger as it is stored. Its Rows, the JSON of the ledgerFeed, are
// compressed, so there is no U+0000 in it, which some databases refuse.
type ledgerForm struct {
	Commits int64 `json:"commits"`
	walkID
	Rows []byte `json:"rows"`
}

func (k *ledgerFeed) marshal(l ledger) ([]byte, error) {
	f := k.rows()
	f.state = clone(f.state)
	f.state.Ledger = Ledger{l: l}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err == nil {
		err = json.NewEncoder(w).Encode(f.form())
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, err
	}
	return unescaped(ledgerForm{f.state.Commits, k.id, b.Bytes()})
}

// unmarshalFeed reads what marshal has written. It returns nil for the Ledger of a Store.
func unmarshalFeed(text []byte) (*ledgerFeed, error) {
	var form ledgerForm
	if err := json.Unmarshal(text, &form); err != nil || form.Rows == nil {
		return nil, err
	}
	var rows feedForm
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(form.Rows)))
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	var f *memoryFeed
	if err == nil {
		f, err = rows.feed()
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: the rows of a Ledger: %w", err)
	}
	f.state.Commits = form.Commits
	return &ledgerFeed{memoryFeed: f, state: f.state, id: form.walkID}, nil
}
