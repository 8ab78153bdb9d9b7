package logins

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/outputs"
	"github.com/feedhistory/feedhistory/publish"
)

// A Keyring has the private feeds of a database, with their credentials. It stores them
// in a file only its owner can read, next to the database or, for PostgreSQL, in the
// user's data directory. The database itself does not have credentials, because people
// copy databases, and history servers show them.
type Keyring struct {
	Name  string
	Files *Login // the flags naming files with credentials, for feeds without stored credentials; nil if there are none

	mu    sync.Mutex
	info  os.FileInfo            // about the file, when it was last read; nil if there was none
	Feeds map[string]http.Header // the credentials by the feeds' URLs; a header without fields marks a private feed without stored credentials
}

// Private returns the private feeds with their credentials. It reads the file again if
// another process has changed it. The caller must not change the result.
func (k *Keyring) Private() (map[string]http.Header, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Feeds, k.read()
}

// read reads the file, if it has changed.
func (k *Keyring) read() error {
	info, err := os.Stat(k.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.info, k.Feeds = nil, map[string]http.Header{}
		return nil
	case err != nil:
		return err
	case k.info != nil && os.SameFile(info, k.info) && info.ModTime().Equal(k.info.ModTime()) && info.Size() == k.info.Size():
		return nil
	}
	text, err := os.ReadFile(k.Name)
	if err != nil {
		return err
	}
	feeds := map[string]http.Header{}
	if err := json.Unmarshal(text, &feeds); err != nil {
		return errors.New(k.Name + ": not a file of credentials") // err is left out: it might quote a credential
	}
	k.info, k.Feeds = info, feeds
	return nil
}

// Set stores credentials by the feeds' URLs. With nil, a feed is no longer private. With a
// header without fields, a feed is private and keeps its credentials.
func (k *Keyring) Set(changes map[string]http.Header) error {
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
		err = writePrivate(k.Name, text)
	}
	return errors.Join(err, unlock(), k.read())
}

// lock keeps other processes from writing the file. A process holds the lock only for an
// instant.
func (k *Keyring) lock() (unlock func() error, err error) {
	dir := filepath.Dir(k.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return outputs.WhileLocked(func() (func() error, error) { return publish.Dir{Path: dir}.Lock(context.Background()) })
}

// changed reads the file, and returns its text after the changes; nil if they change
// nothing.
func (k *Keyring) changed(changes map[string]http.Header) ([]byte, error) {
	if err := k.read(); err != nil {
		return nil, err
	}
	feeds := maps.Clone(k.Feeds)
	for feed, header := range changes {
		if _, ok := feeds[feed]; header == nil {
			delete(feeds, feed)
		} else if !ok || len(header) > 0 {
			feeds[feed] = header
		}
	}
	before, err := json.MarshalIndent(k.Feeds, "", "  ")
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

// ClientFor returns a function that returns a client with the credentials of a feed;
// nil for a feed without credentials.
func (k *Keyring) ClientFor(client *feedhistory.Client) func(feed string) *feedhistory.Client {
	type known struct {
		credential *feedhistory.Credential
		client     *feedhistory.Client // nil if the feed has no credentials
	}
	var mu sync.Mutex
	own := map[string]known{}
	return func(feed string) *feedhistory.Client {
		credential := k.Credential(feed)
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

// Credential returns the credential of a feed; nil if it has none. A feed whose credential is in a
// file named by flags is private from then on. If the keyring cannot store this, Credential returns
// nil.
func (k *Keyring) Credential(feed string) (c *feedhistory.Credential) {
	feeds, err := k.Private()
	if err != nil {
		return nil
	}
	if header := feeds[feed]; len(header) > 0 {
		c, _ = credentialOf(feed, header)
		return c
	}
	if k.Files == nil {
		return nil
	}
	c, _ = k.Files.CredentialFor(feed) // an error is not new: keep has read the file before
	if c == nil || k.Set(map[string]http.Header{feed: {}}) != nil {
		return nil
	}
	return c
}

// Replace gives the credentials of a web page to the page's feed, if the feed has the same
// origin, and removes them from the page. If feed is "", it only removes them.
func (k *Keyring) Replace(page, feed string) error {
	feeds, err := k.Private()
	if err != nil {
		return err
	}
	changes := map[string]http.Header{page: nil}
	if header := feeds[page]; header != nil && feed != "" && feedhistory.SameOrigin(page, feed) {
		changes[feed] = header
	}
	return k.Set(changes)
}

// Pass copies the credentials of a feed to the feed it has become, if the other feed has
// the same origin and no credentials. It reports whether it has copied them.
func (k *Keyring) Pass(from, to string) (bool, error) {
	feeds, err := k.Private()
	if err != nil || len(feeds[from]) == 0 || len(feeds[to]) > 0 || !feedhistory.SameOrigin(from, to) {
		return false, err
	}
	return true, k.Set(map[string]http.Header{to: feeds[from]})
}

// Move gives the credentials of a feed to its new address, if the address has the same
// origin. The feed stays private in any case.
func (k *Keyring) Move(from, to string) error {
	feeds, err := k.Private()
	header := feeds[from]
	if err != nil || header == nil {
		return err
	}
	if !feedhistory.SameOrigin(from, to) {
		header = http.Header{}
	}
	return k.Set(map[string]http.Header{from: nil, to: header})
}
