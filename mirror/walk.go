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
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Reading is a step of a Walk: one document of the feed, or the end of the poll.
type Reading struct {
	// Changes are the entries added or changed, and those no longer part of the feed: see
	// Record.State, Record.Entry and Record.Deletion. For a parser of your own,
	// compose.Write writes them with Feed.Document of the Ledger, as in the example. The
	// State of an entry that was never part of it may be Unseen or Deleted. A later Reading
	// may have one of them again. A Record's JSON has neither its Feed nor its ID: store
	// these besides.
	Changes []*Record

	// Ledger is what to remember of the feed after the Reading. Store it together with the
	// Changes, in place of the Ledger before.
	Ledger Ledger
}

// Walk polls a feed for a program that keeps entries in tables of its own, where Update
// keeps them in a Store. It does what Update does, and remembers what it has to in a Ledger
// instead; the zero Ledger is that of a feed never read:
//
//	for r, err := range m.Walk(ctx, url, ledger) {
//		if err != nil {
//			return err
//		}
//		// in one transaction: store r.Changes, and r.Ledger
//	}
//
// Interrupted or killed anywhere, the next Walk with the stored Ledger reads what is
// missing, and little else. Leave the loop if you cannot store a Reading: the next Walk,
// with the Ledger before, brings it again. Of two programs at work on one feed, one would
// spoil the other's work: store a Ledger only if the stored one's Feed().Commits is one
// less than its own.
//
// The Mirror needs no Store, keeps no Versions, and erases nothing. The Ledger remembers at
// most a hundred thousand entries of archives, the newest: an older one that comes again is
// in Changes again. So may be an entry with signatures in its addresses.
//
// The error ends the walk. If there is no subscription document, or it is damaged, it is the
// one of Report.Failure, and the last Reading before it has a Ledger that says when to try
// again, unless it is ErrWaits. If the context has ended, the next Walk reads the
// documents in no Reading before it. If the Ledger is another feed's, or the URL is not
// absolute, there is no Reading. Any other gap is in Ledger.Gaps.
func (m *Mirror) Walk(ctx context.Context, url string, from Ledger) iter.Seq2[*Reading, error] {
	return func(yield func(*Reading, error) bool) {
		s := &shelf{yield: yield}
		if from.kept != nil {
			if known := from.kept.state.URL; known != iri.WithoutFragment(url) {
				yield(nil, fmt.Errorf("mirror: the Ledger is of another feed, %s", iri.Shown(known)))
				return
			}
			f := from.kept.copied()
			f.state.Ledger.l = from.l.clone() // which Reset may have changed
			s.feeds = map[string]*memoryFeed{f.state.URL: f}
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

// Feed returns the state of the feed, when the Ledger is of a Walk: Verdict, Kind, Title and
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

// A shelf is the Store of a Walk. It has no contents, and each Commit is a Reading.
type shelf struct {
	memory
	yield func(*Reading, error) bool
	left  bool // the caller has left the loop
}

// errLeft ends a poll whose caller has left.
var errLeft = errors.New("the caller has left the walk")

// Commit implements Store.
func (s *shelf) Commit(ctx context.Context, c *Commit) error {
	if s.left {
		return errLeft
	}
	changes := slices.Clone(c.Put)
	for _, r := range c.Touch {
		if r.LastCommit == c.next() {
			changes = append(changes, r)
		}
	}
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
	if f.posts == nil {
		f.posts = map[string]string{}
	}
	maps.Copy(f.posts, posts)
	f.shrink()
	kept := ledgerFeed{f.copied()}
	if s.left = !s.yield(&Reading{Changes: changes, Ledger: kept.ledger()}, nil); s.left {
		return errLeft
	}
	return nil
}

// isPost reports whether an entry is the post of a record, under another ID.
func (s *shelf) isPost(r *Record, e *feedhistory.Entry) bool {
	return s.feeds[r.Feed].posts[r.ID] == shortKey(e.Post())
}

// goneDigest is the beginning of the digest of an entry that is no longer part of the feed:
// if it returns, even unchanged, the caller needs its content.
const goneDigest = "gone:"

// bare returns the records without the texts of their contents.
func bare(records []*Record) []*Record {
	bare := make([]*Record, len(records))
	for i, r := range records {
		r = clone(r)
		if d := strings.TrimPrefix(r.Copy.Digest, goneDigest); r.State != Live && d != "" {
			r.Copy.Digest = goneDigest + d
		}
		c := r.Content
		r.Content = Content{Format: c.Format, WeakID: c.WeakID, Updated: c.Updated, Published: c.Published, Size: c.Size}
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

// A ledgerFeed is the content of a Walk's Ledger.
type ledgerFeed struct{ *memoryFeed }

// ledger returns the Ledger; the zero one of none.
func (k *ledgerFeed) ledger() Ledger {
	if k == nil {
		return Ledger{}
	}
	return Ledger{l: k.state.Ledger.l, kept: k}
}

// A ledgerForm is a Walk's Ledger as it is stored. Its Rows, the JSON of the ledgerFeed, are
// compressed, so there is no U+0000 in it, which some databases refuse.
type ledgerForm struct {
	Commits int64  `json:"commits"`
	Rows    []byte `json:"rows"`
}

func (k *ledgerFeed) marshal(l ledger) ([]byte, error) {
	f := clone(k.memoryFeed)
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
	return unescaped(ledgerForm{f.state.Commits, b.Bytes()})
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
	return &ledgerFeed{f}, nil
}
