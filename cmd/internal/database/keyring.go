package database

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path/filepath"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
)

// keyringName returns the name of the file with the credentials for a database's feeds.
func (d *Location) keyringName() string {
	if !d.IsPostgres() {
		return d.DB + ".credentials"
	}
	sum := sha256.Sum256([]byte(d.Place()))
	return filepath.Join(filepath.Dir(DefaultDB()), "credentials-"+hex.EncodeToString(sum[:4]))
}

// Keyring reads the keyring of the database, which may be empty.
func (d *Location) Keyring() (*logins.Keyring, error) {
	k := &logins.Keyring{Name: d.keyringName()}
	_, err := k.Private()
	return k, err
}

// Keep stores the credentials given by the flags for feeds, which must have one origin,
// and returns the keyring.
func Keep(f *logins.Login, d *Location, feeds []string) (*logins.Keyring, error) {
	if _, err := f.Authorize(&feedhistory.Client{}, feeds); err != nil {
		return nil, err
	}
	k, err := d.Keyring()
	if err != nil {
		return nil, err
	}
	if f.Netrc || f.Cookies != "" {
		k.Files = &logins.Login{Netrc: f.Netrc, Cookies: f.Cookies}
	}
	flags := logins.Login{Credentials: f.Credentials}
	given := map[string]http.Header{}
	for _, feed := range feeds {
		c, err := flags.CredentialFor(feed)
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
	return k, k.Set(given)
}
