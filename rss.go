package feedhistory

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// RSS 2.0, 0.9x and 1.0, with the extensions of RFC 5005 Appendix B: Atom links, under
// any prefix, and the flags in their namespace.

// rss reads the children of the root: a channel, and in RSS 1.0 the items.
func (r *documentReader) rss() {
	depth := r.xml.Depth()
	r.doc.version, _ = r.xml.Attr("", "version")
	r.doc.Language = r.xml.Language()
	r.enter()
	r.tell(feedxml.Begins)
	for r.xml.Child(depth) {
		if !r.xml.IsRSS() {
			r.tell(feedxml.Child)
			continue
		}
		switch row, odd := r.xml.NoteName(); row.Name {
		case "channel":
			r.doc.version = cmp.Or(r.doc.version, feedxml.RDFVersion(r.xml.Space()))
			depth := r.xml.Depth()
			r.head.ranks = headRanks{}
			r.children(depth, "item")
			r.head.end()
		case "item":
			r.entry(odd)
		case "items":
			r.wrapped("item")
		case "image": // of RSS 1.0
			r.keep(row, true)
		default:
			r.tell(feedxml.Child)
		}
	}
}

// textLink reads RSS's link element, whose text is the reference.
func (r *xmlReading) textLink(links Links) Links { return r.appendText(links, relAlternate) }

// appendText appends the link whose target is the current element's text.
func (r *xmlReading) appendText(links Links, rel string) Links {
	if href := r.xml.TextReference(); href != "" {
		links = append(links, Link{Rel: rel, Href: href})
	}
	return links
}

// enclosure reads an enclosure as Atom's link for one.
func (r *xmlReading) enclosure(links Links) Links {
	if link := Link(r.xml.Enclosure()); link.Href != "" {
		link.Rel = relEnclosure
		links = append(links, link)
	}
	return links
}

// ownPage returns an entry's link if it is on the host of the feed or of its site: a page elsewhere
// is one the entry is about. An entry of a document without an address has no base at all.
func (r *entryReader) ownPage(e *Entry) string {
	page, ok := e.Links.Rel(relAlternate)
	if !ok || r.doc.URL == "" {
		return ""
	}
	if r.host == "" || !iri.IsOn(page.Href, r.host) {
		site, _ := r.doc.Links.Rel(relAlternate)
		if host := iri.Split(site.Href).Authority; host == "" || !iri.IsOn(page.Href, host) {
			return ""
		}
	}
	return page.Href
}

// channelAuthor reads an author of a channel that is no person construct: its managingEditor,
// dc:creator, or itunes:author, who counts if there is no other.
func (r *documentReader) channelAuthor(row *feedxml.Row) {
	p := personOf(r.xml.AnyPerson(row))
	name := cmp.Or(p.Name, p.Email)
	switch {
	case name == "" || !r.head.holds(len(p.Name)+len(p.Email)):
	case row.Space == feedxml.ITunes:
		r.head.podcast = []Person{p}
	case len(r.doc.Authors) < maxExtra && !slices.ContainsFunc(r.doc.Authors, func(other Person) bool { return cmp.Or(other.Name, other.Email) == name }):
		r.doc.Authors = append(r.doc.Authors, p)
	}
}

// end completes the head section after its last element.
func (h *headReader) end() {
	doc := h.in.doc
	if len(doc.Authors) == 0 {
		doc.Authors = h.podcast
	}
	if own := feedxml.RowOf("", "image"); doc.Format == FormatRSS && doc.Icon == doc.Logo && h.ranks[feedxml.MeansIcon] > int(own.RSSRank) {
		doc.Logo = "" // atom:icon says that the image is only that
	}
}

// A scheduleReader collects the head section's elements about polling.
type scheduleReader struct {
	ttl       time.Duration
	period    time.Duration
	frequency int
}

// scheduleElement reads the current element of the head section, which is about polling.
func (r *documentReader) scheduleElement(name string) {
	switch name {
	case "ttl":
		if n := count(r.xml.PlainText()); n > 0 {
			r.polls.ttl = min(time.Duration(n)*time.Minute, maxInterval)
		}
	case "skipHours":
		r.skips("hour", func(text string) {
			if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= 24 {
				r.doc.Schedule.SkipHours |= 1 << (n % 24) // 24 is an old name of 0
			}
		})
	case "skipDays":
		r.skips("day", func(text string) {
			for day := time.Sunday; day <= time.Saturday; day++ {
				if strings.EqualFold(text, day.String()) {
					r.doc.Schedule.SkipDays |= 1 << day
				}
			}
		})
	case "updatePeriod":
		r.polls.period = periods[strings.ToLower(r.xml.PlainText())]
	case "updateFrequency":
		r.polls.frequency = count(r.xml.PlainText())
	}
	r.doc.Schedule.Every = r.polls.every()
}

var periods = map[string]time.Duration{
	"hourly": time.Hour, "daily": 24 * time.Hour, "weekly": 7 * 24 * time.Hour,
	"monthly": 30 * 24 * time.Hour, "yearly": 365 * 24 * time.Hour,
}

// every returns the longest of the intervals the feed asks for. A frequency says how
// often it is updated in a period; the default period is a day.
func (s scheduleReader) every() time.Duration {
	period := s.period
	if period == 0 && s.frequency > 0 {
		period = periods["daily"]
	}
	return max(s.ttl, min(period/time.Duration(max(s.frequency, 1)), maxInterval))
}

// skips reads the children of skipHours or skipDays.
func (r *documentReader) skips(name string, read func(text string)) {
	for depth := r.xml.Depth(); r.xml.Child(depth); {
		if strings.EqualFold(r.xml.Local(), name) {
			read(r.xml.PlainText())
		}
	}
}

// count reads a number; anything else, and a negative number, counts as zero. The
// largest result is about a million, so it fits in 32 bits.
func count(text string) int {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return int(min(max(n, 0), 1<<20))
}

// A Schedule is when a feed asks to be polled, by RSS's ttl, skipHours and skipDays,
// and the syndication module's updatePeriod and updateFrequency. The zero value means
// the feed does not say.
type Schedule struct {
	Every     time.Duration // Every is the minimum time between polls; zero means the feed does not say.
	SkipHours uint32        // SkipHours has a bit for each hour of the day (UTC) in which not to poll; the lowest is midnight.
	SkipDays  uint8         // SkipDays has a bit for each day of the week (UTC) on which not to poll; the lowest is Sunday.
}

// Next returns the earliest time at which a poll makes sense: when the response is
// no longer fresh and the feed's interval has passed, outside the hours and days to
// skip, and at most a day after the response: a max-age of a year is meant for caches. It
// returns the zero time if neither the schedule nor the response says anything. For a document,
// call it on its Schedule with its Response.
func (s Schedule) Next(r Response) time.Time {
	next := r.Fresh
	if at := r.Received.Add(s.Every); s.Every > 0 && at.After(next) {
		next = at
	}
	if latest := r.Received.Add(longestWait); next.After(latest) && !r.Received.IsZero() {
		next = latest
	}
	if next.IsZero() && s.skips(r.Received) {
		next = r.Received
	}
	return s.unskipped(next)
}

func (s Schedule) skips(t time.Time) bool {
	t = t.UTC()
	return s.SkipDays>>t.Weekday()&1 == 1 || s.SkipHours>>t.Hour()&1 == 1
}

// unskipped returns the time, or the first hour after it that is not skipped. A
// schedule that skips everything skips nothing.
func (s Schedule) unskipped(t time.Time) time.Time {
	if t.IsZero() || !s.skips(t) {
		return t
	}
	hour := t.Truncate(time.Hour)
	for range 8 * 24 {
		if hour = hour.Add(time.Hour); !s.skips(hour) {
			return hour
		}
	}
	return t
}

// maxInterval is the longest interval that a Schedule has, and longestWait the longest a
// feed's word counts for, so no feed can silence its readers.
const (
	maxInterval = 31 * 24 * time.Hour
	longestWait = 24 * time.Hour
)
