package web

import (
	"cmp"
	"context"
	"html/template"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mmcdole/gofeed"
	"golang.org/x/net/html"
	"golang.org/x/text/unicode/norm"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// A neighbour is the entry before or after another one.
type neighbour struct{ ID, Title, Lang string }

// neighbours returns the next older and the next newer entry of a feed; nil if
// there is none.
func (d *directory) neighbours(ctx context.Context, r *mirror.Record) (older, newer *neighbour, err error) {
	for _, n := range []struct {
		to     **neighbour
		oldest bool
	}{{&older, false}, {&newer, true}} {
		for other, err := range d.store.Entries(ctx, mirror.Query{Feed: r.Feed, Beyond: r.Place(), Oldest: n.oldest, Limit: 1}) {
			if err != nil {
				return nil, nil, err
			}
			*n.to = &neighbour{ID: other.ID, Title: cmp.Or(strings.TrimSpace(other.Content.Title), "Untitled")}
			if e, err := other.Entry(); err == nil {
				(*n.to).Lang = e.Title().Lang
			}
		}
	}
	return older, newer, nil
}

// showRandom redirects to a random entry of a feed.
func (s *Server) showRandom(w http.ResponseWriter, r *http.Request) error {
	feed, err := s.feedOf(r)
	if err != nil {
		return err
	}
	f, err := s.feeds.figuresOf(r.Context(), feed)
	if err != nil {
		return err
	}
	all := int64(0)
	for _, m := range f.months {
		all += m.Entries
	}
	if all == 0 {
		return &problem{http.StatusNotFound, "There is no entry yet", "Come back when the feed has been read."}
	}
	n := rand.Int64N(all)
	query := mirror.Query{Feed: feed.URL, Oldest: true}
	for _, m := range f.months {
		if n < m.Entries {
			query.Since, query.Until, query.Limit = m.Start, m.Start.AddDate(0, 1, 0), int(n)+1
			break
		}
		n -= m.Entries
	}
	id := ""
	for record, err := range s.store.Entries(r.Context(), query) {
		if err != nil {
			return err
		}
		id = record.ID
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, s.at("/feeds/"+republish.Name(feed.URL)+"/entry?"+url.Values{"id": {id}}.Encode()), http.StatusSeeOther)
	return nil
}

// showDay shows the entries of a feed on a day in all years.
func (s *Server) showDay(w http.ResponseWriter, r *http.Request) error {
	feed, err := s.feedOf(r)
	if err != nil {
		return err
	}
	at, err := time.Parse("2006-01-02", "2024-"+r.URL.Query().Get("day")) // a leap year
	if err != nil {
		at = s.now().UTC()
	}
	f, err := s.feeds.figuresOf(r.Context(), feed)
	if err != nil {
		return err
	}
	p := &dayPage{Name: republish.Name(feed.URL), Title: titleOf(feed), Day: at}
	p.List.First = true
	year := -1
	for _, m := range slices.Backward(f.months) {
		if m.Start.Year() == year || m.Start.Month() != at.Month() {
			continue
		}
		year = m.Start.Year()
		since := time.Date(year, at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
		if since.Month() != at.Month() {
			continue // this year does not have the day
		}
		query := mirror.Query{Feed: feed.URL, Since: since, Until: since.AddDate(0, 0, 1), Limit: entriesPerPage}
		for record, err := range s.store.Entries(r.Context(), query) {
			if err != nil {
				return err
			}
			p.List.Items = append(p.List.Items, s.item(record, nil))
		}
	}
	return s.render(w, r, http.StatusOK, "day", "On this day: "+p.Title, p)
}

type dayPage struct {
	Name, Title string
	Day         time.Time
	List        entriesView
}

// Before and After return the neighbouring days, for URLs.
func (p *dayPage) Before() string { return p.Day.AddDate(0, 0, -1).Format("01-02") }
func (p *dayPage) After() string  { return p.Day.AddDate(0, 0, 1).Format("01-02") }

// An enclosure is a file of an entry.
type enclosure struct {
	URL, Kind, Size string
	Audio, Video    bool
}

func enclosuresOf(e *feedhistory.Entry) (all []enclosure) {
	for _, l := range e.Links {
		address := webLink(l.Href)
		if l.Rel != feedhistory.RelEnclosure || address == "" {
			continue
		}
		kind, _, _ := strings.Cut(strings.ToLower(l.Type), "/")
		all = append(all, enclosure{URL: address, Kind: l.Type, Size: sizeText(l.Length), Audio: kind == "audio", Video: kind == "video"})
	}
	return all
}

// An episode is the podcast's description of an entry.
type episode struct {
	Number   string // with its season, if there is one
	Duration string
	Artwork  string // the URL of an image
}

func episodeOf(item *gofeed.Item) (e episode) {
	x := item.ITunesExt
	if x == nil {
		return e
	}
	if number := strings.TrimSpace(x.Episode); number != "" {
		if e.Number = "Episode " + number; strings.TrimSpace(x.Season) != "" {
			e.Number = "Season " + strings.TrimSpace(x.Season) + ", episode " + number
		}
	}
	e.Duration, e.Artwork = durationText(x.Duration), webLink(x.Image)
	return e
}

// durationText returns a duration for people: podcasts write seconds, or hours,
// minutes and seconds with colons.
func durationText(duration string) string {
	seconds := 0
	for part := range strings.SplitSeq(strings.TrimSpace(duration), ":") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || seconds > 1e6 {
			return ""
		}
		seconds = 60*seconds + n
	}
	switch minutes := (seconds + 30) / 60; {
	case seconds == 0:
		return ""
	case seconds < 60:
		return plural(seconds, "second", "seconds")
	case minutes < 60:
		return plural(minutes, "minute", "minutes")
	default:
		return plural(minutes/60, "hour", "hours") + " " + plural(minutes%60, "minute", "minutes")
	}
}

// sizeText returns a length in bytes for people; "" if it is invalid.
func sizeText(length string) string {
	n, err := strconv.ParseInt(strings.TrimSpace(length), 10, 64)
	switch {
	case err != nil || n <= 0:
		return ""
	case n < 1000:
		return plural(n, "byte", "bytes")
	case n < 1_000_000:
		return strconv.FormatInt((n+500)/1000, 10) + " kB"
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB"
}

// marked marks in a text the words beginning with a word of a search, whatever their
// case and accents.
func marked(text string, words []string) template.HTML {
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, isWordRune)
		if end < 0 {
			end = len(text)
		}
		b.WriteString(template.HTMLEscapeString(text[:end]))
		text = text[end:]
		if end = strings.IndexFunc(text, func(r rune) bool { return !isWordRune(r) }); end < 0 {
			end = len(text)
		}
		word := template.HTMLEscapeString(text[:end])
		if folded := fold(text[:end]); slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(folded, w) }) {
			word = "<mark>" + word + "</mark>"
		}
		b.WriteString(word)
		text = text[end:]
	}
	return template.HTML(b.String()) // everything but the marks is escaped
}

// markedIn marks words in sanitised markup.
func markedIn(markup template.HTML, words []string) template.HTML {
	if len(words) == 0 || markup == "" {
		return markup
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(string(markup)))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		if raw := string(z.Raw()); kind == html.TextToken {
			b.WriteString(string(marked(string(z.Text()), words)))
		} else {
			b.WriteString(raw)
		}
	}
	return template.HTML(b.String()) // unchanged except for the marks
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

// fold returns a text in lower case without accents.
func fold(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsMark(r) {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, norm.NFKD.String(text))
}

// foldedWords returns the words of a search, folded.
func foldedWords(search string) []string {
	var words []string
	for word := range strings.FieldsFuncSeq(search, func(r rune) bool { return !isWordRune(r) }) {
		words = append(words, fold(word))
	}
	return words
}
