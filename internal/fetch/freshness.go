package fetch

import (
	"net/http"
	"strings"
	"time"
)

// Freshness is how long an answer is fresh by its headers, by the rules of RFC 9111 for
// a private cache, which ignores s-maxage. The zero value is that of an answer without
// such headers.
type Freshness struct {
	// Explicit means there is a lifetime: a max-age or Expires. An invalid one counts as a
	// lifetime of zero.
	Explicit bool

	// Lifetime is how long the answer is fresh after it was generated: max-age, or else
	// Expires minus Date. It is never negative.
	Lifetime time.Duration

	// Age is how old the answer already was when it arrived; zero means new.
	Age time.Duration

	NoStore bool // the answer must not be stored
	NoCache bool // the answer must not be used again without asking the server
}

// Until returns when an answer received at the given time stops being fresh: the
// earliest time at which another request makes sense. It returns the zero time if the
// answer does not say, and the time of receipt if the answer is immediately stale.
func (f Freshness) Until(received time.Time) time.Time {
	switch {
	case f.NoStore || f.NoCache:
		return received
	case !f.Explicit:
		return time.Time{}
	default:
		return received.Add(max(f.Lifetime-f.Age, 0))
	}
}

// freshness reads the headers of an answer of the given time.
func freshness(h http.Header, received time.Time) Freshness {
	var f Freshness
	for _, line := range h["Cache-Control"] {
		f.directives(line)
	}
	if age, ok := deltaSeconds(strings.TrimSpace(h.Get("Age"))); ok {
		f.Age = age
	}
	if !f.Explicit {
		f.expires(h, received)
	}
	return f
}

// directives reads one Cache-Control line. Of several max-age directives, the first
// counts (RFC 9111 §4.2.1).
func (f *Freshness) directives(line string) {
	for line != "" {
		var name, value string
		name, value, line = directive(line)
		switch strings.ToLower(name) {
		case "no-store":
			f.NoStore = true
		case "no-cache":
			// With field names it concerns only those fields (RFC 9111 §5.2.2.4).
			f.NoCache = f.NoCache || value == ""
		case "max-age":
			if !f.Explicit {
				f.Explicit = true
				f.Lifetime, _ = deltaSeconds(value)
			}
		}
	}
}

// directive cuts the first name or name=value off a list. A value may be quoted; a comma
// within quotes does not end it.
func directive(s string) (name, value, rest string) {
	end := strings.IndexAny(s, ",=")
	if end < 0 {
		return strings.TrimSpace(s), "", ""
	}
	name, rest = strings.TrimSpace(s[:end]), s[end+1:]
	if s[end] == ',' {
		return name, "", rest
	}
	rest = strings.TrimLeft(rest, " \t")
	if quoted, ok := strings.CutPrefix(rest, `"`); ok {
		value, rest, _ = strings.Cut(quoted, `"`)
		_, rest, _ = strings.Cut(rest, ",")
		return name, value, rest
	}
	value, rest, _ = strings.Cut(rest, ",")
	return name, strings.TrimSpace(value), rest
}

// expires reads the Expires header. With an invalid date, such as 0, the answer is
// already stale (RFC 9111 §5.3).
func (f *Freshness) expires(h http.Header, received time.Time) {
	v := h.Get("Expires")
	if v == "" {
		return
	}
	f.Explicit = true
	at, ok := parseDate(v)
	if !ok {
		return
	}
	made, ok := parseDate(h.Get("Date"))
	if !ok {
		made = received
	}
	f.Lifetime = max(at.Sub(made), 0)
}
