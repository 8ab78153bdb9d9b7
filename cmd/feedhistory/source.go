package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/feedhistory/feedhistory"
)

// isURL reports whether an argument is a URL rather than a file's name.
func isURL(arg string) bool {
	scheme, _, ok := strings.Cut(arg, "://")
	return ok && scheme != "" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// webAddress returns the URL that people mean by example.org/feed or
// feed://example.org/; it returns other text unchanged. If there is no scheme, it is
// https, or http for this machine itself.
func webAddress(arg string) string {
	address := strings.TrimSpace(arg)
	isFeed := len(address) >= len("feed:") && strings.EqualFold(address[:len("feed:")], "feed:")
	if isFeed {
		address = strings.TrimPrefix(address[len("feed:"):], "//")
	}
	switch {
	case isURL(address) && isFeed:
		return address
	case isURL(address):
		return arg
	case isFeed || isHost(address):
		scheme := "https://"
		if host := hostOf(address); host == "localhost" || isLoopback(host) {
			scheme = "http://"
		}
		return scheme + address
	}
	return arg
}

// isHost reports whether text begins with a host: a name below a public suffix, localhost,
// or an IP address.
func isHost(text string) bool {
	host := hostOf(text)
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	suffix, official := publicsuffix.PublicSuffix(host)
	return official && suffix != host && !strings.HasPrefix(host, ".") && !strings.ContainsAny(host, " @\\")
}

// hostOf returns the host that text begins with, in lower case.
func hostOf(text string) string {
	host, _, _ := strings.Cut(text, "/")
	host, _, _ = strings.Cut(host, "?")
	host, _, _ = strings.Cut(host, "#")
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		if _, err := strconv.ParseUint(host[i+1:], 10, 16); err == nil {
			host = host[:i]
		}
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// sourceAddress returns the URL that people mean by an argument that may also be the name
// of a file. It returns the argument itself, as a file's name, if the file exists or the
// name has no slash, unless the argument begins with feed:.
func sourceAddress(arg string) string {
	if address := webAddress(arg); address != arg {
		if _, err := os.Stat(arg); err != nil && strings.Contains(arg, "/") || strings.HasPrefix(strings.ToLower(arg), "feed:") {
			return address
		}
	}
	return arg
}

// checkURL refuses URLs from which no feed can be fetched. The message does not contain a
// password.
func checkURL(arg string) error {
	arg = webAddress(arg)
	shown := withoutUser(arg)
	u, err := feedhistory.ParseURL(arg)
	var why *url.Error
	switch {
	case !isURL(arg):
		return usageError(shown + " is not a URL: a URL begins with https:// or http://")
	case err != nil && shown != arg:
		return usageError(shown + " is not a URL")
	case errors.As(err, &why):
		return usageError(arg + " is not a URL: " + why.Err.Error())
	case err != nil:
		return usageError(arg + " is not a URL: " + err.Error())
	case u.Scheme != "http" && u.Scheme != "https":
		return usageError(fmt.Sprintf("%s: unsupported scheme %q: use https or http", shown, u.Scheme))
	case u.Hostname() == "":
		return usageError(shown + " is not a URL: it has no host")
	case u.User != nil:
		return usageError(shown + ": a user or password in the URL; take it out of the URL")
	}
	return nil
}

// document reads the document that an argument names: a URL, a file, or standard input.
// With an error, it returns the part that it could read, or nil.
func (w *world) document(arg, base string) (*feedhistory.Document, error) {
	arg = sourceAddress(arg)
	if isURL(arg) {
		if err := checkURL(arg); err != nil {
			return nil, err
		}
		if base != "" {
			return nil, usageError("--base is for files and standard input: a document at a URL has its own base")
		}
		client, err := w.authorized(arg)
		if err != nil {
			return nil, err
		}
		return client.Get(w.ctx, arg)
	}
	in, err := w.open(arg)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return feedhistory.Parser{Limits: w.client(w.Stderr).Limits}.Parse(in, base)
}

// open opens a file or standard input for a verb that also accepts URLs.
func (w *world) open(arg string) (io.ReadCloser, error) {
	f, err := w.openFile(arg)
	if errors.Is(err, errNoFile) {
		err = &fs.PathError{Op: "open", Path: arg, Err: fmt.Errorf("%w (a URL begins with https:// or http://)", errNoFile)}
	}
	return f, err
}

var (
	errNoFile = errors.New("there is no such file")
	errIsURL  = errors.New("a URL cannot be read here, only a file or standard input")
)

// openFile opens a file or standard input.
func (w *world) openFile(arg string) (io.ReadCloser, error) {
	if arg == "-" {
		return io.NopCloser(w.stdin), nil
	}
	f, err := os.Open(arg)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist) && isURL(arg):
		err = errIsURL
	case errors.Is(err, fs.ErrNotExist):
		err = errNoFile
	default:
		return nil, err
	}
	return nil, &fs.PathError{Op: "open", Path: arg, Err: err}
}
