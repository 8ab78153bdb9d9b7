package web

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/mirror"
)

// A selection is a request for entries.
type selection struct {
	Search string
	Month  string    // the first month, as in "2003-11"; "" means all
	Span   int       // the number of months
	Day    int       // the day of the month; zero means all
	From   time.Time // the beginning of the period
	To     time.Time // the last day of the period
	Gone   bool      // only entries no longer part of the feed
	Oldest bool      // oldest entries first
}

// newSelection reads the query of a URL, and returns the query for the entries of its page.
// It ignores invalid values.
func newSelection(q url.Values) (selection, mirror.Query) {
	s := selection{Search: strings.TrimSpace(q.Get("q")), Gone: q.Get("deleted") != "", Oldest: q.Get("order") == "oldest"}
	query := mirror.Query{Search: s.Search, Prefix: isBeginning(s.Search), Gone: s.Gone, Oldest: s.Oldest, Limit: entriesPerPage + 1}
	if from, err := time.Parse("2006-01", q.Get("month")); err == nil {
		s.Month, s.From, s.Span = q.Get("month"), from, 1
		if span, err := strconv.Atoi(q.Get("span")); err == nil && 1 < span && span <= 1200 {
			s.Span = span
		}
		query.Since, query.Until = from, from.AddDate(0, s.Span, 0)
		if n, err := strconv.Atoi(q.Get("day")); err == nil && s.Span == 1 && n >= 1 && n <= query.Until.AddDate(0, 0, -1).Day() {
			s.Day, s.From = n, from.AddDate(0, 0, n-1)
			query.Since, query.Until = s.From, s.From.AddDate(0, 0, 1)
		}
		s.To = query.Until.AddDate(0, 0, -1)
	}
	query.Beyond = parseToken(q.Get("before"))
	return s, query
}

// Asked reports whether the list has only a selection of the entries.
func (s *selection) Asked() bool { return s.Search != "" || s.Month != "" || s.Gone }

// A filter is a condition of a list.
type filter struct {
	Says    string
	Without string // the query of the list without the condition
}

// Filters returns the conditions of the list.
func (s *selection) Filters() (all []filter) {
	without := func(drop func(*selection)) string {
		other := *s
		drop(&other)
		return other.page("")
	}
	if s.Search != "" {
		all = append(all, filter{"With “" + s.Search + "”", without(func(s *selection) { s.Search = "" })})
	}
	if s.Month != "" {
		says := "From " + s.From.Format("January 2006")
		switch {
		case s.Span == 12 && s.From.Month() == time.January:
			says = "From " + s.From.Format("2006")
		case s.Span > 1:
			says += " to " + s.To.Format("January 2006")
		case s.Day > 0:
			says = "From " + day(s.From)
		}
		all = append(all, filter{says, without(func(s *selection) { s.Month, s.Span, s.Day = "", 0, 0 })})
	}
	if s.Gone {
		all = append(all, filter{"No longer part of the feed", without(func(s *selection) { s.Gone = false })})
	}
	return all
}

// period returns the query of the same list for some months only.
func (s *selection) period(from time.Time, months int) string {
	other := *s
	other.Month, other.Span, other.Day = from.Format("2006-01"), months, 0
	return other.page("")
}

// contains reports whether the list's period contains these months.
func (s *selection) contains(from time.Time, months int) bool {
	return s.Month != "" && !from.Before(s.From) && !from.AddDate(0, months, 0).After(s.To.AddDate(0, 0, 1))
}

// isPeriod reports whether the list's period is exactly these months.
func (s *selection) isPeriod(from time.Time, months int) bool {
	return s.Month != "" && s.From.Equal(from) && s.Span == months
}

// page returns the query of the page from a place on.
func (s *selection) page(before string) string {
	q := url.Values{}
	if s.Search != "" {
		q.Set("q", s.Search)
	}
	if s.Month != "" {
		q.Set("month", s.Month)
	}
	if s.Span > 1 {
		q.Set("span", strconv.Itoa(s.Span))
	}
	if s.Day > 0 {
		q.Set("day", strconv.Itoa(s.Day))
	}
	if s.Gone {
		q.Set("deleted", "1")
	}
	if s.Oldest {
		q.Set("order", "oldest")
	}
	if before != "" {
		q.Set("before", before)
	}
	return "?" + q.Encode()
}

// Turned returns the query of the same list in the opposite order.
func (s *selection) Turned() string {
	other := *s
	other.Oldest = !s.Oldest
	return other.page("")
}

// All returns the query of all entries, in the same order.
func (s *selection) All() string { return (&selection{Oldest: s.Oldest}).page("") }

// isBeginning reports whether the last word of a search may be incomplete,
// because somebody is still typing. One or two letters do not count, because
// too many words begin with them.
func isBeginning(search string) bool {
	last := search[strings.LastIndexFunc(search, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) })+1:]
	return utf8.RuneCountInString(last) > 2
}

// token encodes a place for a URL.
func token(c *mirror.Place) string {
	text := c.Time.UTC().Format(time.RFC3339Nano) + "\n" + c.Feed + "\n" + c.ID
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parseToken decodes a token; nil, which means the first page, if it is
// invalid.
func parseToken(token string) *mirror.Place {
	text, err := base64.RawURLEncoding.DecodeString(token)
	parts := strings.SplitN(string(text), "\n", 3)
	if err != nil || len(parts) < 3 || !utf8.Valid(text) {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, parts[0])
	if err != nil {
		return nil
	}
	return &mirror.Place{Time: at, Feed: parts[1], ID: parts[2]}
}
