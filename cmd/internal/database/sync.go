package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A Sync is a sync in progress.
type Sync struct {
	Poller   *mirror.Poller
	Backfill *backfill.Backfill // nil without --backfill and --backfill-archive
	Report   *Report
	Strays   strays
	Every    bool // do not end; poll each feed when it is due
	Public   bool // the feeds named by the user are public, even if their addresses seem to have secrets
}

// Run polls the queued feeds. With every, it polls each feed when it is due, until the
// context ends. It returns an error of the store or of the output.
func (s *Sync) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.Poller.Polled = func(before *mirror.Feed, r *mirror.Report, err error) {
		if err := s.end(ctx, outcomeOf(before, r, err)); err != nil {
			cancel(&terminal.OutputError{Err: err})
		}
	}
	var err error
	if s.Every {
		s.Poller.Run(ctx)
	} else {
		err = s.Poller.Drain(ctx)
	}
	if output, ok := errors.AsType[*terminal.OutputError](context.Cause(ctx)); ok {
		return output.Err
	}
	return err
}

// Subscribe adds the given feeds to the store before the first poll. An interrupt ends it;
// the error says how many feeds are still to be added.
func (s *Sync) Subscribe(ctx context.Context, given []readers.Outline, bar *terminal.Bar) error {
	for i, feed := range given {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %d of %s added; run the same command again to continue", terminal.ErrInterrupted, i, terminal.Count(len(given), "feed", "feeds"))
		}
		bar.Step()
		isNew, err := Subscribe(context.WithoutCancel(ctx), s.Poller.Mirror.Store, feed)
		if err != nil {
			return err
		}
		if isNew && s.Strays.Named[feed.URL] {
			s.Strays.add(feed.URL, true)
		}
		if isNew && mirror.NewFeed(feed.URL).Private && !(s.Public && s.Strays.Named[feed.URL]) {
			s.Report.Tell(show.Address(feed.URL) + ": private, because its address seems to have a secret; sync --public URL shows it to everybody")
		}
	}
	return nil
}

// Subscriptions reads a subscription list, which must have a feed.
func Subscriptions(w *command.World, file string) ([]readers.Outline, error) {
	in, err := w.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	feeds, err := readers.ReadOPML(in)
	if folders, ok := errors.AsType[*readers.FoldersError](err); ok {
		w.Say(file + ": " + folders.Error())
		err = nil
	}
	if err == nil && len(feeds) == 0 {
		err = errors.New("there is no feed in it")
	}
	return feeds, err
}

// Subscribe adds a feed to the store, and reports whether it is new. A feed in the store
// gets the title and the folders of a list.
func Subscribe(ctx context.Context, store mirror.Store, feed readers.Outline) (isNew bool, err error) {
	f := mirror.NewFeed(feed.URL)
	feed.Apply(f)
	isNew, err = mirror.Subscribe(ctx, store, f)
	if err == nil && !isNew {
		err = Amend(ctx, store, feed.URL, feed.Apply)
	}
	return isNew, err
}

// end reports the outcome of a poll, and replaces or removes an address other than a
// feed's. It returns an error of the output, of the store or of the keyring.
func (s *Sync) end(ctx context.Context, o Outcome) error {
	if o.kind == busy || o.kind == removed {
		if _, err := s.Poller.Mirror.Store.Feed(context.WithoutCancel(ctx), o.URL); errors.Is(err, mirror.ErrNotFound) {
			o.kind = removed
			s.Report.Tell(show.Address(o.URL) + ": removed from the mirror meanwhile")
		}
	}
	feeds, stray := s.Strays.of(o.URL)
	if o.stray = stray; !stray {
		if err := s.Report.tell(o); err != nil {
			return errors.Join(err, s.passCredentials(&o))
		}
		return errors.Join(s.hint(ctx, o), s.passCredentials(&o))
	}
	if err := s.forget(ctx, o.URL, feeds); err != nil || len(feeds) > 0 {
		return err
	}
	return s.Report.tell(o)
}

// hint collects what may be done for a feed that does not declare its history. It returns an
// error of the store.
func (s *Sync) hint(ctx context.Context, o Outcome) error {
	if o.kind != polled || o.Report.Feed.Kind != feedhistory.KindPlain || s.Every {
		return nil
	}
	f, err := s.Poller.Mirror.Store.Feed(ctx, o.URL)
	if err == nil {
		s.Report.older(command.OlderHintOf(f))
	}
	return err
}

// Poll polls a feed, and recovers entries to which it does not link.
func (s *Sync) Poll(ctx context.Context, before *mirror.Feed) (*mirror.Report, error) {
	changes, err := s.Poller.Mirror.Update(ctx, before.URL)
	if err == nil && changes.Failure != nil && before.Ledger.URL() == "" {
		s.Strays.look(ctx, s.Poller.Mirror, before.URL, changes.Failure)
	}
	if err != nil || changes.Failure != nil || s.Backfill == nil || changes.Feed.Alias != "" {
		return changes, err
	}
	b, err := s.backfillOf(ctx, changes.Feed.URL)
	if err != nil {
		return changes, err
	}
	more, err := b.Keep(ctx, s.Poller.Mirror, changes.Feed.URL)
	if more == nil {
		return changes, err
	}
	more.Added += changes.Added
	more.Changed += changes.Changed
	more.Deleted += changes.Deleted
	more.Documents += changes.Documents
	more.Moved = changes.Moved
	return more, err
}

// backfillOf returns how to recover entries of a feed: with its own credentials and, if it
// is private, without asking web archives, which would learn its address.
func (s *Sync) backfillOf(ctx context.Context, feed string) (*backfill.Backfill, error) {
	b := *s.Backfill
	if own := ownClient(s.Poller.Mirror, feed); own != nil {
		b.HTTP = own
	}
	state, err := s.Poller.Mirror.Store.Feed(ctx, feed)
	private := err != nil || state.Private
	if s.Strays.Keys != nil {
		keys, keysErr := s.Strays.Keys.Load()
		private, err = private || keys[feed] != nil, errors.Join(err, keysErr)
	}
	if private {
		b.Methods = command.WithoutArchives(b.Methods)
	}
	return &b, err
}

// Polling are the flags for how feeds are polled, and how much of each is stored.
type Polling struct {
	Interval   time.Duration `default:"1h" least:"1s" placeholder:"TIME" help:"Time between two polls of a feed, unless the feed asks for a longer one (default: ${default})."`
	Parallel   int           `default:"8" least:"1" placeholder:"N" help:"Poll N feeds at the same time, each on another host (default: ${default})."`
	Revalidate bool          `help:"Request every archive document again, to see whether it has changed."`
	Quotas
}

// Quotas are the flags for how much of each feed is stored. Zero means a mirror's default.
type Quotas struct {
	Quota        terminal.Size `default:"2GiB" least:"1" placeholder:"SIZE" help:"Store at most this much of a feed, including earlier versions (default: ${default})."`
	QuotaEntries int64         `default:"5000000" least:"1" placeholder:"N" help:"Store at most N entries of a feed (default: ${default})."`
}

// Limits returns the quota of a mirror.
func (q *Quotas) Limits() mirror.Quota {
	return mirror.Quota{Bytes: int64(q.Quota), Entries: q.QuotaEntries}
}

// Poller returns a poller with the settings of the flags.
func (f *Polling) Poller(store mirror.Store, client *feedhistory.Client) *mirror.Poller {
	return &mirror.Poller{
		Mirror: &mirror.Mirror{
			Store: store, Client: client, Every: f.Interval, Revalidate: f.Revalidate, Quota: f.Limits(),
		},
		Parallel: f.Parallel,
	}
}

// strays are the addresses named by the command line and new in the database. If one of
// them turns out not to be the address of a feed, sync removes it again; if it is the
// address of a web page, the page's feed replaces it.
type strays struct {
	Named map[string]bool  // addresses on the command line
	Keys  *command.Keyring // the feeds' credentials; nil if there are none

	mu      sync.Mutex
	fresh   map[string]bool              // new addresses, and whether to look for feeds on their pages
	found   map[string]feedhistory.Links // addresses of no feed, with the feeds of the web pages there, or their other formats
	formats map[string]feedhistory.Links // other formats of the feeds named by pages
	dead    map[string]error             // why such a feed cannot be read
}

// add records an address new in the database.
func (s *strays) add(url string, asPage bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh == nil {
		s.fresh, s.found = map[string]bool{}, map[string]feedhistory.Links{}
		s.formats, s.dead = map[string]feedhistory.Links{}, map[string]error{}
	}
	s.fresh[url] = asPage
}

// look finds out whether a poll of a new address failed because there is no feed and, if
// there is a web page, which feeds the page has.
func (s *strays) look(ctx context.Context, m *mirror.Mirror, url string, failure error) {
	s.mu.Lock()
	asPage, fresh := s.fresh[url]
	feeds := s.formats[url]
	s.mu.Unlock()
	if !fresh || !command.IsNoFeed(failure) {
		return
	}
	var formats feedhistory.Links
	switch {
	case asPage:
		if feeds = command.FeedsOf(ctx, cmp.Or(ownClient(m, url), m.Client), url, failure); len(feeds) > 0 {
			formats = command.FormatsOf(failure, feeds[0].Href)
		}
	case len(feeds) > 0:
		feeds, formats = feeds[:1], feeds[1:]
	}
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found[url] = feeds; len(feeds) > 0 {
		s.formats[terminal.FeedName(feeds[0].Href)] = formats
	}
	if !asPage {
		s.dead[url] = failure
	}
}

// tell says which feed replaces an address.
func (s *strays) tell(r *Report, url string, feeds feedhistory.Links) {
	s.mu.Lock()
	err := s.dead[url]
	s.mu.Unlock()
	if err != nil {
		r.Tell(command.OtherFormat(url, feeds[0], err))
	} else {
		r.found(url, feeds)
	}
}

// of returns the findings of look: whether an address is not a feed's, and the feeds of
// the web page at the address.
func (s *strays) of(url string) (feeds feedhistory.Links, stray bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	feeds, stray = s.found[url]
	return feeds, stray
}

// ownClient returns a mirror's client for one feed only; nil if there is none.
func ownClient(m *mirror.Mirror, feed string) *feedhistory.Client {
	if m.ClientFor == nil {
		return nil
	}
	return m.ClientFor(feed)
}

// passCredentials copies the credentials of a feed to the other feed it has become, if the latter
// has none, and queues the other feed again: without credentials, its poll may have
// failed. It returns an error of the keyring.
func (s *Sync) passCredentials(o *Outcome) error {
	if o.kind != polled || o.Report.Feed.Alias == "" || s.Strays.Keys == nil {
		return nil
	}
	passed, err := s.Strays.Keys.Pass(o.URL, o.Report.Feed.Alias)
	if passed {
		s.Poller.Add(&mirror.Feed{URL: o.Report.Feed.Alias})
	}
	return err
}

// forget removes an address other than a feed's from the store, and queues the feed of the
// web page at the address instead, if there is one. It returns an error of the store or of
// the keyring.
func (s *Sync) forget(ctx context.Context, url string, feeds feedhistory.Links) error {
	ctx = context.WithoutCancel(ctx)
	store := s.Poller.Mirror.Store
	feed := ""
	if len(feeds) > 0 {
		feed = terminal.FeedName(feeds[0].Href)
	}
	if s.Strays.Keys != nil {
		if err := s.Strays.Keys.Replace(url, feed); err != nil {
			return err
		}
	}
	if err := store.Remove(ctx, url); err != nil && !errors.Is(err, mirror.ErrNotFound) {
		return err
	}
	if feed == "" {
		return nil
	}
	s.Strays.tell(s.Report, url, feeds)
	isNew, err := Subscribe(ctx, store, readers.Outline{URL: feed})
	if err != nil {
		return err
	}
	if isNew {
		s.Strays.add(feed, false) // false, because two pages could name each other
	}
	if !s.Report.hasTold(feed) {
		s.Poller.Add(&mirror.Feed{URL: feed})
	}
	return nil
}

// Privacy are the flags for who may read the feeds named by URL.
type Privacy struct {
	Private bool `help:"Keep the feeds named by URL private, because their address is a secret: as with credentials, only serve --private shows them, and no web archive is asked about them."`
	Public  bool `help:"Show the feeds named by URL to everybody, although their address seems to have a secret (?token=…): without --public, such a feed is private."`
}

// Check refuses incompatible flags, and flags without the URLs they are for.
func (f *Privacy) Check(urls []string) error {
	switch {
	case f.Private && len(urls) == 0:
		return errors.New("--private is for the feeds that URL names")
	case f.Public && len(urls) == 0:
		return errors.New("--public is for the feeds that URL names")
	case f.Public && f.Private:
		return errors.New("--public and --private exclude each other")
	}
	return nil
}

// Hide marks the feeds as private, if the flags ask for it.
func (f *Privacy) Hide(keys *command.Keyring, urls []string) error {
	if !f.Private {
		return nil
	}
	private := map[string]http.Header{}
	for _, url := range urls {
		private[terminal.FeedName(url)] = http.Header{}
	}
	return keys.Set(private)
}

// Show marks the feeds as public, if the flags ask for it.
func (f *Privacy) Show(ctx context.Context, store mirror.Store, urls []string) error {
	if !f.Public {
		return nil
	}
	for _, url := range urls {
		err := Amend(context.WithoutCancel(ctx), store, terminal.FeedName(url), func(f *mirror.Feed) bool {
			changes := f.Private
			f.Private = false
			return changes
		})
		if err != nil {
			return err
		}
	}
	return nil
}
