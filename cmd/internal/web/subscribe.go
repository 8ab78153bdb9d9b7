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

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// A subscribePage offers a feed to readers in all forms.
type subscribePage struct {
	*feedView
	Whole   []address
	Hint    string // how readers on other machines can reach the addresses; "" if they can
	Private bool   // whether readers must show the token

	Reader taker // the chosen one
	Offer  offer // what it gets
	Asked  bool  // whether slices of a size were asked for

	Size    int // the size of slices in MB
	Plan    []republish.Slice
	All     int64  // the size of everything in bytes; zero if unknown
	SliceAt string // the URL of slices, up to the query
	Wrong   string // why the size was refused

	Replay  replayForm
	Reading bool // whether the feed is being read for the first time
}

// An address is a link of a page, with its text and its media type; "" if it is a page.
type address struct{ URL, Says, Type string }

// A taker is a feed reader, with the largest document it accepts.
type taker struct {
	Key, Name string
	MB        int    // 0 if unknown, or if it follows archives
	Archives  bool   // whether it follows archives
	Site      string // the address for adding a feed to it on the web; "" for none
}

// Takes reports whether the reader accepts a document of a size in bytes.
func (t taker) Takes(size int64) bool { return size <= int64(t.MB)*1e6 }

// feedReaders are the choices on the page; the first is the usual one.
var feedReaders = []taker{
	{Key: "other", Name: "Another, or I do not know"},
	{Key: "archives", Name: "One that follows archives (RFC 5005)", Archives: true},
	{Key: "commafeed", Name: "CommaFeed", MB: 5},
	{Key: "feedly", Name: "Feedly", Site: "https://feedly.com/i/subscription/feed/"},
	{Key: "inoreader", Name: "Inoreader", Site: "https://www.inoreader.com/?add_feed="},
	{Key: "miniflux", Name: "Miniflux", MB: 15},
	{Key: "newsblur", Name: "NewsBlur", Site: "https://www.newsblur.com/?url="},
	{Key: "newsboat", Name: "newsboat", MB: 50},
	{Key: "theoldreader", Name: "The Old Reader", MB: 7, Site: "https://theoldreader.com/feeds/subscribe?url="},
}

// Choices returns the readers to choose from.
func (p *subscribePage) Choices() []taker { return feedReaders }

// Limited returns the readers whose limit is known.
func (p *subscribePage) Limited() []taker {
	return slices.DeleteFunc(slices.Clone(feedReaders), func(t taker) bool { return t.MB == 0 })
}

// An offer is what a reader gets: an address or, if it refuses large documents, slices.
type offer struct {
	Says    string
	Address address
	Add     string // the address for adding it to the reader on the web; "" for none
	Slices  []republish.Slice
}

// newOffer returns what the page's reader gets.
func (p *subscribePage) newOffer() (o offer) {
	t := p.Reader
	switch {
	case t.Archives:
		o = offer{Says: "It follows the archives, and gets everything.", Address: p.Whole[0]}
	case t.MB == 0:
		o = offer{Says: "It gets everything in one document. If it refuses that, give it slices, or a replay.", Address: p.Whole[2]}
	case p.All > 0 && t.Takes(p.All):
		o = offer{Says: "It accepts up to " + strconv.Itoa(t.MB) + " MB, and so gets everything in one document of " + p.MB(p.All) + " MB.", Address: p.Whole[2]}
	default:
		return offer{Says: "It accepts up to " + strconv.Itoa(t.MB) + " MB, and so gets the history in slices. Add one after the other.", Slices: p.Plan}
	}
	if t.Site != "" && p.Hint == "" && !p.Private {
		o.Add = t.Site + url.QueryEscape(o.Address.URL)
	}
	return o
}

// The limits for the size of slices, in MB (a million bytes).
const (
	leastSlice = 1
	usualSlice = 5
	mostSlice  = 50
)

// mostPlanned is the maximum number of entries for which a feed is cut into
// slices without a request, because cutting reads them all.
const mostPlanned = 2000

// showSubscribe shows the ways to subscribe to a feed.
func (s *Server) showSubscribe(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	name, err := s.published.Name(r.Context(), feed.URL)
	if err != nil {
		return err
	}
	if isUnread(feed) {
		return republish.ErrUnread
	}
	at := s.base() + "feeds/" + name + "/"
	_, reading := s.polls.Status(feed.URL)
	published, err := url.Parse(at)
	if err != nil {
		return err
	}
	p := &subscribePage{
		feedView: &feedView{Feed: feed}, SliceAt: at + "slice.", Reader: feedReaders[0],
		Private: s.Private, Reading: reading && feed.Polls == 0,
	}
	if IsLocal(published.Host) {
		p.Hint = s.Hints.reach()
	}
	p.Whole = addressesOf(published)
	if i := slices.IndexFunc(feedReaders, func(t taker) bool { return t.Key == r.URL.Query().Get("reader") }); i >= 0 {
		p.Reader = feedReaders[i]
	}
	status := http.StatusOK
	if err := s.planSlices(r, p); err != nil {
		return err
	}
	p.Offer = p.newOffer()
	if err := s.fillReplay(r, p, name); err != nil {
		return err
	}
	if p.Wrong != "" || p.Replay.Wrong != "" {
		status = http.StatusUnprocessableEntity
	}
	return s.render(w, r, status, "subscribe", "Subscribe to "+p.Title(), p)
}

// planSlices cuts the feed as the request says.
func (s *Server) planSlices(r *http.Request, p *subscribePage) error {
	p.Size = cmp.Or(p.Reader.MB, usualSlice)
	if text := r.URL.Query().Get("size"); text != "" {
		size, err := strconv.Atoi(text)
		if err != nil || size < leastSlice || size > mostSlice {
			p.Wrong = "The size must be a number of MB between 1 and 50."
			return nil
		}
		p.Size, p.Asked = size, true
	} else if p.Entries > mostPlanned && p.Reader.MB == 0 {
		return nil
	}
	cut, err := s.published.Slices(r.Context(), p.Feed, int64(p.Size)*1e6)
	p.Plan, p.All = cut.Slices, cut.Bytes
	return err
}

// MB returns a size in MB, rounded up.
func (p *subscribePage) MB(bytes int64) string {
	return strconv.FormatFloat(float64((bytes+99_999)/100_000)/10, 'f', 1, 64)
}

// SliceAddresses returns the addresses of a slice. A template would escape the query.
func (p *subscribePage) SliceAddresses(s republish.Slice) []address {
	query := strings.TrimSuffix("?"+s.Query(), "?")
	return []address{
		{p.SliceAt + "atom" + query, "Atom", "application/atom+xml"},
		{p.SliceAt + "rss" + query, "RSS", "application/rss+xml"},
	}
}

// IsLarge reports whether a slice is larger than asked for.
func (p *subscribePage) IsLarge(s republish.Slice) bool { return s.Bytes > int64(p.Size)*1e6 }

// A replayForm is the form for a replay, with a preview.
type replayForm struct {
	Start, Time, Every, Pace, Per, Zone, From, Until string
	Days                                             []choice
	Now                                              bool
	AsOf                                             int64
	FromTitle                                        string
	Asked                                            bool
	Paces                                            []pace
	Wrong                                            string
	Says                                             string
	Addresses                                        []address
	Next                                             []upcomingEntry
	GoOn                                             string // the query of the form for a different pace from here on
	Released                                         int
}

// A pace is a plain choice of a replay.
type pace struct {
	Says, Every, Pace string
	Query             string // of the page with its address
	Chosen            bool
}

// paces returns the plain choices, from today on.
func (f *replayForm) paces() (all []pace) {
	for _, p := range []pace{
		{Says: "One entry a day", Every: "1d"}, {Says: "One a week", Every: "1w"},
		{Says: "As it was published", Pace: "original"}, {Says: "Ten times as fast", Pace: "original×10"},
	} {
		p.Query = queryOf("start", f.Start, "every", p.Every, "pace", p.Pace, "asof", strconv.FormatInt(f.AsOf, 10), "from", f.From) + "#replay"
		p.Chosen = f.Asked && f.isPlain() && f.Pace == p.Pace && (p.Pace != "" || f.Every == p.Every)
		all = append(all, p)
	}
	return all
}

// isPlain reports whether nothing but the pace differs from the usual replay.
func (f *replayForm) isPlain() bool {
	return f.Per == "1" && f.Time == "" && f.Until == "" && !f.Now && !slices.ContainsFunc(f.Days, func(d choice) bool { return d.Chosen })
}

// Own reports whether the replay is none of the plain choices.
func (f *replayForm) Own() bool {
	return f.Wrong != "" || f.Asked && !slices.ContainsFunc(f.Paces, func(p pace) bool { return p.Chosen })
}

// An upcomingEntry has not been released yet.
type upcomingEntry struct {
	republish.Release
	Title string
}

// weekdays are the days of a replay, as its address names them.
var weekdays = []choice{
	{Key: "mon", Says: "Monday"}, {Key: "tue", Says: "Tuesday"}, {Key: "wed", Says: "Wednesday"}, {Key: "thu", Says: "Thursday"},
	{Key: "fri", Says: "Friday"}, {Key: "sat", Says: "Saturday"}, {Key: "sun", Says: "Sunday"},
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
	if f.AsOf, _ = strconv.ParseInt(q.Get("asof"), 10, 64); f.AsOf < 1 || f.AsOf > p.Commits {
		f.AsOf = p.Commits
	}
	for _, day := range weekdays {
		day.Chosen = slices.Contains(q["days"], day.Key)
		f.Days = append(f.Days, day)
	}
	if f.From != "" {
		if record, err := mirror.Lookup(r.Context(), s.store, p.URL, f.From); err == nil {
			f.FromTitle = cmp.Or(shownTitle(record.Content), f.From)
		}
	}
	f.Paces = f.paces()
	if !f.Asked {
		return nil
	}
	asked, err := republish.ParseReplay(f.query())
	if err != nil {
		f.Wrong = err.Error()
		return nil
	}
	err = s.preview(r.Context(), p, name, asked)
	if wrong, ok := errors.AsType[*republish.Error](err); ok {
		f.Wrong = capitalised(wrong.Message)
		return nil
	}
	return err
}

// query returns the replay of the form as the query of its address.
func (f *replayForm) query() url.Values {
	start := f.Start
	if zone, err := time.LoadLocation(f.Zone); err == nil && f.Time != "" {
		if at, err := time.ParseInLocation("2006-01-02 15:04", f.Start+" "+f.Time, zone); err == nil {
			start = at.Format(time.RFC3339)
		}
	}
	var days []string
	for _, d := range f.Days {
		if d.Chosen {
			days = append(days, d.Key)
		}
	}
	return valuesOf("start", start, "asof", strconv.FormatInt(f.AsOf, 10), "zone", f.Zone, "pace", f.Pace, "every", when(f.Pace == "", f.Every),
		"per", f.Per, "from", f.From, "until", f.Until, "new", when(f.Now, "now"), "days", strings.Join(days, ","))
}

// previewed is the number of future entries in the form.
const previewed = 10

// preview shows the next releases of a replay. It fixes the replay's order.
func (s *Server) preview(ctx context.Context, p *subscribePage, name string, r *republish.Replay) error {
	f := &p.Replay
	preview, err := s.published.Preview(ctx, p.Feed, r, previewed)
	if err != nil {
		return err
	}
	f.Released = preview.Released
	for _, x := range preview.Next {
		next := upcomingEntry{Release: x}
		if record, err := mirror.Lookup(ctx, s.store, p.URL, x.ID); err == nil {
			next.Title = cmp.Or(shownTitle(record.Content), "Untitled")
		}
		f.Next = append(f.Next, next)
	}
	f.Says = r.String()
	at := s.base() + "feeds/" + name + "/replay."
	f.Addresses = []address{
		{at + "atom?" + r.Query().Encode(), "Atom", "application/atom+xml"},
		{at + "rss?" + r.Query().Encode(), "RSS", "application/rss+xml"},
	}
	if f.Released > 0 && f.Released < preview.All {
		f.GoOn = queryOf("from", preview.Next[0].ID, "asof", strconv.FormatInt(f.AsOf, 10), "zone", f.Zone) + "#replay"
	}
	return nil
}
