package mirror

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"iter"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Feed is the state of a mirrored feed. Its entries and documents are in the
// Store.
type Feed struct {
	URL     string `json:"url"` // the subscribed URL, which names the feed in the store
	Commits int64  `json:"-"`   // the number of commits to it; zero means the feed is not stored

	// Address is the URL to request the feed from: the target of permanent
	// redirects, or an archive's subscription document (5005#13). "" means URL.
	Address string `json:"address,omitempty"`

	// Lost is the Address withdrawn by the publisher (410) while URL did not answer; ""
	// means none. The next answer of URL counts if it is the same feed.
	Lost string `json:"lost,omitempty"`

	// Alias is the URL of the mirrored feed this one has become, "" for none. An alias
	// permanently redirects there, is no longer due, and keeps its entries.
	Alias string `json:"alias,omitempty"`

	// Private says whether only those who have its credentials, or know its secret URL, may
	// read the feed. A Mirror does not change it; set it in the Store when you subscribe.
	Private bool `json:"private,omitempty"`

	// Named is the subscriber's own title of the feed; "" means Title. Folders are the
	// folders in which the subscriber keeps the feed, each as a path from the outermost
	// one. A Mirror does not change them.
	Named   string     `json:"named,omitempty"`
	Folders [][]string `json:"folders,omitempty"`

	Title   string              `json:"title,omitempty"`
	Kind    feedhistory.Kind    `json:"kind"`
	Verdict feedhistory.Verdict `json:"verdict"` // the verdict on the mirror; partial until a document was read

	// Head is the head section of the subscription document, as an Atom
	// document without entries; "" if none was read. See Feed.Document.
	Head string `json:"head,omitempty"`

	Entries   int64 `json:"entries"`   // the number of live entries
	Deleted   int64 `json:"deleted"`   // the number of entries once live, but no longer
	Documents int64 `json:"documents"` // the number of archive documents processed

	Polls    int64     `json:"polls"`              // the number of polls begun, a Keep included
	Polled   time.Time `json:"polled,omitzero"`    // when the last one began
	Next     time.Time `json:"next,omitzero"`      // when the next one is welcome; zero means at any time. See Due
	Changed  time.Time `json:"changed,omitzero"`   // when an entry last was added, changed or deleted
	Failures int       `json:"failures,omitempty"` // the number of consecutive polls without a subscription document
	Error    string    `json:"error,omitempty"`    // why the last poll brought none; "" if it did
	Gone     bool      `json:"gone,omitempty"`     // whether the publisher has withdrawn the feed (410); it is then no longer due

	// Unfinished means a poll has begun and not ended: it is under way, was interrupted,
	// or its process or the store has failed. Next is then the time of the poll's last
	// commit, or zero if the poll was interrupted.
	Unfinished bool `json:"unfinished,omitempty"`

	// More means the Budget ended the last poll before the history's end.
	More bool `json:"more,omitempty"`

	// Wait is the time until which the feed's host has asked to be left alone
	// (Retry-After). Update makes no request before then. Zero means the host has not
	// asked.
	Wait time.Time `json:"wait,omitzero"`

	// Ledger is what polls have learned of the feed: what is missing, and by what they tell
	// what they have missed.
	Ledger Ledger `json:"ledger,omitzero"`

	// Source is a word for the origin of the history, such as "wordpress"; "" means the
	// feed's own documents. Mark is the source's memory from one poll to the next.
	Source string          `json:"source,omitempty"`
	Mark   json.RawMessage `json:"mark,omitempty"`
}

// changed records a change at a time. Changed never goes back when the clock does, so the
// order of Record.Changed is the order of Record.LastCommit.
func (f *Feed) changed(now time.Time) { f.Changed = feedtime.Later(f.Changed, now) }

// NewFeed returns the state of a feed never polled, for Subscribe: the feed is then due. It
// is Private, unless you set that to false, if its URL seems to have a secret: a parameter
// of the query with a value of four bytes or more, and a word such as token, key, auth, sig
// or password in its name. Nothing else in the URL counts. With userinfo, such as
// user:password@, a feed is never read: see feedhistory.ErrUserinfo.
func NewFeed(url string) *Feed {
	return &Feed{URL: url, Kind: feedhistory.KindUnknown, Verdict: feedhistory.VerdictPartial, Private: iri.HasSecret(url)}
}

// Document returns the head section of the feed's subscription document,
// without entries. The error matches ErrNotFound if none was ever read.
func (f *Feed) Document() (*feedhistory.Document, error) {
	if f.Head == "" {
		return nil, ErrNotFound
	}
	return feedhistory.Parse(strings.NewReader(f.Head), f.Ledger.l.Known.URL)
}

// NewAddress returns the URL to which the feed says that it has moved (itunes:new-feed-url); ""
// if it does not, or is there. Update goes there when a permanent redirect leads there, or the
// feed is gone from where it was.
func (f *Feed) NewAddress() string {
	if !strings.Contains(f.Head, "new-feed-url") {
		return ""
	}
	head, err := f.Document()
	if err != nil {
		return ""
	}
	section := door.Root.Head(head)
	url := iri.WithoutFragment(section.NewAddress())
	if !iri.IsHTTP(url) || url == f.URL || url == f.Address {
		return ""
	}
	return url
}

// Size returns the bytes of the feed's entries, with their earlier versions, and of the
// records of its documents, as a Quota counts them.
func (f *Feed) Size() int64 { return f.Ledger.l.Usage.bytes() }

// WholeAsOf returns when the feed was last whole, if polls do not repeat the proof: a
// server's count, or the word of a feed republishing this one. It is otherwise the zero
// time.
func (f *Feed) WholeAsOf() time.Time {
	if f.Verdict != feedhistory.VerdictWhole {
		return time.Time{}
	}
	if f.Kind == feedhistory.KindPlain {
		return f.Ledger.l.AsOf
	}
	if head := f.declared(); head != nil {
		return head.Coverage.AsOf
	}
	return time.Time{}
}

// A DocumentRecord describes a processed archive document.
type DocumentRecord struct {
	URL   string            `json:"url"`             // the URL by which it was requested
	Names []string          `json:"names,omitempty"` // the URLs it is known by: URL, the target of a redirect
	Known feedhistory.Known `json:"known,omitzero"`  // the document as it was last read
	Rank  Rank              `json:"rank,omitzero"`   // how recent it is

	First   int64     `json:"first,omitempty"`   // the number of the first poll to read it
	Altered int64     `json:"altered,omitempty"` // the number of the last poll to find it changed
	Last    int64     `json:"last,omitempty"`    // the number of the last poll to read it
	Read    time.Time `json:"read,omitzero"`     // when it was last read
	Entries int       `json:"entries,omitempty"` // the number of its entries
	Digest  string    `json:"digest,omitempty"`  // a digest of the set of its entries (5005#9)
	Further []string  `json:"further,omitempty"` // the URLs at which it goes on beyond the chain, against its own marks

	Oldest time.Time `json:"oldest,omitzero"` // the earliest time of an entry; zero if none has a time
	Newest time.Time `json:"newest,omitzero"` // the latest time of an entry; zero if none has a time
}

// compare orders the documents of a feed: the newest first, by Rank, and of equal ones the
// one with the greater URL.
func (d *DocumentRecord) compare(other *DocumentRecord) int {
	return cmp.Or(other.Rank.compare(d.Rank), cmp.Compare(other.URL, d.URL))
}

// debtOf returns the debt for a gap of the poll, by the mirror's clock.
func (p *poll) debtOf(gap *feedhistory.Gap) debt {
	d := newDebt(gap)
	d.Found = p.m.byNow(d.Found)
	return d
}

// host returns the name of the host the feed is requested from, with the port if it is
// neither 80 nor 443. Poll the feeds of one host one at a time.
func (f *Feed) host() string { return fetch.HostOf(f.address()) }

// next returns the number of the next commit.
func (f *Feed) next() int64 { return f.Commits + 1 }

// address returns the URL to request the feed from.
func (f *Feed) address() string { return cmp.Or(f.Address, f.URL) }

// clearGaps removes the debts that earlier polls found within a document which this poll
// has read. A contradiction stays as long as the document names more than one chain. Of a
// damaged subscription document, the sound one must reach down to the same entry;
// otherwise a window has been missed.
func (p *poll) clearGaps(doc *feedhistory.Document, kind feedhistory.Kind, start string) {
	var windows []debt
	p.ledger.crossOut(func(d debt) bool {
		if d.isDocument() || d.Poll == p.feed.Polls || d.From != d.URL || d.URL != doc.URL && d.URL != doc.Response.Requested ||
			d.Kind == debtContradiction && !p.rereads && d.isContradictedBy(doc, kind, start) {
			return false
		}
		if len(d.Before) > 0 && !slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return e.ID == d.Before[0] }) {
			window := missedWindow(doc, p.now)
			window.Before = d.Before
			windows = append(windows, window)
		}
		return true
	})
	for _, d := range windows {
		p.owe(d)
	}
}

// oweWithin enters a gap within a document.
func (p *poll) oweWithin(gap *feedhistory.Gap) {
	d := p.debtOf(gap)
	d.To = door.Root.Contradicts(gap.Err)
	if shown := p.ledger.Shown; p.chain.read && gap.URL == p.ledger.Known.URL && gap.Reason == feedhistory.ReasonMalformed && len(shown) > 0 {
		d.Before = shown[len(shown)-1:]
	}
	p.owe(d)
}

// isContradictedBy reports whether a document of a feed of the given kind, which begins at a URL,
// still has the contradiction.
func (d debt) isContradictedBy(doc *feedhistory.Document, kind feedhistory.Kind, start string) bool {
	switch {
	case kind == feedhistory.KindComplete, d.To == start && start != "": // the feed was found to begin there
		return false
	case d.To == "": // a version before this wrote it down
		return len(doc.Further(kind)) > 0
	}
	return door.Root.LeadsTo(doc, d.To)
}

// declared returns the head of the subscription document if it declares how much it has
// of a feed it republishes; else nil.
func (f *Feed) declared() *feedhistory.Document {
	if !strings.Contains(f.Head, feedxml.Coverage) {
		return nil
	}
	head, err := f.Document()
	if err != nil || head.Coverage == nil {
		return nil
	}
	return head
}

// declare turns the gaps declared by the feed into debts. No poll requests them: the feed
// has no more.
func (p *poll) declare() {
	p.ledger.crossOut(func(d debt) bool { return d.Kind == debtDeclared })
	head := p.feed.declared()
	if head == nil {
		return
	}
	for _, gap := range head.Declared() {
		d := newDebt(gap)
		d.Kind, d.From = debtDeclared, declaredGap
		p.ledger.Debts = append(p.ledger.Debts, d)
	}
}

// Coverage returns how much of the feed the mirror has, for documents republishing it.
// The URLs have no userinfo.
func (f *Feed) Coverage() *feedhistory.Coverage {
	return &feedhistory.Coverage{
		Of: iri.Redact(f.URL), Kind: f.Kind, Verdict: f.Verdict, Gaps: f.Ledger.Gaps(), AsOf: f.WholeAsOf(),
	}
}

// bound returns the best verdict the feed's own declaration allows; nil if it has none.
func (f *Feed) bound() *feedhistory.Verdict {
	if head := f.declared(); head != nil {
		return &head.Coverage.Verdict
	}
	return nil
}

// The mirror remembers permanent redirects, but can go back. If the address they lead
// to fails for good, it also requests the subscribed one. If they lead to an already
// mirrored feed, one poll serves both feeds.

// triesElsewhere is the number of consecutive failed polls before the subscribed
// address is requested as well.
const triesElsewhere = 3

// walks requests the feed at its current address and, if that fails for good, at the
// subscribed one, or at the one where it says it is.
func (p *poll) walks() error {
	f := p.feed
	if f.Address != "" {
		if alias, err := p.aliasOf(f.Address); alias || err != nil {
			return err
		}
	}
	if err := p.goBack(); err != nil {
		return err
	}
	p.request.doubted = f.Lost != "" && f.Lost != f.URL
	if err := p.walk(p.feed.address()); err != nil {
		return err
	}
	if p.failure == nil || !f.Gone && (f.Failures < triesElsewhere || !isAway(p.failure)) {
		return nil
	}
	p.request.doubted = true
	if f.Address != "" && f.Lost != f.URL {
		if err := p.walk(f.URL); err != nil || p.failure == nil {
			return err
		}
	}
	url := f.NewAddress()
	if url == "" {
		return nil
	}
	err := p.walk(url)
	if p.failure == nil {
		p.changes.Moved = f.Address
	}
	return err
}

// A move is a permanent redirect followed by the mirror. One wrong answer must not lead it
// away for good, so the subscribed address is requested again: within three polls, at the next
// ones if it does not answer then, and each week for a month.
type move struct {
	Since time.Time `json:"since"`
	Poll  int64     `json:"poll"`           // the number of the poll to find it
	Asked time.Time `json:"asked,omitzero"` // when the subscribed address was last requested since; zero means never
}

const (
	moveChecked = 7 * 24 * time.Hour
	moveProved  = 30 * 24 * time.Hour
)

// goBack requests the subscribed address of a moved feed, if it is time to, and goes
// back there if it answers with the feed itself.
func (p *poll) goBack() error {
	f, m := p.feed, p.ledger.Move
	switch {
	case m == nil || f.Address == "" || f.Lost != "":
		return nil
	case p.now.Sub(m.Since) > moveProved && !m.Asked.IsZero():
		p.ledger.Move = nil
		return nil
	case m.Asked.IsZero() && f.Polls < m.Poll+2, !m.Asked.IsZero() && p.now.Sub(m.Asked) < moveChecked:
		return nil
	}
	doc, err := p.m.clientFor(f.URL).Get(p.ctx, f.URL)
	moved, same := err == nil && doc.Response.Permanent != "", false
	if err == nil && !moved {
		if same, err = p.isSame(doc); err != nil {
			return err
		}
	}
	if moved || same || isMissing(err) || f.Polls >= m.Poll+5 { // otherwise the next poll asks again
		p.ledger.Move = &move{m.Since, m.Poll, p.now}
	}
	if same {
		f.Address = ""
		p.ledger.Known.ETag, p.ledger.Known.LastModified = "", "" // those of another address
	}
	return p.ctx.Err()
}

// first inspects the answer to the request for the subscription document: it
// decides whether the answer belongs to this feed, and whether the walk should
// go on.
func (p *poll) first(doc *feedhistory.Document, r feedhistory.Response) error {
	if r.Permanent != "" {
		if alias, err := p.aliasOf(r.Permanent); err != nil {
			return err
		} else if alias {
			return errEnded
		}
	}
	if !p.request.doubted {
		return nil
	}
	same, err := p.isSame(doc)
	if err != nil {
		return err
	}
	if !same {
		_ = p.failed(nil, &strangerError{p.feed.URL}) // without a document, failed returns no error
		return errEnded
	}
	p.failure, p.cut, p.request.doubted = nil, false, false
	return nil
}

// isSame reports whether a document belongs to the feed: it has the feed's id,
// or a known entry with the same content or times. The address alone proves
// nothing, because a domain may have a new owner.
func (p *poll) isSame(doc *feedhistory.Document) (bool, error) {
	if head, err := p.feed.Document(); err == nil && head.ID != "" && head.ID == doc.ID {
		return true, nil
	}
	ids := make([]string, len(doc.Entries))
	for i, e := range doc.Entries {
		ids[i] = e.ID
	}
	records, err := p.m.Store.Records(p.ctx, p.feed.URL, ids)
	for _, e := range doc.Entries {
		r := records[e.ID]
		if r == nil || r.Copy.Digest == "" {
			continue
		}
		if c := r.Content; r.Copy.Digest == e.Digest() || !e.Updated.IsZero() && e.Updated.Equal(c.Updated) ||
			!e.Published.IsZero() && e.Published.Equal(c.Published) {
			return true, err
		}
	}
	return false, err
}

// A strangerError reports an address now serving a different feed.
type strangerError struct{ url string }

func (e *strangerError) Error() string {
	return e.url + ": not the feed that you subscribed to: neither its id nor any entry is known"
}

// lost notes a subscribed address that does not answer either.
func (p *poll) lost(err error) {
	f := p.feed
	switch {
	case f.Gone && !isAway(err): // the feed may still come back
		f.Gone, f.Lost, f.Address = false, f.Address, ""
	case !f.Gone && isGone(err): // the subscribed address is not to be requested again
		f.Lost = f.URL
	}
	if stranger, ok := errors.AsType[*strangerError](err); ok {
		p.failure = fmt.Errorf("%w; %w", p.failure, stranger)
		f.Error += "; " + stranger.Error()
	}
}

// isGone reports whether the publisher has withdrawn a document for good.
func isGone(err error) bool {
	failed, ok := errors.AsType[*feedhistory.FetchError](err)
	return ok && failed.Gone
}

// isAway reports whether the answer means the feed is no longer at an address.
func isAway(err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	if _, ok := errors.AsType[*strangerError](err); ok {
		return true
	}
	parse, ok := errors.AsType[*feedhistory.ParseError](err)
	return ok && parse.Reason == feedhistory.ReasonNotFeed
}

// aliasOf makes the feed an alias of the feed subscribed to at an address, if
// there is one and it can serve as the other's target.
func (p *poll) aliasOf(address string) (bool, error) {
	f := p.feed
	address = iri.WithoutFragment(address)
	if address == f.URL {
		return false, nil
	}
	other, err := p.m.Store.Feed(p.ctx, address)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case !other.canStandFor(f):
		return false, nil
	}
	f.Alias = address
	f.Failures, f.Error, f.Gone = 0, "", false
	p.ready, p.unended, p.cut = p.later(f.Next), false, true
	return true, nil
}

// canStandFor reports whether the other feed can be an Alias of this one: this
// one must be polled, and not have failed recently.
func (f *Feed) canStandFor(other *Feed) bool {
	return f.URL != other.URL && f.Alias == "" && !f.Gone && f.Failures < triesElsewhere
}

// Redacted returns the feed as documents for others may describe it. Its URLs
// have no userinfo. Of a private feed's URL, whose path and query may be the
// secret, only the host remains, and its ID, links and texts are left out if
// they quote the rest.
func (f *Feed) Redacted() *Feed {
	r := *f
	r.URL, r.Address, r.Lost, r.Alias = iri.Redact(f.URL), iri.Redact(f.Address), iri.Redact(f.Lost), iri.Redact(f.Alias)
	if !f.Private {
		return &r
	}
	r.URL, r.Address, r.Lost, r.Alias = hostURL(f.URL), "", "", ""
	if quotes(r.Title, f.secrets()) {
		r.Title = ""
	}
	r.Mark, r.Error, r.Head = nil, "", f.redactedHead()
	l := &f.Ledger.l
	r.Ledger.l = ledger{Kind: l.Kind, Cap: l.Cap, Census: l.Census, Unsettled: l.Unsettled, Looked: l.Looked, Checked: l.Checked, upkeep: l.upkeep}
	for _, d := range l.Debts {
		r.Ledger.l.Debts = append(r.Ledger.l.Debts, debt{
			Kind: d.Kind, URL: r.URL, From: r.URL, Reason: d.Reason, Message: errPrivate.Error(), Found: d.Found, Poll: d.Poll, Quota: d.Quota,
			Page: d.Page, Tries: d.Tries, Missing: d.Missing, Retry: d.Retry, Wait: d.Wait,
		})
	}
	return &r
}

var errPrivate = errors.New("the feed is private, so its mirror does not publish the address")

// hostURL returns a URL without anything after the host.
func hostURL(url string) string {
	u, err := iri.ParseLeniently(url)
	if err != nil || u.Host == "" {
		return "a private feed"
	}
	return u.Scheme + "://" + u.Host
}

// redactedHead returns the head of a private feed without its addresses, with
// the links to its website.
func (f *Feed) redactedHead() string {
	doc, err := f.Document()
	if err != nil {
		return ""
	}
	secrets := f.secrets()
	doc.URL, doc.Coverage = "", nil
	doc.Links = slices.DeleteFunc(slices.Clone(doc.Links), func(l feedhistory.Link) bool {
		return l.Rel != "alternate" || quotes(l.Href, secrets)
	})
	if _, ok := doc.Links.Rel("alternate"); !ok {
		doc.Links = feedhistory.Links{{Rel: "alternate", Href: hostURL(f.URL) + "/"}}
	}
	if quotes(doc.ID, secrets) {
		sum := sha256.Sum256([]byte(doc.ID))
		doc.ID = "urn:sha256:" + hex.EncodeToString(sum[:])
	}
	if head := headOf(doc); !quotes(head, secrets) {
		return head
	}
	plain := &feedhistory.Document{Format: feedhistory.FormatAtom, ID: doc.ID, Title: doc.Title, Updated: doc.Updated}
	if quotes(plain.Title, secrets) {
		plain.Title = hostURL(f.URL)
	}
	return headOf(plain)
}

// secrets returns the parts of the feed's URLs that may be secrets: userinfo,
// path and query.
func (f *Feed) secrets() (parts []string) {
	for _, url := range []string{f.URL, f.Address, f.Lost, f.Alias, f.Ledger.l.Known.URL} {
		u, err := iri.ParseLeniently(url)
		if url == "" || err != nil {
			continue
		}
		path, query, _ := strings.Cut(strings.TrimPrefix(iri.Redact(url), u.Scheme+"://"+u.Host), "?")
		parts = append(parts, u.User.String(), strings.TrimSuffix(path, "/"), query)
	}
	return slices.DeleteFunc(parts, func(part string) bool { return len(part) < minSecret })
}

// minSecret is the length of the shortest text that can be a secret.
const minSecret = 4

// quotes reports whether a text has one of the secrets.
func quotes(text string, secrets []string) bool {
	text = html.UnescapeString(text)
	return slices.ContainsFunc(secrets, func(secret string) bool {
		return strings.Contains(text, secret) || strings.Contains(text, cmp.Or(html.UnescapeString(secret), secret))
	})
}

// Redacted returns the entry of a private feed as documents for others may have
// it. Its references resolve against the directory of the feed's document, not
// against the address.
func (r *Record) Redacted() *Record {
	redacted := *r
	redacted.Content.Base, redacted.Content.Data = iri.Directory(r.Content.Base), withDirectory(r.Content.Data)
	return &redacted
}

// withDirectory returns an element whose base, if its first tag has one, is the
// directory of that base.
func withDirectory(element string) string {
	const attribute = ` xml:base="`
	tag := firstTag(element)
	start := strings.Index(tag, attribute)
	if start < 0 {
		return element
	}
	start += len(attribute)
	base, _, ok := strings.Cut(tag[start:], `"`)
	if !ok {
		return element
	}
	return element[:start] + html.EscapeString(iri.Directory(html.UnescapeString(base))) + element[start+len(base):]
}

// firstTag returns an element's start tag.
func firstTag(element string) string {
	var quote rune
	for i, c := range element {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return element[:i+1]
		}
	}
	return ""
}

// Public returns a view of a Store for programs that show feeds to everybody. The view
// has neither the feeds whose Private is set nor their entries, and refuses to store
// them: Commit returns an error matching ErrConflict. If the state of a feed cannot be
// read, the feed may be private: the view then has an error in the place of its
// contents.
//
// The view counts months and indexes if the Store does. s must not be nil: the
// view's methods would panic.
func Public(s Store) Store { return publicStore{s} }

type publicStore struct{ Store }

// version returns the Commits of a public feed. Call it after reading from the
// feed, never before: the next commit may make the feed private.
func (s publicStore) version(ctx context.Context, feed string) (version int64, isPublic bool, err error) {
	f, err := s.Store.Feed(ctx, feed)
	switch {
	case errors.Is(err, ErrNotFound):
		return 0, true, nil
	case err != nil:
		return 0, false, err
	case f.Private:
		return 0, false, nil
	}
	return f.Commits, true, nil
}

// shows reports whether a feed is not private.
func (s publicStore) shows(ctx context.Context, feed string) (bool, error) {
	_, isPublic, err := s.version(ctx, feed)
	return isPublic, err
}

// Feed implements Store.
func (s publicStore) Feed(ctx context.Context, url string) (*Feed, error) {
	f, err := s.Store.Feed(ctx, url)
	if err == nil && f.Private {
		return nil, fmt.Errorf("%s: %w", url, ErrNotFound)
	}
	return f, err
}

// Feeds implements Store.
func (s publicStore) Feeds(ctx context.Context, q FeedQuery) iter.Seq2[*Feed, error] {
	limit := q.Limit
	q.Limit = min(limit, 0) // the number of hidden feeds is not known
	return visible(s.Store.Feeds(ctx, q), limit, func(f *Feed) (bool, error) { return !f.Private, nil })
}

// Records implements Store.
func (s publicStore) Records(ctx context.Context, feed string, ids []string) (map[string]*Record, error) {
	records, err := s.Store.Records(ctx, feed, ids)
	if err != nil {
		return nil, err
	}
	if shows, err := s.shows(ctx, feed); !shows {
		return map[string]*Record{}, err
	}
	return records, nil
}

// Document implements Store.
func (s publicStore) Document(ctx context.Context, feed, url string) (*DocumentRecord, error) {
	d, err := s.Store.Document(ctx, feed, url)
	if err != nil {
		return nil, err
	}
	if shows, err := s.shows(ctx, feed); !shows {
		return nil, cmp.Or(err, fmt.Errorf("%s: %w", url, ErrNotFound))
	}
	return d, nil
}

// Documents implements Store.
func (s publicStore) Documents(ctx context.Context, feed string) iter.Seq2[*DocumentRecord, error] {
	return visible(s.Store.Documents(ctx, feed), 0, func(*DocumentRecord) (bool, error) { return s.shows(ctx, feed) })
}

// Versions implements Store.
func (s publicStore) Versions(ctx context.Context, feed, id string) iter.Seq2[*Record, error] {
	return visible(s.Store.Versions(ctx, feed, id), 0, func(*Record) (bool, error) { return s.shows(ctx, feed) })
}

// Entries implements Store.
func (s publicStore) Entries(ctx context.Context, q Query) iter.Seq2[*Record, error] {
	limit, skip := q.Limit, 0
	if q.Feed == "" && q.Skip >= 0 {
		q.Limit = min(limit, 0) // the number of hidden entries is not known
		q.Skip, skip = 0, q.Skip
	}
	type visibility struct {
		version  int64
		isPublic bool
	}
	entries := s.Store.Entries(ctx, q)
	return func(yield func(*Record, error) bool) {
		known := map[string]visibility{} // of one range: a feed may become private before the next
		visible(entries, limit, func(r *Record) (bool, error) {
			f, ok := known[r.Feed]
			if !ok || f.isPublic && r.LastCommit > f.version { // it was committed since
				var err error
				if f.version, f.isPublic, err = s.version(ctx, r.Feed); err != nil {
					return false, err
				}
				known[r.Feed] = f
			}
			left := skip
			if f.isPublic {
				skip = max(skip-1, 0)
			}
			return f.isPublic && left == 0, nil
		})(yield)
	}
}

// Months counts the visible entries, for the function Months.
func (s publicStore) Months(ctx context.Context, q Query) (map[time.Time]int64, error) {
	months, err := Months(ctx, s.Store, q)
	if err != nil {
		return nil, err
	}
	if shows, err := s.shows(ctx, q.Feed); !shows {
		return map[time.Time]int64{}, err
	}
	return months, nil
}

// Index indexes the Store, if it indexes.
func (s publicStore) Index(ctx context.Context) error {
	return index(ctx, s.Store)
}

// Commit implements Store.
func (s publicStore) Commit(ctx context.Context, c *Commit) error {
	before, err := s.Store.Feed(ctx, c.Feed.URL)
	switch {
	case err != nil && !errors.Is(err, ErrNotFound):
		return err
	case c.Feed.Private || err == nil && before.Private:
		return ErrConflict
	}
	return s.Store.Commit(ctx, c)
}

// Remove implements Store.
func (s publicStore) Remove(ctx context.Context, url string) error {
	if _, err := s.Feed(ctx, url); err != nil {
		return err
	}
	return s.Store.Remove(ctx, url)
}

// visible yields the visible part of a sequence, up to a limit; zero means all.
func visible[T any](of iter.Seq2[T, error], limit int, isVisible func(T) (bool, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for value, err := range of {
			if err == nil {
				var isShown bool
				if isShown, err = isVisible(value); err != nil {
					var none T
					value = none
				} else if !isShown {
					continue
				}
			}
			if !yield(value, err) || err != nil {
				return
			}
			if n++; n == limit {
				return
			}
		}
	}
}
