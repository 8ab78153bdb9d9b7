package logins

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/exit"
)

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
			return "", exit.UsageError(fmt.Sprintf("--cookies: %s: line %d is not a cookie: seven fields with tabs between them", file, n))
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
