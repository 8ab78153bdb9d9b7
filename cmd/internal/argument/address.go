// Package argument reads arguments and the values of flags as people type them: addresses,
// the names of files, sizes and times.
package argument

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
)

// WithoutUser removes the user and the password from a URL, for messages. From text
// other than a URL that may contain a password, it removes everything that may be one.
func WithoutUser(arg string) string {
	u, err := feedhistory.ParseURL(arg)
	switch {
	case err == nil && u.User != nil:
		u.User = nil
		return u.String()
	case err == nil && u.Opaque == "":
		return arg
	}
	scheme, rest := "", arg
	if i := strings.Index(arg, "://"); i >= 0 {
		scheme, rest = arg[:i+3], arg[i+3:]
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 || !strings.Contains(rest[:at], ":") && (scheme == "" || strings.ContainsAny(rest[:at], "/?#")) {
		return arg
	}
	return scheme + "…" + rest[at:]
}

// SiteName returns the part common to all addresses of a site: the name registered by
// the site's owner or, if there is none, the host.
func SiteName(address string) string {
	host := feedhistory.HostOf(address)
	u, err := feedhistory.ParseURL(address)
	if err != nil {
		return host
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return host
	}
	site, err := publicsuffix.EffectiveTLDPlusOne(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
	if err != nil {
		return host
	}
	return site
}

// IsURL reports whether an argument is a URL rather than a file's name.
func IsURL(arg string) bool {
	scheme, _, ok := strings.Cut(arg, "://")
	return ok && scheme != "" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// IsWeb reports whether an address is an absolute URL of the web.
func IsWeb(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// WebAddress returns the URL people mean by example.org/feed or feed://example.org/; it
// returns other text unchanged. If there is no scheme, it is https, or http for this
// machine itself.
func WebAddress(arg string) string {
	address := strings.TrimSpace(arg)
	isFeed := len(address) >= len("feed:") && strings.EqualFold(address[:len("feed:")], "feed:")
	if isFeed {
		address = strings.TrimPrefix(address[len("feed:"):], "//")
	}
	switch {
	case IsURL(address) && isFeed:
		return address
	case IsURL(address):
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
// an IP address or, before a path other than a file's, any name.
func isHost(text string) bool {
	host := hostOf(text)
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	if !isName(host) {
		return false
	}
	if suffix, official := publicsuffix.PublicSuffix(host); official && suffix != host {
		return true
	}
	if !strings.Contains(text, "/") { // without a path, it may be anything
		return false
	}
	dir, _, _ := strings.Cut(text, "/") // such as nas.lan/feed and intranet/feed, unless a directory has the name
	_, err := os.Stat(dir)
	return err != nil
}

// isName reports whether text can be the name of a host.
func isName(text string) bool {
	for _, label := range strings.Split(text, ".") {
		if label == "" || strings.HasPrefix(label, "-") || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" && isASCII(label) {
			return false
		}
	}
	return true
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

// hostOf returns the host at the beginning of text, in lower case.
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

// SourceAddress returns the URL people mean by an argument that may also be the name of a
// file. It returns the argument itself, as a file's name, if the file exists or the name
// has no slash, unless the argument begins with feed:.
func SourceAddress(arg string) string {
	if address := WebAddress(arg); address != arg {
		if _, err := os.Stat(arg); err != nil && strings.Contains(arg, "/") || strings.HasPrefix(strings.ToLower(arg), "feed:") {
			return address
		}
	}
	return arg
}

// CheckListed does the same as CheckURL for an address in a list, which has a scheme unless
// its host is known.
func CheckListed(address string) error {
	if !IsURL(address) && WebAddress(address) != address {
		suffix, official := publicsuffix.PublicSuffix(hostOf(address))
		if !official || suffix == hostOf(address) {
			return exit.UsageError(WithoutUser(address) + " is not a URL: a URL begins with https:// or http://")
		}
	}
	return CheckURL(address)
}

// CheckURL refuses URLs from which no feed can be fetched. The message does not contain a
// password.
func CheckURL(arg string) error {
	arg = WebAddress(arg)
	shown := WithoutUser(arg)
	u, err := feedhistory.ParseURL(arg)
	var why *url.Error
	switch {
	case arg == "":
		return exit.UsageError("give a URL: it begins with https:// or http://")
	case !IsURL(arg):
		return exit.UsageError(shown + " is not a URL: a URL begins with https:// or http://")
	case err != nil && shown != arg:
		return exit.UsageError(shown + " is not a URL")
	case errors.As(err, &why):
		return exit.UsageError(arg + " is not a URL: " + why.Err.Error())
	case err != nil:
		return exit.UsageError(arg + " is not a URL: " + err.Error())
	case u.Scheme != "http" && u.Scheme != "https":
		return exit.UsageError(fmt.Sprintf("%s: unsupported scheme %q: use https or http", shown, u.Scheme))
	case u.Hostname() == "":
		return exit.UsageError(shown + " is not a URL: it has no host")
	case u.User != nil:
		return exit.UsageError(shown + ": a user or password in the URL; take it out of the URL, and log in with --user")
	}
	return nil
}

// FeedName returns the URL by which the store names a feed.
func FeedName(arg string) string {
	arg, _, _ = strings.Cut(strings.TrimSpace(arg), "#")
	return WebAddress(arg)
}
