package sitemap

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
)

// A page is what an HTML page says of itself.
type page struct {
	url       string // after redirects
	canonical string // "" if it names none
	shortlink string
	titles    [2]string // by JSON-LD, Open Graph or title, and by h1
	published time.Time // zero if it does not say
	kind      string    // the type of article that JSON-LD describes; "" if none
	signs     sign
	entries   int                // the number of h-entries
	times     map[time.Time]bool // of time elements
	links     []pageLink
	article   readability.Article
}

// A pageLink is a link on a page.
type pageLink struct{ URL, Rel string }

// A sign tells a post from other pages. Each comes with a time.
type sign uint8

// The signs.
const (
	byData    sign = 1 << iota // JSON-LD or Open Graph describes one article
	byEntry                    // there is one h-entry
	byTime                     // there are one or two time elements
	byAddress                  // the address has a date
	byList                     // the list has the time
)

// errNoPage means there is no HTML page, or robots.txt forbids reading it.
var errNoPage = errors.New("it is no HTML page")

// get reads a page. A known one is asked for only if it has changed.
func (w *walk) get(address string) (*page, error) {
	if !w.mayRead(address) {
		return nil, errNoPage
	}
	header := http.Header{"Accept": {"text/html, application/xhtml+xml"}}
	if e, ok := w.known[key(address)]; ok && e.KeptBy == name && !e.Updated.IsZero() {
		header.Set("If-Modified-Since", e.Updated.UTC().Format(http.TimeFormat))
	}
	body, resp, err := w.load(address, mostPage, header)
	if err != nil {
		return nil, err
	}
	kind := resp.Header.Get("Content-Type")
	if !strings.Contains(kind, "html") || !w.mayRead(resp.Request.URL.String()) {
		return nil, errNoPage
	}
	decoded, err := charset.NewReader(bytes.NewReader(body), kind)
	if err != nil {
		return nil, errNoPage
	}
	doc, err := html.Parse(decoded)
	if err != nil {
		return nil, errNoPage // the parser gives up at a depth
	}
	return newPage(doc, resp.Request.URL), nil
}

func newPage(doc *html.Node, at *url.URL) *page {
	p := &page{url: at.String(), times: map[time.Time]bool{}}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			p.element(n, at)
		}
	}
	p.article, _ = readability.FromDocument(doc, at)
	p.titles[0] = strings.Join(strings.Fields(p.article.Title()), " ")
	for t := range p.times {
		if p.published.IsZero() || t.Before(p.published) {
			p.published = t
		}
	}
	if p.entries == 1 && len(p.times) > 0 {
		p.signs |= byEntry
	}
	if n := len(p.times); n == 1 || n == 2 {
		p.signs |= byTime
	}
	if t := dateIn(at); !t.IsZero() {
		p.signs |= byAddress
		if p.published.IsZero() {
			p.published = t
		}
	}
	if t, err := p.article.PublishedTime(); err == nil {
		p.published = t
		p.signs |= byData
	}
	return p
}

// articleType matches the type of an article in JSON-LD.
var articleType = regexp.MustCompile(`"@type"\s*:\s*\[?\s*"(\w*(?:Article|Posting))"`)

// element reads an element of a page.
func (p *page) element(n *html.Node, at *url.URL) {
	switch n.DataAtom {
	case atom.H1:
		if p.titles[1] == "" {
			p.titles[1] = textOf(n)
		}
	case atom.Link, atom.A:
		p.link(attr(n, "href"), strings.ToLower(attr(n, "rel")), at)
	case atom.Time:
		p.time(cmp.Or(attr(n, "datetime"), textOf(n)))
	case atom.Script:
		if p.kind == "" && attr(n, "type") == "application/ld+json" {
			if found := articleType.FindStringSubmatch(textOf(n)); found != nil {
				p.kind = found[1]
			}
		}
	}
	for class := range strings.FieldsSeq(attr(n, "class")) {
		switch class {
		case "h-entry", "hentry":
			p.entries++
		case "published", "dt-published": // hAtom and microformats2
			p.time(attr(n, "title"))
		}
	}
}

func (p *page) time(text string) {
	if t := parseTime(text); !t.IsZero() {
		p.times[t] = true
	}
}

func (p *page) link(href, rel string, at *url.URL) {
	u, err := at.Parse(strings.TrimSpace(href))
	if href == "" || err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return
	}
	u.Fragment, u.RawFragment = "", ""
	switch rel {
	case "canonical":
		p.canonical = u.String()
	case "shortlink":
		p.shortlink = u.String()
	case "alternate", "stylesheet", "icon":
	default:
		p.links = append(p.links, pageLink{u.String(), rel})
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf returns the text in an element, with single spaces.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// pageNumber matches the end of the address of a page of a list.
var pageNumber = regexp.MustCompile(`(/page/?[0-9]+/?|/index-?[0-9]+\.html|[?&](page|paged)=[0-9]+)$`)

// pagers returns the links to the next pages of a list.
func (p *page) pagers() (all []string) {
	for _, l := range p.links {
		if l.Rel == "next" || pageNumber.MatchString(l.URL) {
			all = append(all, l.URL)
		}
	}
	return all
}

// A model is what the pages of a feed's entries have in common.
type model struct {
	signs sign     // zero if there are none, or no page could be read
	kinds []string // of the articles on them
	links int      // the most links to posts on one of them
	lang  string
	title int // which of a page's titles is that of the entry
	rule  idRule
	short bool // IDs are the shortlinks
}

// learn reads the pages of the feed's latest and oldest entry.
func (w *walk) learn() error {
	var links, ids, days []string
	var entries []*feedhistory.Entry
	for _, e := range w.doc.Entries {
		if link := linkOf(e); w.isOwn(link) {
			links, ids, days = append(links, w.likeLinks(link)), append(ids, e.ID), append(days, e.Time().Format(time.DateOnly))
			entries = append(entries, e)
		}
	}
	w.model = model{rule: learnIDs(links, ids, days)}
	if len(entries) > 2 {
		entries = []*feedhistory.Entry{entries[0], entries[len(entries)-1]}
	}
	var matches [2]int // of the titles
	for i, e := range entries {
		p, err := w.get(linkOf(e))
		if w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		if err != nil {
			continue
		}
		if i == 0 {
			w.model.signs, w.model.lang = p.signs, languageOf(p)
		}
		w.model.signs &= p.signs
		w.model.kinds = append(w.model.kinds, p.kind)
		w.model.links = max(w.model.links, w.postLinks(p))
		w.model.short = p.shortlink != "" && p.shortlink == e.ID
		for k, title := range p.titles {
			if title == strings.Join(strings.Fields(e.Title().Plain()), " ") {
				matches[k]++
			}
		}
	}
	if matches[1] > 0 && matches[1] >= matches[0] { // the other may be a guess
		w.model.title = 1
	}
	return nil
}

func linkOf(e *feedhistory.Entry) string {
	l, _ := e.Links.Rel("alternate")
	return l.Href
}

// languageOf returns the language of a page, without its country; "" if it does not say.
func languageOf(p *page) string {
	lang, _, _ := strings.Cut(strings.ToLower(p.article.Language()), "-")
	return lang
}

// postLinks returns the number of a page's links to posts.
func (w *walk) postLinks(p *page) int {
	seen := map[string]bool{}
	for _, l := range p.links {
		if w.isOwn(l.URL) {
			seen[key(l.URL)] = true
		}
	}
	return len(seen)
}

// notFound matches the titles of pages for addresses without one.
var notFound = regexp.MustCompile(`(?i)(^|[^0-9])404([^0-9]|$)|(page|seite|página|pagina) (not found|nicht gefunden|no encontrada|non trovata)|^not found|page introuvable`)

// addressOf returns the address of a page's post in the form of the feed's links: the one
// that the page names, or else that of the list.
func (w *walk) addressOf(p *page, a address) string {
	for _, at := range []string{p.canonical, a.URL} {
		if w.isOwn(at) {
			return w.likeLinks(at)
		}
	}
	return p.url
}

// titleOf returns the title of the post on a page.
func (w *walk) titleOf(p *page) string {
	if title := p.titles[w.model.title]; title != "" {
		return title
	}
	return p.titles[0]
}

// isPost reports whether a page is a post of the feed.
func (w *walk) isPost(p *page, a address, at string) bool {
	alien, ok := w.holds(at)
	lang := languageOf(p)
	need := w.model.signs
	switch {
	case !ok, w.titleOf(p) == "", p.published.IsZero(), notFound.MatchString(p.titles[0] + "\n" + p.titles[1]):
		return false
	case key(p.url) != key(a.URL) && key(p.url) != key(at): // a redirect, such as one to the home page
		return false
	case p.canonical != "" && key(p.canonical) != key(at): // a copy of another page
		return false
	case len(w.model.kinds) > 0 && !slices.Contains(w.model.kinds, p.kind): // JSON-LD says it is something else
		return false
	case lang != "" && w.model.lang != "" && lang != w.model.lang:
		return false
	case w.postLinks(p) > 2*w.model.links+10: // a list
		return false
	case alien:
		return need&p.signs&byData != 0
	}
	return p.signs&need == need && p.signs != 0
}

// idOf returns the ID of a page's post: that which the feed would give it, or its address.
func (w *walk) idOf(p *page, address string, others ...string) string {
	if w.model.short && p.shortlink != "" {
		return p.shortlink
	}
	for _, at := range append([]string{address}, others...) {
		if id := w.model.rule.of(at, p.published.Format(time.DateOnly)); id != "" {
			return id
		}
	}
	return address
}

// document returns the document of a post.
func (w *walk) document(p *page, id, address string) (*feedhistory.Document, error) {
	d := compose.Draft{
		ID: id, Title: feedhistory.Text{Type: "text", Body: w.titleOf(p)}, Published: p.published, Updated: p.published,
		Links: feedhistory.Links{{Rel: "alternate", Href: address}}, Extensions: []string{compose.KeptBy(name)},
	}
	if p.signs&byList != 0 {
		d.Published = time.Time{} // a list knows when a page was changed last
	}
	if t, err := p.article.ModifiedTime(); err == nil && t.After(p.published) {
		d.Updated = t
	}
	if author := p.article.Byline(); author != "" {
		d.Authors = []feedhistory.Person{{Name: author}}
	}
	if p.article.Node != nil {
		var b strings.Builder
		if err := p.article.RenderHTML(&b); err != nil {
			return nil, err
		}
		body, ok := strings.CutPrefix(b.String(), `<div id="readability-page-1" class="page">`)
		if ok {
			body = strings.TrimSuffix(body, "</div>")
		}
		d.Content = feedhistory.Text{Type: "html", Body: body}
	}
	e, err := d.Entry()
	if err != nil {
		return nil, err
	}
	head := feedhistory.Document{URL: p.url, Format: feedhistory.FormatAtom, Response: feedhistory.Response{Requested: p.url, Received: time.Now()}}
	doc := head
	e.Head, doc.Entries = &head, []*feedhistory.Entry{e}
	return &doc, nil
}

// previous reads the posts from one to the one before it, from the feed's oldest entry or the
// place of an earlier walk.
func (w *walk) previous(begun time.Time) {
	w.announce(0)
	at := w.oldest
	if w.resume != nil {
		at = w.resume.At.URL
	}
	seen := map[string]bool{}
	for at != "" && !seen[key(at)] {
		seen[key(at)] = true
		w.setPlace(place{At: address{URL: at}, Begun: begun})
		p, goOn := w.page(address{URL: at})
		if !goOn || p == nil {
			return
		}
		here := at
		if at = w.neighbour(p, seen); at != "" {
			w.setPlace(place{At: address{URL: at}, Begun: begun})
		} else {
			w.probe.SetPlace("")
		}
		if !w.post(p, address{URL: here}) {
			return
		}
	}
}

// neighbour returns the post before or after a page's, if it is not known yet; "" if there
// is none. Sites do not agree on which of the two is the previous one.
func (w *walk) neighbour(p *page, seen map[string]bool) string {
	for _, rel := range []string{"prev", "previous", "next"} {
		for _, l := range p.links {
			e, known := w.known[key(l.URL)]
			if w.isOwn(l.URL) && l.Rel == rel && !seen[key(l.URL)] && (!known || e.KeptBy == name) {
				return l.URL
			}
		}
	}
	return ""
}
