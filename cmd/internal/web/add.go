package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish/serve"
	"github.com/feedhistory/feedhistory/republish"
)

// mostAdded is the maximum number of feeds in a file.
const mostAdded = 10_000

// addFeeds adds a feed by its URL, or those of an OPML file.
func (s *Server) addFeeds(w http.ResponseWriter, r *http.Request) error {
	typed, login := s.adder.loginOf(strings.TrimSpace(r.FormValue("url")), r.FormValue("user"), r.FormValue("password"))
	wrong := func(message string) error {
		return s.listFeeds(w, r, http.StatusUnprocessableEntity, &feedsView{Address: typed, User: login.user, Asks: login.user != "", Wrong: message})
	}
	if r.MultipartForm != nil {
		defer func() { _ = r.MultipartForm.RemoveAll() }()
	}
	file, _, err := r.FormFile("opml")
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return wrong("The file is larger than 8 MiB. Split it, and add one part after the other.")
	}
	if err == nil && typed == "" {
		defer file.Close()
		outlines, err := readers.ReadOPML(file)
		if err != nil {
			return wrong("This OPML file cannot be read: " + err.Error() + ". Export it again.")
		}
		if len(outlines) > mostAdded {
			return wrong("The file has more than " + count(mostAdded) + " feeds. Split it, and add one part after the other.")
		}
		return s.addAll(w, r, outlines)
	}
	address, message := s.newAddress(typed)
	if message = cmp.Or(message, login.wrong()); message != "" {
		return wrong(message)
	}
	known, err := s.feeds.like(r.Context(), address)
	if err != nil {
		return err
	}
	insists := r.FormValue("all-the-same") != ""
	if known != nil && known.URL != address && !isFresh(known) && !insists {
		v := &feedsView{Address: address, Known: &feedView{Feed: known}}
		return s.listFeeds(w, r, http.StatusConflict, v)
	}
	page := r.FormValue("instead") // the name of the page with the link to this feed
	if err := s.adder.passLogin(r.Context(), page, address); err != nil {
		return err
	}
	trial := &trial{login: login, insists: insists}
	address, message, err = s.adder.addTried(r.Context(), typed, address, trial)
	if err != nil {
		return err
	}
	if message != "" {
		v := &feedsView{Address: typed, User: login.user, Asks: login.user != "" || trial.locked, Wrong: message}
		if !v.Asks { // without its login, it would never be read
			v.Insist = address
		}
		return s.listFeeds(w, r, http.StatusUnprocessableEntity, v)
	}
	if known != nil && known.URL != address && isFresh(known) { // it was mistyped, perhaps
		if err := s.adder.replace(r.Context(), known.URL, address); err != nil {
			return err
		}
	}
	if page != "" {
		if err := s.adder.dropPage(r.Context(), page, address); err != nil {
			return err
		}
	}
	return seeOther(s.at("/feeds/" + republish.Name(address)))
}

// addAll adds the feeds of an OPML file, and says how many it added.
func (s *Server) addAll(w http.ResponseWriter, r *http.Request, outlines []readers.Outline) error {
	added, here := 0, 0
	var unreadable []string
	for _, o := range outlines {
		address, wrong := s.newAddress(o.URL)
		if wrong != "" {
			unreadable = append(unreadable, o.URL)
			continue
		}
		known, err := s.feeds.like(r.Context(), address)
		if err != nil {
			return err
		}
		isNew := false
		if known == nil {
			if isNew, err = s.adder.add(r.Context(), address, o); err != nil {
				return err
			}
		} else if err := database.Amend(r.Context(), s.store, known.URL, o.Apply); err != nil {
			return err
		}
		if isNew {
			added++
		} else {
			here++
		}
	}
	key := s.adder.remember(outcome(added, here, unreadable))
	return seeOther(s.at("/?outcome=" + key))
}

// mostNamed is the maximum number of addresses in a message.
const mostNamed = 5

// outcome counts the feeds of a file for people.
func outcome(added, here int, unreadable []string) string {
	text := count(added) + " added, " + count(here) + " here already"
	if n := len(unreadable); n > 0 {
		text += ", " + count(n) + " cannot be read: " + strings.Join(unreadable[:min(n, mostNamed)], ", ")
		if n > mostNamed {
			text += " …"
		}
	}
	return text + ". The server reads each feed as its turn comes."
}

// feedAddress returns the URL somebody has typed, or says why there is none in
// it. It escapes characters as a request would. The Client decides whether the
// URL may be requested at all.
func feedAddress(typed string) (address, wrong string) {
	typed, _, _ = strings.Cut(strings.TrimSpace(typed), "#")
	if terminal.IsAccount(typed) {
		typed = terminal.WebAddress(typed)
	}
	if terminal.IsFeedAddress(typed) {
		typed = terminal.WebAddress(typed)
	}
	if typed != "" && !strings.Contains(typed, "://") {
		typed = "https://" + typed
	}
	u, err := feedhistory.ParseURL(typed)
	switch {
	case typed == "":
		return "", "Type the address of a feed, or choose an OPML file."
	case err != nil || u.Host == "":
		return "", "That is not the address of a feed. It should look like https://example.org/feed.xml."
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "Only addresses that begin with http:// or https:// can be read."
	case u.User != nil:
		return "", "An address with a password in it would be shown to everybody. Take it out of the address."
	case len(typed) > 2000:
		return "", "The address is too long."
	}
	return u.String(), ""
}

// newAddress is feedAddress, for a feed to add. It refuses feeds the server would not show.
func (s *Server) newAddress(typed string) (address, wrong string) {
	if address, wrong = feedAddress(typed); wrong == "" && !s.Private && mirror.NewFeed(address).Private {
		return "", "This address seems to have a secret in it, so the feed is private, and this server shows no private feeds. " +
			"Mirror it with " + s.Hints.Command("sync") + ", and read it with feedhistory serve --private."
	}
	return address, wrong
}

// pollNow lets a feed be polled at once.
func (s *Server) pollNow(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	s.polls.Hurry(feed)
	return seeOther(s.at("/feeds/" + r.PathValue("id")))
}

type removalView struct {
	*feedView
	Import string // the command by which it comes back
}

// confirmRemoval asks whether to remove a feed.
func (s *Server) confirmRemoval(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	v := &removalView{&feedView{Feed: feed}, s.Hints.Command("import")}
	return s.render(w, r, http.StatusOK, "remove", "Remove "+v.Title(), v)
}

// removeFeed removes a feed with its published documents.
func (s *Server) removeFeed(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	s.polls.Forget(feed.URL)
	if err := s.published.Remove(r.Context(), feed.URL); err != nil {
		return err
	}
	s.feeds.forget(feed.URL)
	return seeOther(s.at("/?said=removed"))
}

// An adder adds feeds, and finds out which feed an address leads to.
type adder struct {
	store mirror.Store
	feeds *directory
	polls *mirror.Poller
	log   *slog.Logger

	found    serve.Cache[string, feedhistory.Links] // the feeds of added pages, by the URLs of the pages
	formats  serve.Cache[string, feedhistory.Links] // the other formats of these feeds, by the URLs of the feeds
	failures serve.Cache[string, error]             // the failures of last polls, by the URLs of feeds
	outcomes serve.Cache[string, string]            // messages for the next page, by random keys
	late     serve.Cache[string, bool]              // the feeds whose first poll outlasts the trial, by URL
	refused  serve.Cache[string, string]            // why a feed was not kept, by its name

	hints Hints
	shows bool             // whether private feeds are shown
	keys  *command.Keyring // the logins of private feeds; nil if none can be added here

	adding func(ctx context.Context, feeds []string) (added func() error, err error) // see Server.Adding
	logins sync.Map                                                                  // what to do once a feed with a login is there, by its URL
}

// A feedLogin is the login that somebody has typed for a feed.
type feedLogin struct{ user, password string }

// wrong says why nobody can log in so; "" if somebody may.
func (l feedLogin) wrong() string {
	switch {
	case strings.Contains(l.user, ":"):
		return "A name has no colon."
	case l.user == "" && l.password != "":
		return "Type the name that belongs to the password."
	}
	return ""
}

// header returns the header fields of the login; nil if there is none.
func (l feedLogin) header() http.Header {
	if l.user == "" {
		return nil
	}
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(l.user, l.password)
	return r.Header
}

// loginOf returns a typed address and login; one in the address goes out of it.
func (a *adder) loginOf(typed, user, password string) (string, feedLogin) {
	if a.keys == nil {
		return typed, feedLogin{}
	}
	login := feedLogin{strings.TrimSpace(user), password}
	if u, err := feedhistory.ParseURL(typed); err == nil && u.User != nil {
		if login.user == "" {
			login.user = u.User.Username()
			login.password, _ = u.User.Password()
		}
		u.User = nil
		typed = u.String()
	}
	return typed, login
}

// passLogin gives the login of an added page to a feed that it names, if both have one origin.
func (a *adder) passLogin(ctx context.Context, page, to string) error {
	if a.keys == nil || page == "" {
		return nil
	}
	from, err := a.feeds.published.Feed(ctx, page)
	if errors.Is(err, mirror.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = a.setLogin(ctx, to, func() error { _, err := a.keys.Pass(from.URL, to); return err })
	}
	return err
}

// setLogin keeps the login of a feed about to be added.
func (a *adder) setLogin(ctx context.Context, feed string, set func() error) error {
	if a.adding != nil {
		added, err := a.adding(ctx, []string{feed})
		if err != nil {
			return err
		}
		a.logins.Store(feed, func() error { return cmp.Or(set(), added()) }) // again: another process may have removed it
	}
	return set()
}

// client returns the client for an address.
func (a *adder) client(address string) *feedhistory.Client {
	m := a.polls.Mirror
	if m.ClientFor != nil {
		if own := m.ClientFor(address); own != nil {
			return own
		}
	}
	return cmp.Or(m.Client, &feedhistory.Client{})
}

// dropPage removes an added page, because one of its feeds was chosen.
func (a *adder) dropPage(ctx context.Context, name, chosen string) error {
	page, err := a.feeds.published.Feed(ctx, name)
	if errors.Is(err, mirror.ErrNotFound) || err == nil && (page.Head != "" || page.URL == chosen) {
		return nil
	}
	if err != nil {
		return err
	}
	a.polls.Forget(page.URL)
	return a.replace(ctx, page.URL, chosen)
}

// add adds a feed to the store, under the title and in the folders of a list; it is due
// at once.
func (a *adder) add(ctx context.Context, address string, listed readers.Outline) (added bool, err error) {
	if err := a.feeds.add(ctx, address); err != nil {
		return false, err
	}
	feed := mirror.NewFeed(address)
	if a.keys != nil {
		private, err := a.keys.Load()
		if err != nil {
			return false, err
		}
		feed.Private = feed.Private || private[address] != nil
	}
	listed.Apply(feed)
	if added, err = mirror.Subscribe(ctx, a.store, feed); added {
		a.polls.Hurry(feed)
	}
	if settle, ok := a.logins.LoadAndDelete(address); ok && err == nil {
		err = settle.(func() error)()
	}
	return added, err
}

// polled is called at the end of a poll. A feed read for the first
// time may redirect to another one, or may be a page with a feed.
func (a *adder) polled(ctx context.Context, before *mirror.Feed, err error) {
	if a.failures.Drop(before.URL); err != nil {
		a.failures.Put(before.URL, err)
	}
	feed, failed := a.store.Feed(ctx, before.URL)
	if failed != nil {
		return
	}
	_, isParsed := errors.AsType[*feedhistory.ParseError](err)
	switch formats, _ := a.formats.Get(feed.URL); {
	case err == nil:
		failed = a.recognise(ctx, feed, before.Polls == 0)
	case feed.Head != "":
	case len(formats) > 0 && command.IsNoFeed(err):
		a.formats.Put(formats[0].Href, formats[1:])
		failed = a.become(ctx, feed.URL, formats[0].Href)
	case isParsed:
		failed = a.discover(ctx, feed, err)
	}
	if _, isLate := a.late.Get(feed.URL); isLate && failed == nil {
		a.late.Drop(feed.URL)
		_, failed = a.refuse(ctx, feed.URL)
	}
	if failed != nil && ctx.Err() == nil {
		a.log.WarnContext(ctx, "a feed's other addresses cannot be determined", "feed", feed.URL, "err", failed)
	}
}

// refuse forgets a new feed whose first poll has failed, and keeps the reason for its page. It
// returns the failure; nil if the feed is kept.
func (a *adder) refuse(ctx context.Context, address string) (failure, err error) {
	failure, failed := a.failures.Get(address)
	if links, _ := a.found.Get(address); !failed || len(links) > 0 {
		return nil, nil // a person chooses one of them
	}
	if feed, err := a.store.Feed(ctx, address); errors.Is(err, mirror.ErrNotFound) || err == nil && feed.Head != "" {
		return nil, nil // another feed has replaced it, or it has been read
	} else if err != nil {
		return nil, err
	}
	a.refused.Put(republish.Name(address), a.explain(failure))
	err = a.discard(ctx, address)
	a.polls.Forget(address) // which ends the context of its poll
	return failure, err
}

// recognise removes a new feed with a permanent redirect to one of ours.
func (a *adder) recognise(ctx context.Context, feed *mirror.Feed, isNew bool) error {
	address := cmp.Or(feed.Alias, feed.Address)
	if address == "" {
		return nil
	}
	other, err := a.feeds.like(ctx, address)
	if err != nil {
		return err
	}
	if other == nil || other.URL == feed.URL {
		a.feeds.mu.Lock()
		defer a.feeds.mu.Unlock()
		a.feeds.resemble(address, feed.URL)
		return nil
	}
	if !isNew {
		return nil // it has its own history
	}
	return a.replace(ctx, feed.URL, other.URL)
}

// discover looks for the feeds of a page, given the error of reading it. If there is one, it replaces the
// page; if there are several, a person chooses.
func (a *adder) discover(ctx context.Context, page *mirror.Feed, err error) error {
	if looked, _ := a.found.Get(page.URL); looked != nil {
		return nil // it was looked at before, or came from another page: circular links are not followed
	}
	a.found.Put(page.URL, feedhistory.Links{})
	addressed := func(links feedhistory.Links) (feeds feedhistory.Links) {
		for _, link := range links {
			if address, wrong := feedAddress(link.Href); wrong == "" && address != page.URL {
				link.Href = address
				feeds = append(feeds, link)
			}
		}
		return feeds
	}
	links := command.FeedsOf(ctx, a.client(page.URL), page.URL, err)
	for _, link := range links {
		if address, wrong := feedAddress(link.Href); wrong == "" {
			a.formats.Put(address, addressed(command.FormatsOf(err, link.Href)))
		}
	}
	feeds := addressed(links)
	isOfComments := func(l feedhistory.Link) bool { return l.Rel == "replies" }
	if articles := slices.DeleteFunc(slices.Clone(feeds), isOfComments); len(articles) == 1 {
		feeds = articles // hardly anybody means the comments
	}
	if len(feeds) != 1 {
		a.found.Put(page.URL, append(feedhistory.Links{}, feeds...))
		return nil
	}
	return a.become(ctx, page.URL, feeds[0].Href)
}

// become replaces a page, or a missing format of a feed, by a feed.
func (a *adder) become(ctx context.Context, page, only string) error {
	if known, err := a.feeds.like(ctx, only); err != nil {
		return err
	} else if known != nil {
		return a.replace(ctx, page, known.URL)
	}
	a.found.Put(only, feedhistory.Links{})
	if a.keys != nil {
		if err := a.setLogin(ctx, only, func() error { _, err := a.keys.Pass(page, only); return err }); err != nil {
			return err
		}
	}
	if _, err := a.add(ctx, only, readers.Outline{}); err != nil {
		return err
	}
	return a.replace(ctx, page, only)
}

// replace removes a feed without entries because another one has them.
func (a *adder) replace(ctx context.Context, feed, by string) error {
	a.feeds.replaced(feed, by)
	a.log.InfoContext(ctx, "replaced", "feed", feed, "by", by)
	if old, err := a.store.Feed(ctx, feed); err == nil {
		listed := readers.Outline{Text: old.Named, Folders: old.Folders}
		if err := database.Amend(ctx, a.store, by, listed.Apply); err != nil {
			return err
		}
	}
	return a.discard(ctx, feed)
}

// remember keeps a message for the next page, and returns its key.
func (a *adder) remember(message string) (key string) {
	key = rand.Text()
	a.outcomes.Put(key, message)
	return key
}

// A new feed is polled at once. If the poll shows within a moment that there is no
// feed, the error is shown next to the field, and the feed is not kept.
const (
	trialTime = 3 * time.Second
	trialStep = 10 * time.Millisecond
)

// needsLogin says how to add a feed with a login.
func (a *adder) needsLogin() string {
	if a.keys != nil {
		return "This feed needs a login: type its name and password below."
	}
	text := "This feed needs a login, so it cannot be added here. Add it with " + a.hints.Command("sync --user NAME")
	if !a.shows {
		text += ", and start the server with --private"
	}
	return text + "."
}

// A trial is how a feed is added.
type trial struct {
	login   feedLogin
	insists bool // without a question
	locked  bool // whether the address has turned out to need a login
}

// addTried adds a feed, and waits a moment for its first poll. If nobody has
// typed http or https, and https fails, it tries http, unless there is a password, which others
// could read there. It returns the added address, or the reason why there is none: the one of
// http only if a server answered there, and none with https.
func (a *adder) addTried(ctx context.Context, typed, address string, t *trial) (added, wrong string, err error) {
	until := time.Now().Add(trialTime)
	wrong, answered, err := a.addOne(ctx, address, t, until)
	if err != nil || wrong == "" {
		return address, wrong, err
	}
	if plain, ok := strings.CutPrefix(address, "https:"); ok && !strings.Contains(typed, "://") && t.login.user == "" {
		other, answers, err := a.addOne(ctx, "http:"+plain, t, until.Add(trialTime))
		if err != nil || other == "" || answers && !answered {
			return "http:" + plain, other, err
		}
	}
	return address, wrong, nil
}

// addOne adds a feed, and reports why it cannot be added, and whether a server answered.
func (a *adder) addOne(ctx context.Context, address string, t *trial, until time.Time) (wrong string, answered bool, err error) {
	header := t.login.header()
	if header != nil {
		if _, err := a.store.Feed(ctx, address); err == nil { // a wrong login does not replace its right one
			if failed, ok := errors.AsType[*feedhistory.FetchError](a.tryLogin(ctx, address, header)); ok && isLocked(failed) {
				return wrongLogin, true, nil
			}
		}
		if err := a.setLogin(ctx, address, func() error { return a.keys.Set(map[string]http.Header{address: header}) }); err != nil {
			return "", false, err
		}
	}
	isNew, err := a.add(ctx, address, readers.Outline{})
	if err != nil {
		return "", false, err
	}
	if !isNew {
		// A feed hidden from this server gets the same answer as one behind a login and not
		// here.
		if _, err := a.store.Feed(ctx, address); errors.Is(err, mirror.ErrNotFound) {
			return a.needsLogin(), true, nil
		} else if err == nil && header != nil {
			a.polls.Hurry(mirror.NewFeed(address)) // with its new login
		}
		return "", true, nil
	}
	if t.insists {
		return "", false, nil
	}
	failure, err := a.try(ctx, address, until)
	if failure == nil || err != nil {
		return "", false, err
	}
	failed, answered := errors.AsType[*feedhistory.FetchError](failure)
	t.locked = t.locked || answered && isLocked(failed)
	if header != nil && answered && isLocked(failed) {
		return wrongLogin, true, nil
	}
	_, parsed := errors.AsType[*feedhistory.ParseError](failure)
	return a.explain(failure), parsed || answered && failed.Reason == feedhistory.ReasonStatus, nil
}

const wrongLogin = "The server of the feed does not accept this name with this password."

// tryLogin requests a feed with header fields for its origin.
func (a *adder) tryLogin(ctx context.Context, address string, header http.Header) error {
	credential, err := command.CredentialOf(address, header)
	if err != nil {
		return err
	}
	own := a.client(address).Clone()
	own.Tries, own.Credentials = 1, []feedhistory.Credential{*credential}
	_, err = own.Get(ctx, address)
	return err
}

// try waits for the first poll of a feed, and forgets the feed if the poll shows there
// is none.
func (a *adder) try(ctx context.Context, address string, until time.Time) (failure, err error) {
	for time.Now().Before(until) {
		feed, err := a.store.Feed(ctx, address)
		if errors.Is(err, mirror.ErrNotFound) || err == nil && feed.Head != "" {
			return nil, nil // another feed has replaced it, or it has been read
		}
		if err != nil {
			return nil, err
		}
		waits, runs := a.polls.Status(address)
		if _, ok := a.failures.Get(address); ok && !waits && !runs {
			return a.refuse(ctx, address)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(trialStep):
		}
	}
	a.late.Put(address, true) // its page shows how it goes on
	if waits, runs := a.polls.Status(address); waits || runs {
		return nil, nil
	}
	return a.refuse(ctx, address) // it has failed meanwhile
}

// discard removes a feed without entries, with its login.
func (a *adder) discard(ctx context.Context, address string) error {
	if err := a.store.Remove(ctx, address); err != nil && !errors.Is(err, mirror.ErrNotFound) {
		return err
	}
	if a.keys != nil {
		if err := a.keys.Replace(address, ""); err != nil {
			return err
		}
	}
	a.feeds.forget(address)
	return nil
}

// isLocked reports whether an answer asks for a login.
func isLocked(failed *feedhistory.FetchError) bool {
	return failed.Status == http.StatusUnauthorized || failed.Status == http.StatusForbidden
}

// explain explains to people why an address is not a feed's.
func (a *adder) explain(err error) string {
	failed, _ := errors.AsType[*feedhistory.FetchError](err)
	failed = cmp.Or(failed, &feedhistory.FetchError{})
	_, parsed := errors.AsType[*feedhistory.ParseError](err)
	switch {
	case isLocked(failed):
		return a.needsLogin()
	case errors.Is(failed, fs.ErrNotExist):
		return "There is nothing at this address: the answer was " + strconv.Itoa(failed.Status) + ". Check it for typos."
	case failed.Reason == feedhistory.ReasonRefused || failed.Reason == feedhistory.ReasonLoop:
		return "This server may not read that address: " + feedhistory.Describe(err) + "."
	case parsed:
		return "There is no feed at this address, nor a page naming one. Look for a link to the feed on the website."
	}
	return "The address cannot be read now: " + feedhistory.Describe(err) + "."
}
