package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// The flags of private feeds. What they say goes to the origin of the address that
// is given, and nowhere else.
type privateFlags struct {
	credentials
	Netrc bool `help:"Log in with what ~/.netrc, or the file that NETRC names, has for the host."`
}

// private returns the flags, of the verb that has them.
func (f *privateFlags) private() *privateFlags { return f }

// authorized returns a client for what the addresses name, with the credentials that
// were given.
func (w *world) authorized(addresses ...string) (*feedhistory.Client, error) {
	client := w.client(w.stderr)
	if w.privateFlags == nil {
		return client, nil
	}
	return w.authorize(client, addresses)
}

// credentialFor returns what the flags have for an address; nil if that is nothing.
func (f *privateFlags) credentialFor(address string) (*feedhistory.Credential, error) {
	if err := f.read(); err != nil {
		return nil, err
	}
	header := f.fields.Clone()
	if f.Netrc && header.Get("Authorization") == "" {
		authorization, err := netrc(address)
		if err != nil {
			return nil, err
		}
		if authorization != "" {
			if header == nil {
				header = http.Header{}
			}
			header.Set("Authorization", authorization)
		}
	}
	if len(header) == 0 {
		return nil, nil
	}
	return credentialOf(address, header)
}

// credentialOf is a credential for the origin of an address.
func credentialOf(address string, header http.Header) (*feedhistory.Credential, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	c := &feedhistory.Credential{Origin: u.Scheme + "://" + u.Host, Authorization: header.Get("Authorization"), Header: header.Clone()}
	c.Header.Del("Authorization")
	return c, nil
}

// authorize returns a client for the addresses, which must have one origin if there
// is something to be told to it.
func (f *privateFlags) authorize(client *feedhistory.Client, addresses []string) (*feedhistory.Client, error) {
	if err := f.check(); err != nil {
		return nil, usageError(err.Error())
	}
	if len(f.Header) > 0 || f.User != "" || f.TokenEnv != "" {
		for _, other := range addresses[min(1, len(addresses)):] {
			if !iri.AreSameOrigin(addresses[0], other) {
				return nil, usageError("--header, --user, --token-env: what they say goes to one origin, and these are two: " +
					withoutUser(addresses[0]) + ", " + withoutUser(other))
			}
		}
	}
	var credentials []feedhistory.Credential
	for _, address := range addresses {
		c, err := f.credentialFor(address)
		if err != nil {
			return nil, err
		}
		if c != nil {
			credentials = append(credentials, *c)
		}
	}
	if credentials == nil {
		return client, nil
	}
	own := client.Clone()
	own.Policy.Credentials = credentials
	return own, nil
}

// netrc returns the Authorization that a netrc file has for an address; "" for none.
func netrc(address string) (string, error) {
	name := os.Getenv("NETRC")
	if name == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		name = filepath.Join(home, ".netrc")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("--netrc: %w", err)
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	login, password, ok := netrcEntry(string(text), u.Hostname())
	if !ok {
		return "", nil
	}
	return basic(login, password), nil
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// netrcEntry returns what a netrc file has for a host: the first entry with its
// name, else the default one. Macros are passed over.
func netrcEntry(text, host string) (login, password string, ok bool) {
	var words []string
	inMacro := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
			inMacro = false
		case inMacro || strings.HasPrefix(fields[0], "#"):
		case fields[0] == "macdef":
			inMacro = true
		default:
			words = append(words, fields...)
		}
	}
	matches, found := false, false
	for i := 0; i < len(words); i++ {
		word, next := words[i], ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch word {
		case "machine", "default":
			if found {
				return login, password, true
			}
			matches = word == "default" || strings.EqualFold(next, host)
			found = matches
			if word == "machine" {
				i++
			}
		case "login", "password", "account":
			if matches && word == "login" {
				login = next
			} else if matches && word == "password" {
				password = next
			}
			i++
		}
	}
	return login, password, found
}

// The credentials of mirrored feeds are in a file next to the database, which only
// its owner can read. They are not in the database: that is handed on, and served.

// A keyring is that file.
type keyring struct {
	name  string
	mu    sync.Mutex
	feeds map[string]http.Header // by the feeds' URLs
	netrc *privateFlags          // feeds without credentials have those of a netrc file; nil: they have none
}

// keyringName is where the credentials of a database's feeds are.
func (d *database) keyringName() string {
	if !d.isPostgres() {
		return d.DB + ".credentials"
	}
	sum := sha256.Sum256([]byte(d.name()))
	return filepath.Join(filepath.Dir(defaultDB()), "credentials-"+hex.EncodeToString(sum[:4]))
}

// keyring reads the credentials; there may be none.
func (d *database) keyring() (*keyring, error) {
	k := &keyring{name: d.keyringName(), feeds: map[string]http.Header{}}
	text, err := os.ReadFile(k.name)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &k.feeds); err != nil {
		return nil, errors.New(k.name + ": not a file of credentials") // the error might quote one
	}
	return k, nil
}

// set keeps the credentials of feeds; nil for those that have none any more.
func (k *keyring) set(feeds map[string]http.Header) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed := false
	for feed, header := range feeds {
		before, ok := k.feeds[feed]
		switch {
		case header == nil && ok:
			delete(k.feeds, feed)
			changed = true
		case header != nil && !sameHeader(before, header):
			k.feeds[feed] = header
			changed = true
		}
	}
	if !changed {
		return nil
	}
	text, err := json.MarshalIndent(k.feeds, "", "  ")
	if err != nil {
		return err
	}
	part := k.name + "." + rand.Text()[:8]
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(part, k.name)
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}

func sameHeader(a, b http.Header) bool {
	one, _ := json.Marshal(a)
	other, _ := json.Marshal(b)
	return bytes.Equal(one, other)
}

// clientFor returns what makes clients with the credentials of feeds.
func (k *keyring) clientFor(client *feedhistory.Client) func(feed string) *feedhistory.Client {
	var mu sync.Mutex
	own := map[string]*feedhistory.Client{} // nil: none of its own
	return func(feed string) *feedhistory.Client {
		mu.Lock()
		defer mu.Unlock()
		c, ok := own[feed]
		if !ok {
			if credential := k.credential(feed); credential != nil {
				c = client.Clone()
				c.Policy.Credentials = []feedhistory.Credential{*credential}
			}
			own[feed] = c
		}
		return c
	}
}

// credential returns the credential of a feed; nil if it has none.
func (k *keyring) credential(feed string) (c *feedhistory.Credential) {
	k.mu.Lock()
	header := k.feeds[feed]
	k.mu.Unlock()
	if header != nil {
		c, _ = credentialOf(feed, header)
	} else if k.netrc != nil {
		c, _ = k.netrc.credentialFor(feed) // the file was read before, for the feeds that were given
	}
	return c
}

// keep stores the credentials that the flags have for feeds, of one origin, and
// returns all.
func (f *privateFlags) keep(d *database, feeds []string) (*keyring, error) {
	if _, err := f.authorize(&feedhistory.Client{}, feeds); err != nil {
		return nil, err
	}
	k, err := d.keyring()
	if err != nil {
		return nil, err
	}
	if f.Netrc {
		k.netrc = &privateFlags{Netrc: true}
	}
	flags := privateFlags{credentials: f.credentials}
	given := map[string]http.Header{}
	for _, feed := range feeds {
		c, err := flags.credentialFor(feed)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		given[feed] = c.Header.Clone()
		if c.Authorization != "" {
			given[feed].Set("Authorization", c.Authorization)
		}
	}
	return k, k.set(given)
}

// replace gives the credentials of a page to its feed, if that has the same origin.
func (k *keyring) replace(page, feed string) error {
	k.mu.Lock()
	header := k.feeds[page]
	k.mu.Unlock()
	changes := map[string]http.Header{page: nil}
	if header != nil && feed != "" && iri.AreSameOrigin(page, feed) {
		changes[feed] = header
	}
	return k.set(changes)
}
