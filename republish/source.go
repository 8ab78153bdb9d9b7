package republish

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
	"github.com/feedhistory/feedhistory/mirror"
)

// A source is the target format of entries published again, and the feed they name as
// their source.
type source struct {
	format  feedhistory.Format
	head    *feedhistory.Document // of archives: without a verdict
	element string                // the source element of the feed
	private bool                  // the feed is private
}

// newSource returns the source of a feed, which has the given id or, if that is "", its own.
// Nothing in it changes from poll to poll.
func newSource(feed *mirror.Feed, format feedhistory.Format, id string) (*source, error) {
	head, err := heading(feed, format, nil)
	if err != nil {
		return nil, err
	}
	head.ID = cmp.Or(id, head.ID)
	return &source{format: format, head: head, element: sourceElement(feed, head, format), private: feed.Private}, nil
}

// sourceElement returns the element by which entries name their feed. Each entry repeats it, so
// a long title is shortened, and parts for which there is no room are left out: authors first,
// because an entry of Atom has those of its feed itself.
func sourceElement(feed *mirror.Feed, head *feedhistory.Document, format feedhistory.Format) string {
	title, room := Title(feed), xmlscan.MaxInheritedExtra
	if len(escape(title)) > room/2 {
		title = xmlscan.Clip(title, 80)
	}
	part := func(before, text, after string) (element string) {
		if element = before + escape(text) + after; text == "" || len(element) > room {
			return ""
		}
		room -= len(element)
		return element
	}
	if format == feedhistory.FormatRSS {
		return part(`<source url="`, cmp.Or(addressOf(feed), hostOf(feed)), `">`+escape(title)+"</source>")
	}
	title, id := part("<title>", title, "</title>"), part("<id>", head.ID, "</id>")
	links := part(`<link rel="self" href="`, addressOf(feed), `"/>`) + part(`<link rel="alternate" href="`, Site(feed), `"/>`)
	for _, a := range head.Authors {
		title += part("<author><name>", a.Name, "</name></author>")
	}
	return `<source xmlns="` + feedxml.Atom + `">` + id + title + links + "</source>"
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// entry returns an entry as it was published, with a source, and with elements required
// by the format, if it lacks them.
func (m *source) entry(r *mirror.Record) (*feedhistory.Entry, error) {
	if m.private {
		r = r.Redacted()
	}
	e, err := r.Entry()
	if err != nil {
		return nil, err
	}
	element := string(e.XML())
	if !m.isNative(element) {
		if e.Changed().IsZero() {
			e.Updated = r.Time() // when the mirror first saw it
		}
		if element, err = m.converted(e); err != nil {
			return nil, err
		}
	}
	return m.with(element, m.lacking(element, r), r.ID)
}

// size returns about how large an entry is, without making it. It is rather too large than too
// small.
func (m *source) size(r *mirror.Record) int64 {
	const elements = 300 // id, time and namespaces, where they are missing
	n := len(r.Content.Data) + len(m.element) + elements
	escaped := func(text string) int {
		return 3*(strings.Count(text, "<")+strings.Count(text, ">")) + 4*strings.Count(text, "&")
	}
	if r.Content.Format == feedhistory.FormatJSONFeed {
		return int64(n + escaped(r.Content.Data))
	}
	for rest := r.Content.Data; ; { // sections are escaped where the format is converted
		_, section, ok := strings.Cut(rest, "<![CDATA[")
		if !ok {
			return int64(n)
		}
		section, rest, _ = strings.Cut(section, "]]>")
		n += escaped(section)
	}
}

// with returns an entry with additional elements.
func (m *source) with(element, more, id string) (*feedhistory.Entry, error) {
	end := strings.LastIndex(element, "</")
	if end < 0 {
		return nil, fmt.Errorf("entry %q is empty", id)
	}
	return feedhistory.ReadEntry(m.format, element[:end]+more+element[end:], "")
}

// isNative reports whether an element can be used in the format unchanged.
func (m *source) isNative(element string) bool {
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	if !s.Child(0) {
		return false
	}
	if m.format == feedhistory.FormatRSS {
		return s.Space() == "" && s.Local() == "item"
	}
	return s.Is(feedxml.Atom, "entry")
}

// converted returns an entry converted from another format.
func (m *source) converted(e *feedhistory.Entry) (string, error) {
	doc, err := reread(&feedhistory.Document{ID: "urn:x", Entries: []*feedhistory.Entry{e}}, m.format)
	if err != nil {
		return "", err
	}
	if len(doc.Entries) != 1 {
		return "", fmt.Errorf("entry %q cannot be written as %v", e.ID, m.format)
	}
	return string(doc.Entries[0].XML()), nil
}

// lacking returns the elements missing from an entry.
func (m *source) lacking(element string, r *mirror.Record) string {
	has := map[string]bool{}
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	s.Next()
	for depth := s.Depth(); s.Child(depth); s.Skip() {
		has[s.Space()+" "+s.Local()] = true
	}
	lacks := func(name, element string) string {
		if has[name] {
			return ""
		}
		return element
	}
	if m.format == feedhistory.FormatRSS {
		return lacks(" guid", `<guid isPermaLink="false">`+escape(r.ID)+"</guid>") + lacks(" source", m.element)
	}
	const atom = ` xmlns="` + feedxml.Atom + `">`
	return lacks(feedxml.Atom+" id", "<id"+atom+escape(r.ID)+"</id>") +
		lacks(feedxml.Atom+" updated", "<updated"+atom+r.Time().UTC().Format(time.RFC3339Nano)+"</updated>") +
		lacks(feedxml.Atom+" source", m.element)
}

// Title returns the title under which a feed is published: its own, or else its
// URL. Of a private feed's URL it has only the host.
func Title(feed *mirror.Feed) string {
	if feed == nil {
		return ""
	}
	_, address, _ := strings.Cut(cmp.Or(addressOf(feed), hostOf(feed)), "://")
	return cmp.Or(strings.TrimSpace(feed.Redacted().Title), strings.TrimSuffix(address, "/"))
}

// addressOf returns the URL of a feed as documents may name it. A private feed's is "",
// because its path or its query may be the secret.
func addressOf(feed *mirror.Feed) string {
	if feed.Private {
		return ""
	}
	return iri.Redact(feed.URL)
}

func hostOf(feed *mirror.Feed) string {
	u, err := iri.ParseLeniently(feed.URL)
	if err != nil {
		return "a private feed"
	}
	return u.Scheme + "://" + u.Host
}

// gapsOf returns the gaps of a feed as documents may report them.
func gapsOf(feed *mirror.Feed) []*feedhistory.Gap { return feed.Redacted().Ledger.Gaps() }

// Site returns the URL of the website a feed belongs to; "" if unknown.
func Site(feed *mirror.Feed) string {
	if feed == nil {
		return ""
	}
	head, err := feed.Redacted().Document()
	if err != nil {
		return ""
	}
	link, _ := head.Links.Rel("alternate")
	u, err := iri.ParseLeniently(link.Href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	if _, fragment, ok := strings.Cut(link.Href, "#"); ok {
		return u.String() + "#" + iri.Escape(fragment)
	}
	return u.String()
}

// Explain explains a verdict on a mirror in a sentence.
func Explain(v feedhistory.Verdict) string {
	switch v {
	case feedhistory.VerdictWhole:
		return "Every entry the feed says it has is here."
	case feedhistory.VerdictWindow:
		return "The feed lists only its latest entries. These are the ones collected so far."
	case feedhistory.VerdictLossy:
		return "All pages of the feed are here, but a paged feed cannot promise to have everything."
	}
	return "Something is known to be missing."
}

// heading returns the head of a republished feed. With nil coverage
// it is the head of archives, which never change.
func heading(feed *mirror.Feed, format feedhistory.Format, coverage *feedhistory.Coverage) (*feedhistory.Document, error) {
	head, err := feed.Redacted().Document()
	if errors.Is(err, mirror.ErrNotFound) { // only a part of the document could be read
		head, err = &feedhistory.Document{ID: cmp.Or(addressOf(feed), hostOf(feed))}, nil
	}
	if err != nil {
		return nil, err
	}
	head.Format = feedhistory.FormatAtom
	head.Title = Title(feed)
	head.Updated, head.LastModified = time.Time{}, time.Time{}
	if len(head.Authors) == 0 {
		head.Authors = []feedhistory.Person{{Name: head.Title}}
	}
	head.Links = slices.DeleteFunc(head.Links, func(l feedhistory.Link) bool { return l.Rel != "alternate" && l.Rel != "license" })
	if address := addressOf(feed); address != "" {
		head.Links = append(head.Links, feedhistory.Link{Rel: "via", Href: address})
	}
	if head.Coverage = coverage; coverage != nil {
		if head.Subtitle != "" {
			head.Subtitle += " – "
		}
		head.Subtitle += fmt.Sprintf("Mirrored from %s. Verdict: %v. %s", cmp.Or(addressOf(feed), hostOf(feed)), coverage.Verdict, Explain(coverage.Verdict))
	}
	return reread(head, format)
}

// reread returns a document as if it had been read in the format, where it may be longer than
// documents from elsewhere.
func reread(doc *feedhistory.Document, format feedhistory.Format) (*feedhistory.Document, error) {
	var b bytes.Buffer
	if err := compose.NewWriter(&b, format, doc).Close(); err != nil {
		return nil, err
	}
	return feedhistory.Parser{Trusted: true}.Parse(&b, "")
}
