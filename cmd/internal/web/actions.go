package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/opml"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// The maximum size of a request in bytes, and the maximum number of feeds in
// it.
const (
	mostUpload = 8 << 20
	mostAdded  = 10_000
)

// addFeeds adds a feed by its URL, or those of an OPML file.
func (s *Server) addFeeds(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, mostUpload)
	typed := strings.TrimSpace(r.FormValue("url"))
	wrong := func(message string) error {
		return s.listFeeds(w, r, http.StatusUnprocessableEntity, &feedsView{Address: typed, Wrong: message})
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
		outlines, err := opml.Read(file)
		if err != nil {
			return wrong("This OPML file cannot be read: " + err.Error() + ". Export it again.")
		}
		if len(outlines) > mostAdded {
			return wrong("The file has more than " + count(mostAdded) + " feeds. Split it, and add one part after the other.")
		}
		return s.addAll(w, r, outlines)
	}
	address, message := newAddress(typed, s.Private)
	if message != "" {
		return wrong(message)
	}
	known, err := s.feeds.like(r.Context(), address)
	if err != nil {
		return err
	}
	insists := r.FormValue("all-the-same") != ""
	if known != nil && known.URL != address && !isFresh(known) && !insists {
		v := &feedsView{Address: address, Known: &feedView{Feed: known, Name: republish.Name(known.URL)}}
		return s.listFeeds(w, r, http.StatusConflict, v)
	}
	address, message, err = s.adder.addTried(r.Context(), typed, address, insists)
	if err != nil {
		return err
	}
	if message != "" {
		return s.listFeeds(w, r, http.StatusUnprocessableEntity, &feedsView{Address: typed, Wrong: message, Insist: address})
	}
	if known != nil && known.URL != address && isFresh(known) { // it was mistyped, perhaps
		if err := s.adder.replace(r.Context(), known.URL, address); err != nil {
			return err
		}
	}
	if page := r.FormValue("instead"); page != "" { // the name of the page with the link to this feed
		if err := s.adder.dropPage(r.Context(), page, address); err != nil {
			return err
		}
	}
	http.Redirect(w, r, s.at("/feeds/"+republish.Name(address)), http.StatusSeeOther)
	return nil
}

// addAll adds the feeds of an OPML file, and says how many it added.
func (s *Server) addAll(w http.ResponseWriter, r *http.Request, outlines []opml.Outline) error {
	added, here := 0, 0
	var unreadable []string
	for _, o := range outlines {
		address, wrong := newAddress(o.URL, s.Private)
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
		} else if err := o.Keep(r.Context(), s.store, known.URL); err != nil {
			return err
		}
		if isNew {
			added++
		} else {
			here++
		}
	}
	key := s.adder.remember(outcome(added, here, unreadable))
	http.Redirect(w, r, s.at("/?outcome="+key), http.StatusSeeOther)
	return nil
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
	if rest, ok := strings.CutPrefix(typed, "feed:"); ok {
		typed = strings.TrimPrefix(rest, "//")
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
		return "", "An address with a password in it would be shown to everybody. Feeds that need one cannot be added here."
	case len(typed) > 2000:
		return "", "The address is too long."
	}
	return u.String(), ""
}

// newAddress is feedAddress, for a feed to add. It refuses feeds the server would not show.
func newAddress(typed string, showsPrivate bool) (address, wrong string) {
	if address, wrong = feedAddress(typed); wrong == "" && !showsPrivate && mirror.NewFeed(address).Private {
		return "", "This address seems to have a secret in it, so the feed is private, and this server shows no private feeds. " +
			"Mirror it with feedhistory sync, and read it with feedhistory serve --private."
	}
	return address, wrong
}

// pollNow lets a feed be polled at once.
func (s *Server) pollNow(w http.ResponseWriter, r *http.Request) error {
	feed, err := s.feedOf(r)
	if err != nil {
		return err
	}
	s.polls.Hurry(feed)
	http.Redirect(w, r, s.at("/feeds/"+r.PathValue("id")), http.StatusSeeOther)
	return nil
}

// confirmRemoval asks whether to remove a feed.
func (s *Server) confirmRemoval(w http.ResponseWriter, r *http.Request) error {
	feed, err := s.feedOf(r)
	if err != nil {
		return err
	}
	v := &feedView{Feed: feed, Name: republish.Name(feed.URL)}
	return s.render(w, r, http.StatusOK, "remove", "Remove "+v.Title(), v)
}

// removeFeed removes a feed with its published documents.
func (s *Server) removeFeed(w http.ResponseWriter, r *http.Request) error {
	feed, err := s.feedOf(r)
	if err != nil {
		return err
	}
	s.polls.Forget(feed.URL)
	if err := s.published.Remove(r.Context(), feed.URL); err != nil {
		return err
	}
	s.feeds.forget(feed.URL)
	s.drawings.documents.Drop(feed.URL)
	http.Redirect(w, r, s.at("/?said=removed"), http.StatusSeeOther)
	return nil
}
