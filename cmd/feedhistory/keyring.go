package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/publish"
)

// A keyring has the private feeds of a database, with their credentials, in a file
// next to it that only its owner can read. They are not in the database: that is
// handed on, and served.
type keyring struct {
	name  string
	netrc *privateFlags // feeds without credentials have those of a netrc file; nil: they have none

	mu    sync.Mutex
	info  os.FileInfo            // of the file as it was read; nil: there was none
	feeds map[string]http.Header // by the feeds' URLs; without fields, those that are private though nothing is stored for them
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
	k := &keyring{name: d.keyringName()}
	_, err := k.private()
	return k, err
}

// private returns the private feeds with what is stored for them, as they are now:
// another process may have added some. The result is not to be changed.
func (k *keyring) private() (map[string]http.Header, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.feeds, k.read()
}

// read reads the file, if it has changed.
func (k *keyring) read() error {
	info, err := os.Stat(k.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.info, k.feeds = nil, map[string]http.Header{}
		return nil
	case err != nil:
		return err
	case k.info != nil && os.SameFile(info, k.info) && info.ModTime().Equal(k.info.ModTime()) && info.Size() == k.info.Size():
		return nil
	}
	text, err := os.ReadFile(k.name)
	if err != nil {
		return err
	}
	feeds := map[string]http.Header{}
	if err := json.Unmarshal(text, &feeds); err != nil {
		return errors.New(k.name + ": not a file of credentials") // the error might quote one
	}
	k.info, k.feeds = info, feeds
	return nil
}

// set stores the credentials of feeds: nil for those that are not private any more;
// without fields for those that are, and keep what is stored for them.
func (k *keyring) set(changes map[string]http.Header) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if text, err := k.changed(changes); text == nil {
		return err
	}
	unlock, err := k.lock()
	if err != nil {
		return err
	}
	text, err := k.changed(changes) // what other processes have written by now
	if text != nil {
		err = writePrivate(k.name, text)
	}
	return errors.Join(err, unlock(), k.read())
}

// lock keeps other processes from writing the file. They do so for an instant only.
func (k *keyring) lock() (unlock func() error, err error) {
	dir := filepath.Dir(k.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for range 1000 {
		unlock, err = publish.Dir{Path: dir}.Lock()
		if !errors.Is(err, publish.ErrLocked) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return unlock, err
}

// changed reads the file, and returns what it is to be after the changes; nil if they
// change nothing.
func (k *keyring) changed(changes map[string]http.Header) ([]byte, error) {
	if err := k.read(); err != nil {
		return nil, err
	}
	feeds := maps.Clone(k.feeds)
	for feed, header := range changes {
		if _, ok := feeds[feed]; header == nil {
			delete(feeds, feed)
		} else if !ok || len(header) > 0 {
			feeds[feed] = header
		}
	}
	before, err := json.MarshalIndent(k.feeds, "", "  ")
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(feeds, "", "  ")
	if err != nil || bytes.Equal(before, text) {
		return nil, err
	}
	return append(text, '\n'), nil
}

// writePrivate makes a file that only its owner can read, in one step.
func writePrivate(name string, text []byte) error {
	part := name + "." + rand.Text()[:8]
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(part, name)
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}

// clientFor returns what makes clients with the credentials of feeds.
func (k *keyring) clientFor(client *feedhistory.Client) func(feed string) *feedhistory.Client {
	type known struct {
		credential *feedhistory.Credential
		client     *feedhistory.Client // nil: none of its own
	}
	var mu sync.Mutex
	own := map[string]known{}
	return func(feed string) *feedhistory.Client {
		credential := k.credential(feed)
		mu.Lock()
		defer mu.Unlock()
		c, ok := own[feed]
		if !ok || !sameCredential(c.credential, credential) {
			c = known{credential: credential}
			if credential != nil {
				c.client = client.Clone()
				c.client.Policy.Credentials = []feedhistory.Credential{*credential}
			}
			own[feed] = c
		}
		return c.client
	}
}

func sameCredential(a, b *feedhistory.Credential) bool {
	one, _ := json.Marshal(a)
	other, _ := json.Marshal(b)
	return bytes.Equal(one, other)
}

// credential returns the credential of a feed; nil if it has none. A feed that is
// read with what a netrc file has is private from then on: it has none if that
// cannot be noted.
func (k *keyring) credential(feed string) (c *feedhistory.Credential) {
	feeds, err := k.private()
	if err != nil {
		return nil
	}
	if header := feeds[feed]; len(header) > 0 {
		c, _ = credentialOf(feed, header)
		return c
	}
	if k.netrc == nil {
		return nil
	}
	c, _ = k.netrc.credentialFor(feed) // the file was read before, for the feeds that were given
	if c == nil || k.set(map[string]http.Header{feed: {}}) != nil {
		return nil
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

// replace gives the credentials of a page to its feed, if that has the same origin;
// without a feed they are forgotten.
func (k *keyring) replace(page, feed string) error {
	feeds, err := k.private()
	if err != nil {
		return err
	}
	changes := map[string]http.Header{page: nil}
	if header := feeds[page]; header != nil && feed != "" && iri.AreSameOrigin(page, feed) {
		changes[feed] = header
	}
	return k.set(changes)
}

// pass gives the credentials of a feed also to the one that it has become, if that has
// the same origin and none of its own. It reports whether it did.
func (k *keyring) pass(from, to string) (bool, error) {
	feeds, err := k.private()
	if err != nil || len(feeds[from]) == 0 || len(feeds[to]) > 0 || !iri.AreSameOrigin(from, to) {
		return false, err
	}
	return true, k.set(map[string]http.Header{to: feeds[from]})
}

// move gives the credentials of a feed to its new address, if that has the same
// origin. What is mirrored stays private in any case.
func (k *keyring) move(from, to string) error {
	feeds, err := k.private()
	header := feeds[from]
	if err != nil || header == nil {
		return err
	}
	if !iri.AreSameOrigin(from, to) {
		header = http.Header{}
	}
	return k.set(map[string]http.Header{from: nil, to: header})
}
