package readers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// The states in which entries can be handed over.
const (
	Read   = "read"
	Unread = "unread"
)

// An Outcome is the fate of an entry.
type Outcome string

// The outcomes.
const (
	Shown   Outcome = "shown"   // the feed still shows it, so the reader gets it there
	Had     Outcome = "had"     // the reader has it already
	Added   Outcome = "added"   // it was handed over; in a dry run, it would be
	Removed Outcome = "removed" // the user has deleted it in the reader, and it stays deleted
	Refused Outcome = "refused" // the reader does not accept it
)

// A Handover hands entries of mirrored feeds over to Miniflux.
type Handover struct {
	Reader *Miniflux
	Store  mirror.Store
	Client *feedhistory.Client // reads the feed itself

	Status  string // Read or Unread; "" means Read
	Starred bool   // whether to star the entries; Miniflux never deletes starred ones
	DryRun  bool   // whether to change nothing in the reader

	// Through is the Base of a history server with the Store's feeds, within the
	// reader's reach. If set, the reader reads the history there,
	// and keeps its own hashes and enclosures; whatever it does not find there
	// is handed over one by one. "" means one by one.
	Through string

	// Doubt, if not nil, is called if the reader could not read the history at
	// the server.
	Doubt func(feed string, err error)

	// Gone says the feed no longer answers, so it shows nothing. Otherwise a feed that
	// cannot be read is an error, unless it answers with 410.
	Gone bool

	// Each, if not nil, is called after every entry.
	Each func()

	before map[int64]bool // the entries the reader had before it read the server's documents
}

// A Report is the result of a handover, in numbers of entries.
type Report struct {
	Feed    string              `json:"url"`     // the URL of the mirrored feed
	ID      int64               `json:"feed_id"` // the reader's number of the feed
	Verdict feedhistory.Verdict `json:"verdict"` // the mirror's, on its own copy of the history
	DryRun  bool                `json:"dry_run"`
	Entries int                 `json:"entries"` // entries in the mirror
	Shown   int                 `json:"shown"`
	Had     int                 `json:"had"`
	Added   int                 `json:"added"`
	Removed int                 `json:"removed"`
	Refused []Refusal           `json:"refused"`
	ToAdd   []show.Entry        `json:"to_add,omitempty"` // the entries to be added; only in a dry run
}

// A Refusal is an entry the reader does not accept.
type Refusal struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// count counts an entry with its outcome.
func (r *Report) count(record *mirror.Record, o Outcome, err error) {
	r.Entries++
	switch o {
	case Shown:
		r.Shown++
	case Had:
		r.Had++
	case Added:
		r.Added++
		if e, err := record.Entry(); r.DryRun && err == nil {
			r.ToAdd = append(r.ToAdd, show.NewEntry(e))
		}
	case Removed:
		r.Removed++
	case Refused:
		r.Refused = append(r.Refused, Refusal{record.ID, err.Error()})
	}
}

// mostFailures is the number of consecutive server errors that end the run.
const mostFailures = 3

// Run hands over the entries of one feed, which the reader knows as to. The
// report is complete even if there is an error. Another run continues
// from there, because it asks the reader for its entries.
func (h *Handover) Run(ctx context.Context, feed string, to ReaderFeed) (*Report, error) {
	if h.Reader == nil || h.Store == nil {
		return nil, errors.New("handover: Handover.Reader and Handover.Store must be set")
	}
	f, err := h.Store.Feed(ctx, feed)
	if err != nil {
		return nil, err
	}
	report := &Report{Feed: f.URL, ID: to.ID, Verdict: f.Verdict, DryRun: h.DryRun, Refused: []Refusal{}}
	if h.Through != "" && !h.DryRun {
		if h.before, err = h.ids(ctx, to.ID); err != nil {
			return report, err
		}
		if err := h.through(ctx, f, to); ctx.Err() != nil {
			return report, errors.Join(ctx.Err(), err)
		} else if err != nil && h.Doubt != nil {
			h.Doubt(f.URL, err)
		}
	}
	known, err := h.known(ctx, f, to)
	if err != nil {
		return report, err
	}
	failures := 0
	for r, err := range h.Store.Entries(ctx, mirror.Query{Feed: f.URL, Reverse: true}) {
		if err != nil {
			return report, err
		}
		o := Refused
		e, refusal := r.Entry()
		if refusal == nil {
			o, refusal = h.one(ctx, f, to, r, e, known)
			if err := fatal(ctx, refusal, &failures); err != nil {
				return report, err
			}
		}
		if report.count(r, o, refusal); h.Each != nil {
			h.Each()
		}
	}
	return report, nil
}

// known returns the entries the reader has, or will find in the feed.
func (h *Handover) known(ctx context.Context, f *mirror.Feed, to ReaderFeed) (*knownEntries, error) {
	k := newKnown()
	for r, err := range h.Store.Entries(ctx, mirror.Query{Feed: f.URL}) {
		if err != nil {
			return nil, err
		}
		k.count(r)
	}
	if err := h.shown(ctx, to, k); err != nil {
		return nil, err
	}
	for e, err := range h.Reader.entries(ctx, to.ID, 0) {
		if err != nil {
			return nil, err
		}
		found := traces{hashes: []string{e.Hash}, url: e.URL, title: e.Title, at: e.Published}
		if k.reader.add(found); h.before != nil && !h.before[e.ID] {
			k.carried.add(found)
		}
	}
	return k, nil
}

// ids returns the numbers of the entries the reader has of a feed.
func (h *Handover) ids(ctx context.Context, feed int64) (map[int64]bool, error) {
	ids := map[int64]bool{}
	for e, err := range h.Reader.entries(ctx, feed, 0) {
		if err != nil {
			return nil, err
		}
		ids[e.ID] = true
	}
	return ids, nil
}

// shown reads the document the reader polls.
func (h *Handover) shown(ctx context.Context, to ReaderFeed, k *knownEntries) error {
	if h.Gone {
		return nil
	}
	doc, err := h.Client.Get(ctx, to.FeedURL)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, &feedhistory.FetchError{Status: http.StatusGone}) {
		return nil
	}
	if err != nil {
		return &UnreadableError{to.FeedURL, err}
	}
	for _, e := range doc.Entries {
		k.shown.add(tracesOf(e))
	}
	return nil
}

// An UnreadableError says the feed could not be read, so nobody knows which
// entries the reader will find there by itself. See Handover.Gone.
type UnreadableError struct {
	URL string
	Err error
}

// Error names the feed and the cause.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the feed %s could not be read: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// one hands over one entry, if necessary. The error is that of a Refused entry.
func (h *Handover) one(ctx context.Context, f *mirror.Feed, to ReaderFeed, r *mirror.Record, e *feedhistory.Entry, k *knownEntries) (Outcome, error) {
	t := tracesOf(e)
	switch {
	case k.has(k.shown, t):
		return Shown, nil
	case k.has(k.carried, t):
		return Added, nil
	case k.has(k.reader, t):
		return Had, nil
	case h.DryRun:
		return Added, nil
	}
	entry := articleOf(r, e, siteOf(f)).miniflux()
	entry.Status, entry.Starred = cmp.Or(h.Status, Read), h.Starred
	o, err := h.Reader.importEntry(ctx, to.ID, entry)
	if err == nil {
		k.reader.add(t) // the store may yield the entry again if the feed changes meanwhile
	}
	return o, err
}

// fatal returns the error if it ends the run. An answer of the reader about a
// single entry does not.
func fatal(ctx context.Context, err error, failures *int) error {
	answer, ok := errors.AsType[*ServerError](err)
	switch {
	case err == nil:
		*failures = 0
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case ok && isAboutEntry(answer):
		*failures = 0
		return nil
	case ok && answer.Status >= 500:
		if *failures++; *failures < mostFailures {
			return nil
		}
	}
	return err
}

// siteOf returns the address of a feed's website, or of the feed if it names
// none.
func siteOf(f *mirror.Feed) string {
	if head, err := f.Document(); err == nil {
		if site, ok := head.Links.Rel("alternate"); ok && isWeb(site.Href) {
			return site.Href
		}
	}
	return f.URL
}

// ErrNotSubscribed says the user of the reader is not subscribed to a
// feed.
var ErrNotSubscribed = errors.New("the reader is not subscribed to this feed")

// Match finds a mirrored feed among those of a reader, by its addresses. If
// there is none, the error matches ErrNotSubscribed. If there are several, the
// error names two.
func Match(f *mirror.Feed, feeds []ReaderFeed) (ReaderFeed, error) {
	for _, url := range []string{f.URL, f.Address, f.Ledger.URL()} {
		for _, feed := range feeds {
			if url != "" && feed.FeedURL == url {
				return feed, nil
			}
		}
	}
	var found []ReaderFeed
	for _, feed := range feeds {
		for _, url := range []string{f.URL, f.Address, f.Ledger.URL()} {
			if url != "" && addressKey(feed.FeedURL) == addressKey(url) {
				found = append(found, feed)
				break
			}
		}
	}
	switch len(found) {
	case 0:
		return ReaderFeed{}, ErrNotSubscribed
	case 1:
		return found[0], nil
	}
	return ReaderFeed{}, fmt.Errorf("the reader is subscribed to this feed more than once: %s and %s", found[0].FeedURL, found[1].FeedURL)
}

// The traces of an entry identify it in a reader, which keeps hashes
// instead of ids.
type traces struct {
	hashes []string
	url    string
	title  string
	at     time.Time
}

// tracesOf returns the traces of an entry in Miniflux: the SHA-256 of
// its id if Miniflux has read it in the feed, or of its link if it has no id;
// the FNV-128a of its id if it was handed over.
func tracesOf(e *feedhistory.Entry) traces {
	t := traces{url: linkOf(e), title: e.Title().Plain(), at: e.Time(), hashes: []string{importHash(e.ID)}}
	parsed := []string{e.ID, strings.TrimSpace(e.ID)}
	if e.WeakID {
		parsed = []string{t.url}
	}
	for _, id := range parsed {
		if id != "" {
			sum := sha256.Sum256([]byte(id))
			t.hashes = append(t.hashes, hex.EncodeToString(sum[:]))
		}
	}
	return t
}

// importHash returns Miniflux's hash of the external_id of an imported entry.
func importHash(id string) string {
	h := fnv.New128a()
	h.Write([]byte(id))
	return hex.EncodeToString(h.Sum(nil))
}

// A moment is a title and a time, to the second. It can identify an entry whose
// address has changed.
type moment struct {
	title string
	at    int64
}

func (t *traces) moment() (m moment, ok bool) {
	m = moment{strings.Join(strings.Fields(t.title), " "), t.at.Unix()}
	return m, m.title != "" && !t.at.IsZero()
}

// A traceList has the traces of all entries in one place.
type traceList struct {
	hashes  map[string]bool
	urls    map[string][]moment // the entries with each address
	moments map[moment]bool
}

func newTraceList() *traceList {
	return &traceList{map[string]bool{}, map[string][]moment{}, map[moment]bool{}}
}

func (l *traceList) add(t traces) {
	for _, hash := range t.hashes {
		l.hashes[hash] = true
	}
	m, ok := t.moment()
	if u := addressKey(t.url); u != "" {
		l.urls[u] = append(l.urls[u], m)
	}
	if ok {
		l.moments[m] = true
	}
}

// knownEntries are the entries not to be handed over. If ids do not tell whether two
// entries are the same, their address does, if only one entry of the mirror has it, and
// so do title and time together; otherwise all three must agree.
type knownEntries struct {
	shown, reader *traceList
	carried       *traceList     // entries the reader has found at a history server
	urls          map[string]int // how many entries of the mirror have each address
	moments       map[moment]int
}

func newKnown() *knownEntries {
	return &knownEntries{
		shown: newTraceList(), reader: newTraceList(), carried: newTraceList(),
		urls: map[string]int{}, moments: map[moment]int{},
	}
}

// count counts an entry of the mirror.
func (k *knownEntries) count(r *mirror.Record) {
	t := traces{url: r.Content.Link, title: r.Content.Title, at: r.Content.Published}
	if t.at.IsZero() {
		t.at = r.Content.Updated
	}
	if u := addressKey(t.url); u != "" {
		k.urls[u]++
	}
	if m, ok := t.moment(); ok {
		k.moments[m]++
	}
}

func (k *knownEntries) has(l *traceList, t traces) bool {
	if slices.ContainsFunc(t.hashes, func(hash string) bool { return l.hashes[hash] }) {
		return true
	}
	u := addressKey(t.url)
	same := l.urls[u]
	m, ok := t.moment()
	switch {
	case u != "" && len(same) > 0 && (k.urls[u] == 1 || slices.Contains(same, m)):
		return true
	case ok && k.moments[m] == 1:
		return l.moments[m]
	}
	return false
}

// addressKey returns a URL without the parts readers change: the scheme, the
// case of the host, a final slash, and parameters for tracking.
func addressKey(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	var query []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		if part != "" && !strings.HasPrefix(strings.ToLower(part), "utm_") {
			query = append(query, part)
		}
	}
	text := strings.ToLower(u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
	if len(query) > 0 {
		text += "?" + strings.Join(query, "&")
	}
	if u.Fragment != "" {
		text += "#" + u.EscapedFragment()
	}
	return text
}

// linkOf returns where an entry can be read: its alternate link, a URL as an id, or an
// enclosure; "" if there is none.
func linkOf(e *feedhistory.Entry) string {
	if link, ok := e.Links.Rel("alternate"); ok && link.Href != "" {
		return link.Href
	}
	if !e.WeakID && isWeb(e.ID) {
		return e.ID
	}
	if link, ok := e.Links.Rel("enclosure"); ok {
		return link.Href
	}
	return ""
}

// A handover through a history server leaves no trace in the reader: the
// subscription leads to the documents of the server for a moment, so the reader
// finds the entries by itself, with its own hashes, enclosures and all.

// The size of documents: Miniflux refuses those of more than 15 MB.
const mostAccepted = 14_000_000

// restoreTime bounds the requests for putting the subscription's address back.
const restoreTime = 2 * time.Minute

// through makes the reader read a feed's documents at a history server. It
// returns an error if the reader has not read all of them; it has read some,
// perhaps.
func (h *Handover) through(ctx context.Context, f *mirror.Feed, to ReaderFeed) (err error) {
	documents, err := h.documents(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.restore(ctx, to)) }()
	for _, document := range documents {
		if err := h.Reader.point(ctx, to.ID, document); err != nil {
			return err
		}
		if err := h.Reader.refresh(ctx, to.ID); err != nil {
			return fmt.Errorf("the reader cannot read %s: %w", document, err)
		}
	}
	return nil
}

// documents returns the addresses of the documents with a feed's entries.
func (h *Handover) documents(ctx context.Context, f *mirror.Feed) ([]string, error) {
	server := &republish.Handler{Store: h.Store, Base: h.Through, Private: true}
	plan, err := server.Slices(ctx, f, mostAccepted)
	if err != nil {
		return nil, err
	}
	at := strings.TrimSuffix(h.Through, "/") + "/feeds/" + republish.Name(f.URL)
	if plan.Bytes <= mostAccepted {
		return []string{at + "/complete.atom"}, nil
	}
	var all []string
	for _, slice := range plan.Slices {
		all = append(all, at+"/slice.atom?"+slice.Query())
	}
	return all, nil
}

// restore puts the address of a subscription back, and gives the new
// entries the asked status, even if the context has ended.
func (h *Handover) restore(ctx context.Context, to ReaderFeed) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
	defer cancel()
	if err := h.Reader.point(ctx, to.ID, to.FeedURL); err != nil {
		return fmt.Errorf("the subscription's address could not be put back: set it to %s in the reader: %w", to.FeedURL, err)
	}
	if !h.Gone {
		_ = h.Reader.refresh(ctx, to.ID) // the reader does this by itself, later
	}
	after, err := h.ids(ctx, to.ID)
	if err != nil {
		return err
	}
	var fresh []int64
	for id := range after {
		if !h.before[id] {
			fresh = append(fresh, id)
		}
	}
	slices.Sort(fresh)
	if cmp.Or(h.Status, Read) == Read {
		err = h.Reader.setStatus(ctx, fresh, Read)
	}
	for _, id := range fresh {
		if h.Starred && err == nil {
			err = h.Reader.star(ctx, id)
		}
	}
	return err
}

// AtServer returns the subscription of a feed whose address was not put back,
// because a handover through a server was killed. Its FeedURL is the feed's own.
func AtServer(f *mirror.Feed, server string, feeds []ReaderFeed) (ReaderFeed, bool) {
	at := strings.TrimSuffix(server, "/") + "/feeds/" + republish.Name(f.URL) + "/"
	for _, feed := range feeds {
		if server != "" && strings.HasPrefix(feed.FeedURL, at) {
			if feed.FeedURL = f.URL; f.Address != "" {
				feed.FeedURL = f.Address
			}
			return feed, true
		}
	}
	return ReaderFeed{}, false
}

// point changes the address of a subscription.
func (m *Miniflux) point(ctx context.Context, feed int64, url string) error {
	_, err := m.call(ctx, http.MethodPut, fmt.Sprintf("feeds/%d", feed), nil, map[string]string{"feed_url": url}, nil)
	return err
}

// refresh makes the reader poll a feed now.
func (m *Miniflux) refresh(ctx context.Context, feed int64) error {
	path := fmt.Sprintf("feeds/%d", feed)
	if _, err := m.call(ctx, http.MethodPut, path+"/refresh", nil, nil, nil); err != nil {
		return err
	}
	var state struct {
		Errors  int    `json:"parsing_error_count"`
		Message string `json:"parsing_error_message"`
	}
	if _, err := m.call(ctx, http.MethodGet, path, nil, nil, &state); err != nil {
		return err
	}
	if state.Errors > 0 && state.Message != "" {
		return errors.New(state.Message)
	}
	return nil
}

func (m *Miniflux) setStatus(ctx context.Context, ids []int64, status string) error {
	for some := range slices.Chunk(ids, atOnce) {
		if _, err := m.call(ctx, http.MethodPut, "entries", nil, map[string]any{"entry_ids": some, "status": status}, nil); err != nil {
			return err
		}
	}
	return nil
}

// star stars an entry, unless it is starred.
func (m *Miniflux) star(ctx context.Context, id int64) error {
	path := fmt.Sprintf("entries/%d", id)
	var entry struct{ Starred bool }
	if _, err := m.call(ctx, http.MethodGet, path, nil, nil, &entry); err != nil || entry.Starred {
		return err
	}
	_, err := m.call(ctx, http.MethodPut, path+"/bookmark", nil, nil, nil)
	return err
}
