package feedhistory

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The common part of the head sections of Atom and RSS.

// headElement reads the current element if it is one common to the heads of Atom and
// RSS: a history flag, an Atom link, a tombstone or a Coverage. It reports whether it
// is.
func (r *documentReader) headElement() bool {
	switch r.Space() {
	case vocab.History:
		r.flag()
	case vocab.Tombstones:
		if r.Local() == "deleted-entry" {
			r.tombstone()
		}
	case vocab.Coverage:
		if r.Local() != "mirror" {
			return false
		}
		r.coverage()
	case vocab.Atom, vocab.Atom03:
		if r.Local() != "link" {
			return false
		}
		r.headLink()
	default:
		return false
	}
	return true
}

// headLink reads an Atom link of the head section.
func (r *documentReader) headLink() {
	r.inHead = true
	r.setLinks(r.atomLink(r.doc.Links))
	r.inHead = false
}

func (r *documentReader) setLinks(links Links) {
	if r.doc.Links = links; len(links) > r.limits.HeadLinks {
		r.doc.Links = links[:r.limits.HeadLinks]
		r.fail(ReasonLimit, clauseLimits, fmt.Sprintf("more than %d links in the head section", r.limits.HeadLinks))
	}
}

// The limits on the parts kept of a head section, which every document of a republished
// feed repeats.
const (
	maxHead  = 64 << 10 // bytes
	maxExtra = 1000     // authors, and other elements
)

// A headReader fills in the fields of a document's head section, within its quota.
type headReader struct {
	in    *reading
	ranks headRanks
	bytes int // the bytes kept of the head section
}

// headRanks are the ranks of the elements read so far: a better one replaces them.
type headRanks struct{ title, updated, published, language, icon int }

// fits reports whether the head section has room for n more bytes. If not, it makes a
// note of an element left out.
func (h *headReader) fits(n, offset int) bool {
	if h.bytes+n > maxHead {
		h.in.note("element-skipped", fmt.Sprintf("an element of the head section is left out: the head section takes more than %d bytes", maxHead), offset)
		return false
	}
	h.bytes += n
	return true
}

// shorten returns a text of the head section, or "" if there is no room for it.
func (h *headReader) shorten(text string, offset int) string {
	if !h.fits(len(text), offset) {
		return ""
	}
	return text
}

// publish sets the feed's time of publication, unless it has a better one.
func (h *headReader) publish(t time.Time, rank int) {
	if !t.IsZero() && rank > h.ranks.published {
		h.in.doc.Published, h.ranks.published = t, rank
	}
}

// setIcon sets the feed's icon, unless it has a better one.
func (h *headReader) setIcon(url string, rank int) {
	if url != "" && rank > h.ranks.icon {
		h.in.doc.Icon, h.ranks.icon = url, rank
	}
}

// addHeader adds the properties only in the HTTP response, not in the document.
func (h *headReader) addHeader(header http.Header) {
	if header == nil {
		return
	}
	doc := h.in.doc
	modified := header.Get("Last-Modified")
	if t, err := http.ParseTime(modified); err == nil {
		doc.LastModified = t
	} else if t, ok := h.in.date(modified); ok { // not by RFC 9110, such as a day of one digit
		doc.LastModified = t
	}
	own := doc.Links
	links, lost := headerLinks(header.Values("Link"), doc.URL, h.in.limits.URL)
	for _, link := range links {
		switch {
		case own.has(link.Rel):
		case len(doc.Links) >= h.in.limits.HeadLinks:
			doc.lose(link.Rel)
		default:
			doc.Links = append(doc.Links, link)
		}
	}
	for _, rel := range lost {
		doc.lose(rel)
	}
}

// keep reads the current element of the head section, and remembers it: elements
// without a meaning here for writing the document again, and the others for Feed.
func (r *documentReader) keep(read func() (known bool)) {
	start, mended := r.Offset(), r.Mender.Mended()
	r.notice()
	known := r.doc.Format == RSS && r.Prefix() == "" && r.Space() != "" // RSS 1.0: not an element RSS 2.0 could have
	known = read() || known
	r.Skip()
	if r.Err() != nil || r.err != nil {
		return
	}
	sc, raw := r.scopes[r.Depth()], r.text[start:r.End()]
	switch {
	case known && (len(r.doc.known) == maxExtra || r.knownBytes+len(raw) > maxHead), len(r.doc.extra) == maxExtra:
		return
	case r.Mender.Mended() > mended:
		raw = r.Mended(raw, sc)
	}
	lends := sc.Lends(xmlscan.Loan{Raw: raw, Markup: raw})
	switch {
	case known && lends:
		r.knownBytes += len(raw)
		r.doc.known = append(r.doc.known, raw)
		if r.doc.scope == nil {
			r.doc.scope = sc
		}
	case known:
	case !lends:
		r.note("element-skipped", "an element of the head section is left out: it takes too much from its surroundings", start)
	case r.head.fits(len(raw), start):
		r.doc.extra, r.doc.scope = append(r.doc.extra, raw), sc
	}
}

// icon reads the current element's text as the URL of the feed's icon.
func (r *documentReader) icon(rank int) {
	r.head.setIcon(r.TextReference(), rank)
}

// flag reads fh:complete and fh:archive (5005#2, 5005#14), and the elements drafts of
// the RFC had instead.
func (r *documentReader) flag() {
	offset := r.Offset()
	switch r.Local() {
	case "complete":
		r.doc.Complete = true
	case "archive":
		r.doc.Archive = true
	case "prev":
		r.note("legacy-draft", "fh:prev is read as a link with rel=\"prev-archive\"", offset)
		links := r.appendText(r.doc.Links, RelPrevArchive)
		if len(links) == len(r.doc.Links) {
			r.doc.lose(RelPrevArchive)
		}
		r.setLinks(links)
	case "incremental":
		incremental := strings.TrimSpace(r.ElementText())
		r.note("legacy-draft", "fh:incremental comes from a draft of RFC 5005", offset)
		if incremental == "false" { // draft 04 §2: this document has all entries
			r.doc.Complete = true
		}
	}
}

// tombstone reads at:deleted-entry (RFC 6721 §3).
func (r *documentReader) tombstone() {
	ref, _ := r.Attr("", "ref")
	when, _ := r.Attr("", "when")
	offset := r.Offset()
	if ref = trim(ref); ref == "" || len(ref) > r.limits.ID {
		r.note("deleted-entry-without-ref", "at:deleted-entry does not say which entry was deleted", offset)
		return
	}
	if len(r.doc.Deleted) >= r.limits.Entries {
		r.fail(ReasonLimit, clauseLimits, fmt.Sprintf("more than %d deleted entries", r.limits.Entries))
		return
	}
	r.doc.Deleted = append(r.doc.Deleted, Tombstone{Ref: ref, When: r.parseTime(when, offset), Source: r.reading.head})
}

// A scheduleReader collects the head section's elements about polling.
type scheduleReader struct {
	ttl       time.Duration
	period    time.Duration
	frequency int
}

// scheduleElement reads the current element of the head section if it is about
// polling, and reports whether it was.
func (r *documentReader) scheduleElement() bool {
	rss, syndication := r.doc.Format == RSS && r.IsRSS(), r.Space() == vocab.Syndication
	local := r.Local()
	if rss {
		local = vocab.RSSName(local)
	}
	switch {
	case rss && local == "ttl":
		if n := count(r.PlainText()); n > 0 {
			r.polls.ttl = min(time.Duration(n)*time.Minute, maxInterval)
		}
	case rss && local == "skipHours":
		r.skips("hour", func(text string) {
			if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= 24 {
				r.doc.Schedule.SkipHours |= 1 << (n % 24) // 24 is an old name of 0
			}
		})
	case rss && local == "skipDays":
		r.skips("day", func(text string) {
			for day := time.Sunday; day <= time.Saturday; day++ {
				if strings.EqualFold(text, day.String()) {
					r.doc.Schedule.SkipDays |= 1 << day
				}
			}
		})
	case syndication && local == "updatePeriod":
		r.polls.period = periods[strings.ToLower(r.PlainText())]
	case syndication && local == "updateFrequency":
		r.polls.frequency = count(r.PlainText())
	default:
		return false
	}
	r.doc.Schedule.Every = r.polls.every()
	return true
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
	for depth := r.Depth(); r.Child(depth); {
		if vocab.RSSName(r.Local()) == name {
			read(r.PlainText())
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

// headOnly returns the document without its entries and texts.
func (d *Document) headOnly() Document {
	head := *d
	head.Entries, head.Deleted, head.Gaps, head.text, head.raw = nil, nil, nil, "", ""
	return head
}
