package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/feedhistory/feedhistory/mirror"
)

// A readerLogin is the login of one feed reader. It may only read, so a reader that is lost
// or hostile cannot poll, add, remove or erase.
type readerLogin struct {
	Name  string    `json:"name"`
	Hash  string    `json:"hash"` // the SHA-256 of its password, which is random
	Since time.Time `json:"since"`
}

// The limits for logins.
const (
	mostLogins = 100
	mostName   = 60 // characters
)

// isReader reports whether a request shows the login of a reader (RFC 7617). If the file
// cannot be read, there is none.
func (g *gatekeeper) isReader(r *http.Request) bool {
	name, password, ok := r.BasicAuth()
	if !ok {
		return false
	}
	all, err := g.readers.Load()
	hash := hashOf(password)
	return err == nil && slices.ContainsFunc(all, func(one readerLogin) bool { return one.Name == name && same(one.Hash, hash) })
}

func hashOf(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// errReadOnly answers a reader's login that tries to change something.
var errReadOnly = &problem{
	http.StatusForbidden, "This login may only read", "To change anything, use the server's token.",
}

// A readersPage lists the logins of readers, with a new one.
type readersPage struct {
	Feed           string // the URL of the feed whose page has the form for a login; "" for none
	Readers        []readerLogin
	Name, Password string    // the new login, whose password is shown only now
	Addresses      []address // with the new login
	Private        bool      // whether reading needs a login
	Wrong          string
}

// showReaders shows the logins of readers to the owner.
func (s *Server) showReaders(w http.ResponseWriter, r *http.Request) error {
	return s.listReaders(w, r, http.StatusOK, &readersPage{})
}

func (s *Server) listReaders(w http.ResponseWriter, r *http.Request, status int, p *readersPage) (err error) {
	if p.Readers, err = s.gate.readers.Load(); err != nil {
		return err
	}
	p.Private = s.Private
	w.Header().Set("Referrer-Policy", "no-referrer")
	return s.render(w, r, status, "readers", "Feed readers", p)
}

// addReader makes a login for a reader, and shows the addresses of a feed with it.
func (s *Server) addReader(w http.ResponseWriter, r *http.Request) error {
	name := strings.Join(strings.Fields(r.FormValue("name")), " ")
	p := &readersPage{Name: name, Password: rand.Text()}
	err := s.gate.readers.Change(func(all []readerLogin) ([]readerLogin, error) {
		switch {
		case name == "" || len([]rune(name)) > mostName || strings.ContainsFunc(name, func(c rune) bool { return c == ':' || unicode.IsControl(c) }):
			p.Wrong = "Give the reader a name of at most 60 characters, without a colon."
		case slices.ContainsFunc(all, func(one readerLogin) bool { return one.Name == name }):
			p.Wrong = "There is a reader of that name already. Give this one another name, or revoke that one first."
		case len(all) >= mostLogins:
			p.Wrong = "There are a hundred readers already. Revoke one first."
		default:
			all = append(slices.Clip(all), readerLogin{name, hashOf(p.Password), s.now().UTC().Truncate(time.Second)})
		}
		return all, nil
	})
	if err != nil {
		return err
	}
	if p.Wrong != "" {
		p.Password = ""
		return s.listReaders(w, r, http.StatusUnprocessableEntity, p)
	}
	at, err := url.Parse(s.base())
	if err != nil {
		return err
	}
	at.User = url.UserPassword(name, p.Password)
	p.Addresses = []address{{at.JoinPath("feeds.opml").String() + "?mirrored", "all feeds, as a list (OPML)", "text/x-opml"}}
	if feed := r.FormValue("feed"); feed != "" {
		known, err := s.store.Feed(r.Context(), feed)
		if err != nil {
			return err
		}
		name, err := s.published.Name(r.Context(), known.URL)
		if err != nil {
			return err
		}
		p.Addresses = append(addressesOf(at.JoinPath("feeds", name)), p.Addresses...)
	}
	return s.listReaders(w, r, http.StatusOK, p)
}

// revokeReader ends the login of a reader at once.
func (s *Server) revokeReader(w http.ResponseWriter, r *http.Request) error {
	name := r.FormValue("name")
	err := s.gate.readers.Change(func(all []readerLogin) ([]readerLogin, error) {
		kept := slices.DeleteFunc(slices.Clone(all), func(one readerLogin) bool { return one.Name == name })
		if len(kept) == len(all) {
			return nil, mirror.ErrNotFound
		}
		return kept, nil
	})
	if err != nil {
		return err
	}
	return seeOther(s.at("/readers"))
}

// addressesOf returns the addresses of a published feed.
func addressesOf(at *url.URL) []address {
	return []address{
		{at.JoinPath("index.atom").String(), "Atom, with archives", "application/atom+xml"},
		{at.JoinPath("index.rss").String(), "RSS, with archives", "application/rss+xml"},
		{at.JoinPath("complete.atom").String(), "everything in one document, Atom", "application/atom+xml"},
	}
}
