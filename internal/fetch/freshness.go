package fetch

import (
	"net/http"
	"strings"
	"time"
)

// Freshness is what an answer says about how long it stays good, as RFC 9111
// has it for a private cache: s-maxage is for shared ones and not looked at.
// The zero value says nothing.
type Freshness struct {
	// Explicit tells that there is a lifetime: a max-age or Expires. An
	// invalid one counts as a lifetime of zero.
	Explicit bool

	// Lifetime is how long the answer is fresh from its making: max-age, or
	// else Expires less Date. Never negative.
	Lifetime time.Duration

	// Age is how old the answer already was when it came. Zero: new.
	Age time.Duration

	NoStore   bool // not to be kept
	NoCache   bool // not to be used again without asking
	Immutable bool // will not change while it is fresh
}

// Until is when an answer received at the given time stops being fresh, and so
// the earliest time at which asking again makes sense. It is the zero time if
// the answer does not say, and the time of receipt if it is stale at once.
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

// freshness reads the headers of an answer that arrived at the given time.
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

// directives reads one Cache-Control line. Of several max-age the first
// counts (RFC 9111, 4.2.1).
func (f *Freshness) directives(line string) {
	for line != "" {
		var name, value string
		name, value, line = directive(line)
		switch strings.ToLower(name) {
		case "no-store":
			f.NoStore = true
		case "no-cache":
			// With field names it only speaks of those (RFC 9111, 5.2.2.4).
			f.NoCache = f.NoCache || value == ""
		case "immutable":
			f.Immutable = true
		case "max-age":
			if !f.Explicit {
				f.Explicit = true
				f.Lifetime, _ = deltaSeconds(value)
			}
		}
	}
}

// directive cuts the first name or name=value off a list. A value may be
// quoted, and a comma within quotes does not end it.
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

// expires reads the older header. A value that is no date, such as 0, means
// stale already (RFC 9111, 5.3).
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
