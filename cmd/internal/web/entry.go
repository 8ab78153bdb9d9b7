package web

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"html/template"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/words"
	"github.com/feedhistory/feedhistory/republish"
	"github.com/feedhistory/feedhistory/togofeed"
	"github.com/mmcdole/gofeed"
	"golang.org/x/net/html"
)

type entryPage struct {
	Feed    string // the short name of the feed
	Of      string // the title of the feed
	ID      string
	State   mirror.State
	Removed time.Time // when the entry left the feed; zero if it is part of it
	entryText
	Added, Changed time.Time
	Link           string // the original; "" if unknown
	Sound          enclosures
	Artwork        string     // the path of the episode's picture; "" for none
	Older, Newer   *entryItem // nil if there is none
	OlderHit       *entryItem // the hits of the search before and after the entry
	NewerHit       *entryItem
	Versions       []entryText
	Strip          *strip        // nil if there is nothing to show around the entry
	Search         string        // the search whose words are marked
	Marked         template.HTML // the title with these words marked
}

// Day returns the entry's day, for the URL of the day in all years.
func (p *entryPage) Day() string {
	at := p.Updated
	if at.IsZero() {
		at = p.Published
	}
	if at.IsZero() {
		at = p.Added
	}
	return at.UTC().Format("01-02")
}

// An entryText is the text of an entry, or of an earlier version.
type entryText struct {
	Title              string
	TitleLang, Lang    string // the languages of the title and of the content; "" if unknown
	Updated, Published time.Time
	Authors            string
	Summary            template.HTML // "" if there is content
	Content            template.HTML
	Cut                bool // whether the page has no room for all of it
	Episode            episode
	Elsewhere          string        // where the content is, if not in the feed
	Damaged            bool          // whether the stored text cannot be read
	Source             string        // where the copy comes from, if not from the feed itself
	Changes            template.HTML // made by the next version

	text feedhistory.Text // the Content or the Summary
}

// Empty reports whether there is nothing to show.
func (w *entryText) Empty() bool {
	return w.Summary == "" && w.Content == "" && w.Elsewhere == "" && !w.Damaged && !w.Cut
}

// showEntry shows an entry with its earlier versions.
func (s *Server) showEntry(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	ctx := r.Context()
	record, err := mirror.Lookup(ctx, s.store, feed.URL, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	q, room := r.URL.Query(), mostShown
	p := &entryPage{
		Search: strings.TrimSpace(q.Get("q")),
		Feed:   republish.Name(feed.URL), Of: titleOf(feed), ID: record.ID, State: record.State,
		Added: record.Added, Changed: record.Changed, Link: webLink(record.Content.Link),
	}
	var e *feedhistory.Entry
	p.entryText, e = newWording(record.Content, record.Copy, record.Entry, display{pictures: s.pictures}, &room)
	if t, ok := record.Deletion(); ok {
		p.Removed = t.When
	}
	for v, err := range s.store.Versions(ctx, feed.URL, record.ID) {
		if err != nil {
			return err
		}
		text, _ := newWording(v.Content, v.Copy, v.Entry, display{prefix: fmt.Sprintf("v%d-", len(p.Versions))}, &room)
		p.Versions = append(p.Versions, text)
	}
	after := &p.entryText
	for i := range p.Versions {
		p.Versions[i].Changes = difference(p.Versions[i].plain(), after.plain())
		after = &p.Versions[i]
	}
	if p.Older, p.Newer, err = s.neighbours(ctx, record, ""); err != nil {
		return err
	}
	if searchOf(p.Search) != nil {
		if p.OlderHit, p.NewerHit, err = s.neighbours(ctx, record, p.Search); err != nil {
			return err
		}
	}
	if p.Strip, err = s.stripOf(ctx, feed, record); err != nil {
		return err
	}
	p.Sound, p.Artwork = newEnclosures(e), s.pictures.path(p.Episode.Artwork)
	p.mark()
	if p.Sound.Plays() {
		w.Header().Set("Content-Security-Policy", policy()+"; media-src http: https:")
	}
	return s.render(w, r, http.StatusOK, "entry", p.Title, p)
}

// mark marks the words of the search.
func (p *entryPage) mark() {
	search := searchOf(p.Search)
	p.Marked = marked(p.Title, search)
	p.Content, p.Summary = markedIn(p.Content, search), markedIn(p.Summary, search)
}

// newWording returns an entry's text, as far as a page has room for it, in bytes, and the
// entry; nil if it is damaged.
func newWording(c mirror.Content, from mirror.Copy, read func() (*feedhistory.Entry, error), as display, room *int) (entryText, *feedhistory.Entry) {
	e, err := read()
	w := entryText{Title: shownTitle(c), Updated: c.Updated, Published: c.Published, Damaged: err != nil, Source: from.Source}
	if err != nil {
		return w, nil
	}
	as.page = webLink(c.Link)
	// texts are cut before anything parses them
	content, isLong := cut(e.Content(), *room)
	summary, isLongSummary := cut(e.Summary(), *room)
	w.TitleLang, w.Lang, w.Cut = e.Title().Lang, content.Lang, isLong
	w.text = content
	if w.Content = sanitise(content, as); w.Content == "" {
		w.Elsewhere, w.Lang = webLink(content.Src), summary.Lang
		w.Summary, w.Cut = sanitise(summary, as), isLong || isLongSummary
		w.text = summary
	}
	*room -= len(w.text.Body)
	var people []feedhistory.Person
	if len(c.Data) > mostShown { // decoding costs many times the data
		people = e.Authors()
	} else if item, err := togofeed.Item(e); err == nil && item != nil {
		for _, person := range item.Authors {
			people = append(people, feedhistory.Person{Name: person.Name})
		}
		w.Episode = episodeOf(item)
	}
	var names []string
	for _, person := range people {
		if name := strings.TrimSpace(person.Name); name != "" {
			names = append(names, name)
		}
	}
	w.Authors = strings.Join(names, ", ")
	return w, e
}

// shownTitle returns the title of an entry, or the first 2,000 bytes of a long one.
func shownTitle(c mirror.Content) string {
	title, _ := cut(feedhistory.Text{Body: strings.TrimSpace(c.Title)}, 2000)
	return title.Body
}

// plain returns the title and the text, for comparing versions.
func (w *entryText) plain() string { return w.Title + "\n" + plain(w.text) }

// neighbours returns the next older and the next newer entry of a feed, or of a search in it
// that is not ""; nil if there is none.
func (s *Server) neighbours(ctx context.Context, r *mirror.Record, search string) (older, newer *entryItem, err error) {
	for oldest, found := range map[bool]**entryItem{false: &older, true: &newer} {
		query := mirror.Query{Feed: r.Feed, Search: search, Prefix: words.IsBeginning(search), Beyond: r, Reverse: oldest, Limit: 1}
		other, err := lastOf(ctx, s.store, query)
		if err != nil {
			return nil, nil, err
		}
		if other != nil {
			item := s.item(other, nil)
			*found = &item
		}
	}
	return older, newer, nil
}

// lastOf returns the last entry of a query; nil if there is none.
func lastOf(ctx context.Context, store mirror.Store, q mirror.Query) (last *mirror.Record, err error) {
	for record, err := range store.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		last = record
	}
	return last, nil
}

// showRandom redirects to a random entry of a feed.
func (s *Server) showRandom(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	record, err := s.pick(r.Context(), feed, rand.Int64N)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return seeOther(s.at("/feeds/" + republish.Name(feed.URL) + "/entry" + queryOf("id", record.ID)))
}

var errNoEntry = &problem{http.StatusNotFound, "There is no entry yet", "Come back when the feed has been read."}

// pick returns the entry of a feed with the number that among chooses of so many.
func (s *Server) pick(ctx context.Context, feed *mirror.Feed, among func(all int64) int64) (found *mirror.Record, err error) {
	f, err := s.feeds.figuresOf(ctx, feed)
	if err != nil {
		return nil, err
	}
	all := totalOf(f.months)
	if all == 0 {
		return nil, errNoEntry
	}
	n := among(all)
	query := mirror.Query{Feed: feed.URL, Reverse: true}
	for _, m := range f.months {
		if n < m.Entries {
			query.Since, query.Until, query.Skip, query.Limit = m.Start, m.Start.AddDate(0, 1, 0), int(n), 1
			break
		}
		n -= m.Entries
	}
	if found, err = lastOf(ctx, s.store, query); err == nil && found == nil { // it has just been removed
		err = mirror.ErrNotFound
	}
	return found, err
}

// showDay shows the entries of a feed on a day in all years.
func (s *Server) showDay(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	at, err := time.Parse("2006-01-02", "2024-"+r.URL.Query().Get("day")) // a leap year
	if err != nil {
		at = s.now().UTC()
	}
	f, err := s.feeds.figuresOf(r.Context(), feed)
	if err != nil {
		return err
	}
	p := &dayPage{feedView: &feedView{Feed: feed}, Day: at}
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
	return s.render(w, r, http.StatusOK, "day", "On this day: "+p.Title(), p)
}

type dayPage struct {
	*feedView
	Day  time.Time
	List entriesView
}

// Before and After return the neighbouring days, for URLs.
func (p *dayPage) Before() string { return p.Day.AddDate(0, 0, -1).Format("01-02") }
func (p *dayPage) After() string  { return p.Day.AddDate(0, 0, 1).Format("01-02") }

// An enclosure is a file of an entry.
type enclosure struct {
	URL, Name, Kind, Size string
	Audio, Video          bool
}

// An enclosures is the files of an entry as a page shows them. A player loads nothing before
// somebody plays it.
type enclosures struct {
	List     []enclosure
	Chapters []chapter // of the first file with a player
}

// AllAudio reports whether all files are audio.
func (p enclosures) AllAudio() bool {
	return !slices.ContainsFunc(p.List, func(e enclosure) bool { return !e.Audio })
}

// Plays reports whether there is a player.
func (p enclosures) Plays() bool {
	return slices.ContainsFunc(p.List, func(e enclosure) bool { return e.Audio || e.Video })
}

// newEnclosures returns the files of an entry, none if it is damaged.
func newEnclosures(e *feedhistory.Entry) (p enclosures) {
	if e == nil {
		return p
	}
	for _, l := range e.Links {
		address := webLink(l.Href)
		if l.Rel != "enclosure" || address == "" {
			continue
		}
		kind, _, _ := strings.Cut(strings.ToLower(l.Type), "/")
		p.List = append(p.List, enclosure{
			URL: address, Name: fileName(address), Kind: l.Type, Size: sizeText(l.Length), Audio: kind == "audio", Video: kind == "video",
		})
	}
	at := slices.IndexFunc(p.List, func(e enclosure) bool { return e.Audio || e.Video })
	if at >= 0 {
		p.Chapters = chaptersOf(e, p.List[at].URL)
	}
	return p
}

// fileName returns the name of a file at a URL, or the host if it has none.
func fileName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if name := path.Base(u.Path); name != "/" && name != "." {
		return name
	}
	return u.Host
}

// A chapter is a part of an episode.
type chapter struct {
	Title, At string // the time as people write it
	Seconds   float64
	URL       string // the file from this time on (Media Fragments)
}

// mostChapters is the maximum number of chapters to show.
const mostChapters = 200

// chaptersOf returns an episode's Podlove Simple Chapters, in its file.
func chaptersOf(e *feedhistory.Entry, file string) (all []chapter) {
	var list struct {
		XMLName  xml.Name `xml:"http://podlove.org/simple-chapters chapters"`
		Chapters []struct {
			Start string `xml:"start,attr"`
			Title string `xml:"title,attr"`
		} `xml:"http://podlove.org/simple-chapters chapter"`
	}
	for _, element := range e.Extensions() {
		if !strings.Contains(element, "simple-chapters") || xml.Unmarshal([]byte(element), &list) != nil {
			continue
		}
		for _, c := range list.Chapters[:min(len(list.Chapters), mostChapters)] {
			if seconds, ok := secondsOf(c.Start); ok {
				at, _ := strings.CutPrefix(time.Unix(int64(seconds), 0).UTC().Format("15:04:05"), "00:")
				all = append(all, chapter{cmp.Or(strings.TrimSpace(c.Title), "Untitled"), at, seconds, fmt.Sprintf("%s#t=%g", file, seconds)})
			}
		}
		break
	}
	return all
}

// secondsOf reads a normal play time of less than a day, such as 1:02:03.5 (RFC 2326 §3.6).
func secondsOf(text string) (seconds float64, ok bool) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ":") {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil || !(n >= 0 && n < 24*60*60) {
			return 0, false
		}
		seconds = 60*seconds + n
	}
	return seconds, seconds < 24*60*60
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
	if err != nil || n <= 0 {
		return ""
	}
	return terminal.RoughSize(n)
}

// marked marks in a text the words a search looks for.
func marked(text string, search words.Query) template.HTML {
	if search == nil {
		return template.HTML(template.HTMLEscapeString(text))
	}
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
		if search.Marks(text[:end]) {
			word = "<mark>" + word + "</mark>"
		}
		b.WriteString(word)
		text = text[end:]
	}
	return template.HTML(b.String()) // everything but the marks is escaped
}

// markedIn marks words in sanitised markup.
func markedIn(markup template.HTML, search words.Query) template.HTML {
	if search == nil || markup == "" {
		return markup
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(string(markup)))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		if raw := string(z.Raw()); kind == html.TextToken {
			b.WriteString(string(marked(string(z.Text()), search)))
		} else {
			b.WriteString(raw)
		}
	}
	return template.HTML(b.String()) // unchanged except for the marks
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

// mostCompared is the maximum number of words of each version to compare: the
// time grows with the product of their numbers.
const mostCompared = 3000

// difference shows, word by word, how a text became another; "" if the texts
// are too long to compare, or equal.
func difference(old, new string) template.HTML {
	a, b := strings.Fields(old), strings.Fields(new)
	if len(a) > mostCompared || len(b) > mostCompared || slices.Equal(a, b) {
		return ""
	}
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	to := 0
	for to < len(a)-from && to < len(b)-from && a[len(a)-1-to] == b[len(b)-1-to] {
		to++
	}
	var out strings.Builder
	write := func(tag string, words []string) {
		if len(words) == 0 {
			return
		}
		text := template.HTMLEscapeString(strings.Join(words, " "))
		if tag != "" {
			text = "<" + tag + ">" + text + "</" + tag + ">"
		}
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(text)
	}
	write("", a[:from])
	compare(a[from:len(a)-to], b[from:len(b)-to], write)
	write("", a[len(a)-to:])
	return template.HTML(out.String()) // the words are escaped
}

// compare writes the words two lists have in common and those of only one of them,
// by their longest common subsequence.
func compare(a, b []string, write func(tag string, words []string)) {
	width := len(b) + 1
	longest := make([]int16, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i*width+j] = longest[(i+1)*width+j+1] + 1
			} else {
				longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		i0, j0 := i, j
		for i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
		}
		write("", a[i0:i])
		i0, j0 = i, j
		for (i < len(a) || j < len(b)) && !(i < len(a) && j < len(b) && a[i] == b[j]) {
			if j == len(b) || i < len(a) && longest[(i+1)*width+j] >= longest[i*width+j+1] {
				i++
			} else {
				j++
			}
		}
		write("del", a[i0:i])
		write("ins", b[j0:j])
	}
}
