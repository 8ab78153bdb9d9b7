// Package logins has the credentials for private feeds: from flags, from the environment,
// from a netrc file, and from a mirror's keyring.
package logins

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
)

// Login are the flags for private feeds. The command sends the credentials only to
// the origin of the address.
type Login struct {
	Credentials
	Netrc   bool   `help:"Log in with the entry for the host in ~/.netrc, or in the file that NETRC names."`
	Cookies string `placeholder:"FILE" help:"Send the cookies for the address from a file as curl and yt-dlp write it."`
}

// LoginFlags returns f: a verb with this method reads private feeds.
func (f *Login) LoginFlags() *Login { return f }

// Verify refuses flags without a password, a token or a file that can be read, before
// anything is done.
func (f *Login) Verify() error {
	if f.Cookies != "" {
		if _, err := cookiesFor(f.Cookies, "", time.Time{}); err != nil {
			return err
		}
	}
	return f.Load()
}

// CredentialFor returns the credential given by the flags for an address; nil if they
// give none.
func (f *Login) CredentialFor(address string) (*feedhistory.Credential, error) {
	if err := f.Load(); err != nil {
		return nil, err
	}
	header := f.Fields.Clone()
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
	if f.Cookies != "" {
		cookies, err := cookiesFor(f.Cookies, address, time.Now())
		if err != nil {
			return nil, err
		}
		if header == nil {
			header = http.Header{}
		}
		if cookies != "" {
			header.Set("Cookie", cookies)
		}
	}
	if len(header) == 0 {
		return nil, nil
	}
	return credentialOf(address, header)
}

// credentialOf returns a credential for the origin of an address.
func credentialOf(address string, header http.Header) (*feedhistory.Credential, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	c := &feedhistory.Credential{Origin: u.Scheme + "://" + u.Host, Authorization: header.Get("Authorization"), Header: header.Clone()}
	c.Header.Del("Authorization")
	return c, nil
}

// Authorize returns a client for the addresses. If the flags give credentials, all
// addresses must have one origin.
func (f *Login) Authorize(client *feedhistory.Client, addresses []string) (*feedhistory.Client, error) {
	if err := f.Check(); err != nil {
		return nil, exit.UsageError(err.Error())
	}
	if len(f.Header) > 0 || f.User != "" || f.TokenEnv != "" {
		for _, other := range addresses[min(1, len(addresses)):] {
			if !feedhistory.SameOrigin(addresses[0], other) {
				return nil, exit.UsageError("--header, --user, --token-env: credentials are for one origin, but the addresses have two: " +
					argument.WithoutUser(addresses[0]) + ", " + argument.WithoutUser(other))
			}
		}
	}
	var credentials []feedhistory.Credential
	for _, address := range addresses {
		c, err := f.CredentialFor(address)
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

// netrc returns the netrc file's Authorization for an address; "" if it has none.
func netrc(address string) (string, error) {
	name := os.Getenv("NETRC")
	if name == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", unreadable("--netrc", err)
		}
		name = filepath.Join(home, ".netrc")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", unreadable("--netrc", err)
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

// netrcEntry returns the entry of a netrc file for a host: the first with its name,
// else the default one. It skips macros.
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
