package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A subscribePage offers a feed to readers in all forms.
type subscribePage struct {
	*mirror.Feed
	Name    string
	Title   string
	Whole   []address
	Local   bool // whether only readers on this machine can reach the server
	Private bool // whether readers must show the token
	Readers []readerLink

	Size    int // the size of slices in MB
	Plan    []slice
	All     int64 // the size of everything in bytes; zero if unknown
	Takes   []taker
	SliceAt string // the URL of slices, up to the query
	Wrong   string // what is wrong with the size

	Replay  replayForm
	Reading bool // whether the feed is being read for the first time
}

// An address is an address for readers.
type address struct{ URL, Says, Type string }

// A readerLink adds a feed to a reader on the web.
type readerLink struct{ Name, URL string }

// A taker is a feed reader, with the largest document that it accepts.
type taker struct {
	Name string
	MB   int
}

// Takes reports whether the reader accepts a document of a size in bytes.
func (t taker) Takes(size int64) bool { return size <= int64(t.MB)*1e6 }

var readers = []taker{{"CommaFeed", 5}, {"The Old Reader", 7}, {"Miniflux", 15}, {"newsboat", 50}}

var readerSites = []readerLink{
	{"Feedly", "https://feedly.com/i/subscription/feed/"},
	{"Inoreader", "https://www.inoreader.com/?add_feed="},
	{"NewsBlur", "https://www.newsblur.com/?url="},
	{"The Old Reader", "https://theoldreader.com/feeds/subscribe?url="},
}

// mostPlanned is the maximum number of entries for which a feed is cut into
// slices without a request, because cutting reads them all.
const mostPlanned = 2000

// showSubscribe shows the ways to subscribe to a feed.
func (s *Server) showSubscribe(w http.ResponseWriter, r *http.Request) error {
	feed, err := s.feedOf(r)
	if err != nil {
		return err
	}
	name, err := s.published.name(r.Context(), feed.URL)
	if err != nil {
		return err
	}
	if feed.Head == "" {
		return errUnread
	}
	at := s.base() + "feeds/" + name + "/"
	_, reading := s.polls.State(feed.URL)
	p := &subscribePage{
		Feed: feed, Name: ShortName(feed.URL), Title: titleOf(feed), Takes: readers, SliceAt: at + "slice.",
		Local: IsLocal(hostOf(at)), Private: s.Private, Reading: reading && feed.Polls == 0,
		Whole: []address{
			{at + "index.atom", "Atom, with archives", "application/atom+xml"},
			{at + "index.rss", "RSS, with archives", "application/rss+xml"},
			{at + "complete.atom", "everything in one document, Atom", "application/atom+xml"},
		},
	}
	for _, site := range readerSites {
		p.Readers = append(p.Readers, readerLink{site.Name, site.URL + url.QueryEscape(p.Whole[0].URL)})
	}
	status := http.StatusOK
	if err := s.planSlices(r, p); err != nil {
		return err
	}
	if err := s.fillReplay(r, p, name); err != nil {
		return err
	}
	if p.Wrong != "" || p.Replay.Wrong != "" {
		status = http.StatusUnprocessableEntity
	}
	return s.render(w, r, status, "subscribe", "Subscribe to "+p.Title, p)
}

var errUnread = &problem{
	http.StatusServiceUnavailable, "This feed has not been read yet",
	"Its page says why, or shows the progress.",
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// planSlices cuts the feed as the request says.
func (s *Server) planSlices(r *http.Request, p *subscribePage) error {
	p.Size = readers[0].MB
	if text := r.URL.Query().Get("size"); text != "" {
		size, err := strconv.Atoi(text)
		if err != nil || size < leastSlice || size > mostSlice {
			p.Wrong = "The size must be a number of MB between 1 and 50."
			return nil
		}
		p.Size = size
	} else if p.Entries > mostPlanned {
		return nil
	}
	cut, err := s.slicesOf(r.Context(), p.Feed, p.Size)
	p.Plan, p.All = cut.slices, cut.all
	return err
}

// AllMB returns the size of everything in MB.
func (p *subscribePage) AllMB() string { return slice{Bytes: p.All}.MB() }

// A replayForm is the form for a replay, with a preview.
type replayForm struct {
	Start, Time, Every, Pace, Per, Zone, From, Until string
	Days                                             []dayBox
	Now                                              bool
	AsOf                                             int64
	FromTitle                                        string
	Asked                                            bool
	Wrong                                            string
	Says                                             string
	Addresses                                        []address
	Next                                             []coming
	GoOn                                             string // the query of the form for a different pace from here on
	Released                                         int
}

// A dayBox is a day of the week to choose.
type dayBox struct {
	Key, Name string
	Checked   bool
}

// A coming is a future release.
type coming struct {
	At    time.Time
	ID    string
	Title string // "" if nothing comes then
	Empty bool
}

var dayNames = map[string]string{
	"mon": "Monday", "tue": "Tuesday", "wed": "Wednesday", "thu": "Thursday", "fri": "Friday", "sat": "Saturday", "sun": "Sunday",
}

// fillReplay fills the form for a replay from the request. The parameters of
// the form differ from those of a replay, which are made from them.
func (s *Server) fillReplay(r *http.Request, p *subscribePage, name string) error {
	q, f := r.URL.Query(), &p.Replay
	f.Asked = q.Has("start")
	f.Start, f.Time = cmp.Or(q.Get("start"), s.now().UTC().Format(time.DateOnly)), q.Get("time")
	f.Every, f.Pace = cmp.Or(q.Get("every"), "1d"), q.Get("pace")
	f.Per, f.Zone, f.From, f.Until = cmp.Or(q.Get("per"), "1"), cmp.Or(q.Get("zone"), "UTC"), q.Get("from"), q.Get("until")
	f.Now = q.Get("new") == "now"
	if f.AsOf, _ = strconv.ParseInt(q.Get("asof"), 10, 64); f.AsOf < 1 || f.AsOf > p.Version {
		f.AsOf = p.Version
	}
	for i := range weekdays {
		key := weekdays[(i+1)%7]
		f.Days = append(f.Days, dayBox{key, dayNames[key], slices.Contains(q["days"], key)})
	}
	if f.From != "" {
		if record, err := s.record(r.Context(), p.URL, f.From); err == nil {
			f.FromTitle = cmp.Or(strings.TrimSpace(record.Content.Title), f.From)
		}
	}
	if !f.Asked {
		return nil
	}
	asked, err := parseReplay(f.query())
	if err != nil {
		f.Wrong = err.Error()
		return nil
	}
	err = s.preview(r.Context(), p, name, asked)
	if wrong, ok := errors.AsType[*problem](err); ok {
		f.Wrong = wrong.Title
		return nil
	}
	return err
}

// query returns the replay of the form as the query of its address.
func (f *replayForm) query() url.Values {
	q := url.Values{"start": {f.Start}, "asof": {strconv.FormatInt(f.AsOf, 10)}}
	set := func(key, value, usual string) {
		if value != "" && value != usual {
			q.Set(key, value)
		}
	}
	set("zone", f.Zone, "UTC")
	if f.Time != "" {
		if zone, err := time.LoadLocation(f.Zone); err == nil {
			if at, err := time.ParseInLocation("2006-01-02 15:04", f.Start+" "+f.Time, zone); err == nil {
				q.Set("start", at.Format(time.RFC3339))
			}
		}
	}
	if set("pace", f.Pace, ""); f.Pace == "" {
		q.Set("every", f.Every)
	}
	set("per", f.Per, "1")
	set("from", f.From, "")
	set("until", f.Until, "")
	if f.Now {
		q.Set("new", "now")
	}
	var days []string
	for _, d := range f.Days {
		if d.Checked {
			days = append(days, d.Key)
		}
	}
	set("days", strings.Join(days, ","), "")
	return q
}

// previewed is the number of future entries that the form shows.
const previewed = 10

// preview shows what a replay will bring. It stores the order.
func (s *Server) preview(ctx context.Context, p *subscribePage, name string, r *replay) error {
	f := &p.Replay
	order, later, err := s.ordered(ctx, p.Feed, name, r)
	if err != nil {
		return err
	}
	now := s.now()
	table := r.timetable(order, later, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	f.Released, _ = slices.BinarySearchFunc(table, now, func(r release, now time.Time) int {
		if r.at.After(now) {
			return 1
		}
		return -1
	})
	for _, x := range table[f.Released:min(len(table), f.Released+previewed)] {
		c := coming{At: x.at.In(r.zone), ID: x.id, Empty: x.empty}
		if record, err := s.record(ctx, p.URL, x.id); err == nil {
			c.Title = cmp.Or(strings.TrimSpace(record.Content.Title), "Untitled")
		}
		f.Next = append(f.Next, c)
	}
	f.Says = r.says()
	for _, format := range []feedhistory.Format{feedhistory.Atom, feedhistory.RSS} {
		at := &replaying{replay: r, s: s, name: name, format: format}
		f.Addresses = append(f.Addresses, address{at.url(0), map[feedhistory.Format]string{feedhistory.Atom: "Atom", feedhistory.RSS: "RSS"}[format], strings.Split(mediaTypeOf(format), ";")[0]})
	}
	if f.Released > 0 && f.Released < len(table) {
		q := url.Values{"from": {table[f.Released].id}, "asof": {strconv.FormatInt(f.AsOf, 10)}, "zone": {f.Zone}}
		f.GoOn = "?" + q.Encode() + "#replay"
	}
	return nil
}
