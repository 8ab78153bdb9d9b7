package main

import (
	"bytes"
	"context"
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

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
)

// A keyring has the private feeds of a database, with their credentials. It stores them
// in a file that only its owner can read, next to the database or, for PostgreSQL, in the
// user's data directory. The database itself does not have credentials, because people
// copy databases, and history servers show them.
type keyring struct {
	name  string
	netrc *privateFlags // the credentials of a netrc file, for feeds without stored credentials; nil if --netrc is not given

	mu    sync.Mutex
	info  os.FileInfo            // about the file, when it was last read; nil if there was none
	feeds map[string]http.Header // the credentials by the feeds' URLs; a header without fields marks a private feed without stored credentials
}

// keyringName returns the name of the file with the credentials for a database's feeds.
func (d *database) keyringName() string {
	if !d.isPostgres() {
		return d.DB + ".credentials"
	}
	sum := sha256.Sum256([]byte(d.name()))
	return filepath.Join(filepath.Dir(defaultDB()), "credentials-"+hex.EncodeToString(sum[:4]))
}

// keyring reads the keyring of the database, which may be empty.
func (d *database) keyring() (*keyring, error) {
	k := &keyring{name: d.keyringName()}
	_, err := k.private()
	return k, err
}

// private returns the private feeds with their credentials. It reads the file again if
// another process has changed it. The caller must not change the result.
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
		return errors.New(k.name + ": not a file of credentials") // err is left out: it might quote a credential
	}
	k.info, k.feeds = info, feeds
	return nil
}

// set stores credentials by the feeds' URLs. With nil, a feed is no longer private. With a
// header without fields, a feed is private and keeps the credentials that it has.
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
	text, err := k.changed(changes) // again, because other processes may have written meanwhile
	if text != nil {
		err = writePrivate(k.name, text)
	}
	return errors.Join(err, unlock(), k.read())
}

// lock keeps other processes from writing the file. A process holds the lock only for an
// instant.
func (k *keyring) lock() (unlock func() error, err error) {
	dir := filepath.Dir(k.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return whileLocked(func() (func() error, error) { return publish.Dir{Path: dir}.Lock(context.Background()) })
}

// changed reads the file, and returns its text after the changes; nil if they change
// nothing.
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

// writePrivate writes or replaces a file, which only its owner can read, in one step.
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

// clientFor returns a function that returns a client with the credentials of a feed; nil
// for a feed without credentials.
func (k *keyring) clientFor(client *feedhistory.Client) func(feed string) *feedhistory.Client {
	type known struct {
		credential *feedhistory.Credential
		client     *feedhistory.Client // nil if the feed has no credentials
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

// credential returns the credential of a feed; nil if it has none. A feed whose credential
// is in a netrc file is private from then on. If the keyring cannot store that, credential
// returns nil.
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
	c, _ = k.netrc.credentialFor(feed) // an error is not new: keep has read the file before
	if c == nil || k.set(map[string]http.Header{feed: {}}) != nil {
		return nil
	}
	return c
}

// keep stores the credentials that the flags give for feeds, which must have one origin,
// and returns the keyring.
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

// replace gives the credentials of a web page to the page's feed, if the feed has the same
// origin, and removes them from the page. If feed is "", it only removes them.
func (k *keyring) replace(page, feed string) error {
	feeds, err := k.private()
	if err != nil {
		return err
	}
	changes := map[string]http.Header{page: nil}
	if header := feeds[page]; header != nil && feed != "" && feedhistory.SameOrigin(page, feed) {
		changes[feed] = header
	}
	return k.set(changes)
}

// pass copies the credentials of a feed to the feed that it has become, if the other feed
// has the same origin and no credentials. It reports whether it has copied them.
func (k *keyring) pass(from, to string) (bool, error) {
	feeds, err := k.private()
	if err != nil || len(feeds[from]) == 0 || len(feeds[to]) > 0 || !feedhistory.SameOrigin(from, to) {
		return false, err
	}
	return true, k.set(map[string]http.Header{to: feeds[from]})
}

// move gives the credentials of a feed to its new address, if the address has the same
// origin. The feed stays private in any case.
func (k *keyring) move(from, to string) error {
	feeds, err := k.private()
	header := feeds[from]
	if err != nil || header == nil {
		return err
	}
	if !feedhistory.SameOrigin(from, to) {
		header = http.Header{}
	}
	return k.set(map[string]http.Header{from: nil, to: header})
}
