package command

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/publish"
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

// HeaderFor returns the header fields given by the flags for an address.
func (f *Login) HeaderFor(address string) (http.Header, error) {
	if err := f.Load(); err != nil {
		return nil, err
	}
	header := http.Header{}
	maps.Copy(header, f.Fields)
	if f.Netrc && header.Get("Authorization") == "" {
		authorization, err := netrc(address)
		if err != nil {
			return nil, err
		}
		if authorization != "" {
			header.Set("Authorization", authorization)
		}
	}
	if f.Cookies != "" {
		cookies, err := cookiesFor(f.Cookies, address, time.Now())
		if err != nil {
			return nil, err
		}
		if cookies != "" {
			header.Set("Cookie", cookies)
		}
	}
	return header, nil
}

// CredentialFor returns the same as a credential; nil if there are none.
func (f *Login) CredentialFor(address string) (*feedhistory.Credential, error) {
	header, err := f.HeaderFor(address)
	if len(header) == 0 {
		return nil, err
	}
	return CredentialOf(address, header)
}

// CredentialOf returns a credential for the origin of an address.
func CredentialOf(address string, header http.Header) (*feedhistory.Credential, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	return &feedhistory.Credential{Origin: u.Scheme + "://" + u.Host, Header: header}, nil
}

// Given reports whether there are flags for one origin.
func (f *Login) Given() bool { return len(f.Header) > 0 || f.User != "" || f.TokenEnv != "" }

// Authorize returns a client for the addresses. If the flags give credentials, all
// addresses must have one origin.
func (f *Login) Authorize(client *feedhistory.Client, addresses []string) (*feedhistory.Client, error) {
	if f.Given() {
		for _, other := range addresses[min(1, len(addresses)):] {
			if !feedhistory.SameOrigin(addresses[0], other) {
				return nil, terminal.UsageError("--header, --user, --token-env: credentials are for one origin, but the addresses have two: " +
					terminal.WithoutUser(addresses[0]) + ", " + terminal.WithoutUser(other))
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
	own.Credentials = credentials
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

// PasswordVariable is the environment variable with the password for --user. On the
// command line, other users of the machine could see the password.
const PasswordVariable = "FEEDHISTORY_PASSWORD"

// PasswordOf returns the password of a user, from the environment or from a terminal.
func PasswordOf(user string) (string, error) {
	if password, ok := os.LookupEnv(PasswordVariable); ok {
		return password, nil
	}
	if password, ok := terminal.Password("password of " + terminal.Clean(user) + ": "); ok {
		return password, nil
	}
	return "", terminal.UsageError("--user: there is no password in " + PasswordVariable)
}

const NoToken = "--token-env: the environment variable that it names is empty or not set; give the name of a variable, not the token"

// Credentials are the flags for logging in. The command sends the credentials only to the
// origin of the address.
type Credentials struct {
	Header   []string `sep:"none" placeholder:"FIELD" help:"Header field to send to the address's origin, such as 'X-Key: abc', or @FILE with such fields, one a line, which other users of the machine cannot see (repeatable)."`
	User     string   `xor:"login" placeholder:"NAME" help:"User to log in as, with the password in the environment variable FEEDHISTORY_PASSWORD; without it, a terminal asks."`
	TokenEnv string   `xor:"login" placeholder:"VARIABLE" help:"Environment variable with a bearer token to send."`

	Fields http.Header `kong:"-"` // nil: none

	password *string // as it was typed
}

// Validate refuses a user name with a colon.
func (c *Credentials) Validate() error {
	if strings.Contains(c.User, ":") {
		return errors.New("--user: a name has no colon; set the password in " + PasswordVariable)
	}
	return nil
}

// Load reads the flags and the environment.
func (c *Credentials) Load() error {
	fields := http.Header{}
	given, err := headerLines(c.Header)
	if err != nil {
		return err
	}
	for _, field := range given {
		name, value, ok := strings.Cut(field, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return terminal.UsageError("--header: give a name and a value with a colon between them") // the message does not quote the field: it may be a secret
		}
		value = strings.TrimSpace(value)
		if err := (feedhistory.Credential{Header: http.Header{name: {value}}}).Check(); err != nil {
			return terminal.UsageError("--header: " + err.Error())
		}
		fields.Add(name, value)
	}
	if fields["Authorization"] != nil && (c.User != "" || c.TokenEnv != "") {
		return terminal.UsageError("--header Authorization excludes --user and --token-env")
	}
	switch {
	case c.User != "":
		if c.password == nil {
			password, err := PasswordOf(c.User)
			if err != nil {
				return err
			}
			c.password = &password
		}
		fields.Set("Authorization", basic(c.User, *c.password))
	case c.TokenEnv != "":
		token := strings.TrimSpace(os.Getenv(c.TokenEnv))
		if token == "" {
			return terminal.UsageError(NoToken) // the message does not quote the name: it may be the token itself
		}
		fields.Set("Authorization", "Bearer "+token)
	}
	if err := (feedhistory.Credential{Header: fields}).Check(); err != nil {
		return terminal.UsageError("the credentials cannot be sent: " + err.Error())
	}
	if len(fields) > 0 {
		c.Fields = fields
	}
	return nil
}

// headerLines returns the fields of --header, with those of files.
func headerLines(given []string) (fields []string, err error) {
	for _, field := range given {
		file, ok := strings.CutPrefix(field, "@")
		if !ok {
			fields = append(fields, field)
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, unreadable("--header", err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" {
				fields = append(fields, line)
			}
		}
	}
	return fields, nil
}

// unreadable returns the error for a flag whose file cannot be read.
func unreadable(flag string, err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return terminal.UsageError(flag + ": " + failed.Path + ": " + failed.Err.Error())
	}
	return terminal.UsageError(flag + ": " + err.Error())
}

// Authorize returns the function from which the clients of the harvest protocols get the
// header fields; nil if there are none.
func (c *Credentials) Authorize() func(context.Context, string) (http.Header, error) {
	if c.Fields == nil {
		return nil
	}
	return func(context.Context, string) (http.Header, error) { return c.Fields, nil }
}

// cookiesFor returns the cookies of a file for an address, as the header field Cookie; "" if
// there are none.
func cookiesFor(file, address string, now time.Time) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", unreadable("--cookies", err)
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	var cookies []string
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimPrefix(strings.TrimRight(line, "\r\n"), "#HttpOnly_")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		c, ok := parseCookie(line)
		if !ok { // the message does not quote the line, which is a secret
			return "", terminal.UsageError(fmt.Sprintf("--cookies: %s: line %d is not a cookie: seven fields with tabs between them", file, n))
		}
		if c.isFor(u, now) {
			cookies = append(cookies, c.name+"="+c.value)
		}
	}
	return strings.Join(cookies, "; "), nil
}

// A cookie is a line of a file of cookies.
type cookie struct {
	domain, path, name, value string
	below                     bool // the cookie is also for hosts below the domain
	secure                    bool
	expires                   time.Time // zero for a session's cookie
}

func parseCookie(line string) (c cookie, ok bool) {
	fields := strings.Split(line, "\t")
	if len(fields) == 6 { // an empty value
		fields = append(fields, "")
	}
	if len(fields) != 7 {
		return c, false
	}
	seconds, err := strconv.ParseFloat(fields[4], 64)
	if err != nil {
		return c, false
	}
	if seconds > 0 {
		c.expires = time.Unix(int64(seconds), 0)
	}
	c.domain, c.path, c.name, c.value = strings.ToLower(strings.TrimPrefix(fields[0], ".")), fields[2], fields[5], fields[6]
	c.below, c.secure = strings.EqualFold(fields[1], "TRUE"), strings.EqualFold(fields[3], "TRUE")
	return c, true
}

// isFor reports whether a request to a URL has the cookie (RFC 6265 §5.4).
func (c *cookie) isFor(u *url.URL, now time.Time) bool {
	host, path := strings.ToLower(u.Hostname()), u.EscapedPath()
	if path == "" {
		path = "/"
	}
	inPath := path == c.path || strings.HasPrefix(path, strings.TrimSuffix(c.path, "/")+"/")
	return (host == c.domain || c.below && strings.HasSuffix(host, "."+c.domain)) && inPath &&
		(!c.secure || u.Scheme == "https") && (c.expires.IsZero() || c.expires.After(now))
}

// A SecretFile is a value in JSON, in a file only its owner can read. Several processes may
// share it: each reads it again after another has changed it. Without a Name, the value is in
// memory only. Do not copy a SecretFile after its first use.
type SecretFile[T any] struct {
	Name string

	mu    sync.Mutex
	info  os.FileInfo // about the file, when it was last read; nil if there was none
	value T
}

// Load returns the value, which the caller must not change; zero if there is no file.
func (f *SecretFile[T]) Load() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.read()
	return f.value, err
}

// read reads the file, if it has changed.
func (f *SecretFile[T]) read() error {
	if f.Name == "" {
		return nil
	}
	info, err := os.Stat(f.Name)
	var value T
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.info, f.value = nil, value
		return nil
	case err != nil:
		return err
	case f.info != nil && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size():
		return nil
	}
	text, err := os.ReadFile(f.Name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return errors.New(f.Name + ": not a file of credentials") // err is left out: it might quote a credential
	}
	f.info, f.value = info, value
	return nil
}

// Change stores the result of edit, if it differs from the present value. It may call edit
// twice. edit must not change its argument.
func (f *SecretFile[T]) Change(edit func(T) (T, error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := f.edited(edit)
	if text == nil || f.Name == "" {
		return err
	}
	dir := filepath.Dir(f.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	unlock, err := WhileLocked(func() (func() error, error) { return publish.Dir{Path: dir}.Lock(context.Background()) })
	if err != nil {
		return err
	}
	text, err = f.edited(edit) // again, because other processes may have written meanwhile
	if text != nil {
		err = writePrivate(f.Name, text)
	}
	return errors.Join(err, unlock(), f.read())
}

// edited reads the file, and returns its text after an edit; nil if that changes nothing.
// Without a file, the edit is done.
func (f *SecretFile[T]) edited(edit func(T) (T, error)) ([]byte, error) {
	if err := f.read(); err != nil {
		return nil, err
	}
	value, err := edit(f.value)
	if err != nil {
		return nil, err
	}
	before, err := json.MarshalIndent(f.value, "", "  ")
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil || bytes.Equal(before, text) {
		return nil, err
	}
	if f.Name == "" {
		f.value = value
	}
	return append(text, '\n'), nil
}

// writePrivate writes or replaces a file only its owner can read, in one step. The caller holds
// the lock, so a temporary file already there is a killed process's, and is removed.
func writePrivate(name string, text []byte) error {
	part := name + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
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

// A Keyring has the private feeds of a database, with their credentials: a header without
// fields marks a private feed without stored credentials. Its file is next to the database or,
// for PostgreSQL, in the user's data directory. The database itself does not have credentials,
// because people copy databases, and history servers show them.
type Keyring struct {
	SecretFile[map[string]http.Header] // by the feeds' URLs

	Files *Login // the flags naming files with credentials, for feeds without stored credentials; nil if there are none
}

// NewKeyring returns the keyring in a file.
func NewKeyring(name string) *Keyring {
	return &Keyring{SecretFile: SecretFile[map[string]http.Header]{Name: name}}
}

// Set stores credentials by the feeds' URLs. With nil, a feed is no longer private. With a
// header without fields, a feed is private and keeps its credentials.
func (k *Keyring) Set(changes map[string]http.Header) error {
	return k.Change(func(feeds map[string]http.Header) (map[string]http.Header, error) {
		feeds = maps.Clone(feeds)
		for feed, header := range changes {
			if _, ok := feeds[feed]; header == nil {
				delete(feeds, feed)
			} else if !ok || len(header) > 0 {
				if feeds == nil {
					feeds = map[string]http.Header{}
				}
				feeds[feed] = header
			}
		}
		return feeds, nil
	})
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
		if !ok || !reflect.DeepEqual(c.credential, credential) {
			c = known{credential: credential}
			if credential != nil {
				c.client = client.Clone()
				c.client.Credentials = []feedhistory.Credential{*credential}
			}
			own[feed] = c
		}
		return c.client
	}
}

// Credential returns the credential of a feed; nil if it has none. A feed whose credential is in a
// file named by flags is private from then on. If the keyring cannot store this, Credential returns
// nil.
func (k *Keyring) Credential(feed string) (c *feedhistory.Credential) {
	feeds, err := k.Load()
	if err != nil {
		return nil
	}
	if header := feeds[feed]; len(header) > 0 {
		c, _ = CredentialOf(feed, header)
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
	feeds, err := k.Load()
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
	feeds, err := k.Load()
	if err != nil || len(feeds[from]) == 0 || len(feeds[to]) > 0 || !feedhistory.SameOrigin(from, to) {
		return false, err
	}
	return true, k.Set(map[string]http.Header{to: feeds[from]})
}

// Move gives the credentials of a feed to its new address, if the address has the same
// origin. The feed stays private in any case.
func (k *Keyring) Move(from, to string) error {
	feeds, err := k.Load()
	header := feeds[from]
	if err != nil || header == nil {
		return err
	}
	if !feedhistory.SameOrigin(from, to) {
		header = http.Header{}
	}
	return k.Set(map[string]http.Header{from: nil, to: header})
}

// WhileLocked repeats an action on a publish.Dir as long as another process has the
// lock, for up to ten seconds.
func WhileLocked[T any](do func() (T, error)) (value T, err error) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if value, err = do(); !errors.Is(err, publish.ErrLocked) || time.Now().After(deadline) {
			return value, err
		}
	}
}
