package sitemap

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/temoto/robotstxt"
	"golang.org/x/net/html/charset"

	"github.com/feedhistory/feedhistory"
)

// The limits of a site's lists. Those of a sitemap are the protocol's.
const (
	mostLists     = 500       // sitemaps, or pages that list posts
	mostAddresses = 200_000   // pages that may be posts
	mostBytes     = 50 << 20  // of a sitemap, decompressed
	mostRobots    = 500 << 10 // of robots.txt (RFC 9309 §2.5)
	mostPage      = 2 << 20   // of a page
)

// load returns the body of an answer, and its URL after redirects. The error is a
// *feedhistory.FetchError, or the context's.
func (w *walk) load(address string, most int64, header http.Header) (body []byte, resp *http.Response, err error) {
	u, err := feedhistory.ParseURL(address)
	if err != nil {
		return nil, nil, &feedhistory.FetchError{URL: address, Reason: feedhistory.ReasonRefused, Err: err}
	}
	resp, err = w.http.HTTPClient().Do((&http.Request{Method: http.MethodGet, URL: u, Header: header}).WithContext(w.ctx))
	if failed, ok := errors.AsType[*feedhistory.FetchError](err); ok {
		return nil, nil, failed
	}
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, resp, feedhistory.NewFetchError(resp)
	}
	body, err = readAll(resp.Body, most, address)
	w.bytes += int64(len(body))
	return body, resp, err
}

// readAll reads a body of at most so many bytes.
func readAll(r io.Reader, most int64, address string) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(body)) > most {
		err = &feedhistory.FetchError{URL: address, Reason: feedhistory.ReasonLimit, Err: &http.MaxBytesError{Limit: most}}
	}
	return body, err
}

// robots returns the robots.txt of a URL's host, which it reads once (RFC 9309). A host
// whose robots.txt cannot be read or parsed forbids everything: the error says why.
func (w *walk) robots(address string) (*robotstxt.RobotsData, error) {
	u, err := feedhistory.ParseURL(address)
	if err != nil {
		return nil, err
	}
	if r := w.rules[u.Host]; r != nil {
		return r, nil
	}
	at := u.ResolveReference(&url.URL{Path: "/robots.txt"}).String()
	body, resp, err := w.load(at, mostRobots, nil)
	if isMissing(resp) {
		body, err = nil, nil
	}
	var r *robotstxt.RobotsData
	if err == nil {
		r, err = robotstxt.FromBytes(body)
	}
	if err != nil {
		return nil, feedhistory.NewGap(at, err)
	}
	w.rules[u.Host] = r
	w.http.Pace = max(w.http.Pace, min(r.FindGroup(product).CrawlDelay, 30*time.Second))
	return r, nil
}

// product names the program in robots.txt.
const product = "feedhistory"

// isMissing reports whether an answer means there is no such document.
func isMissing(r *http.Response) bool {
	return r != nil && r.StatusCode >= 400 && r.StatusCode < 500 && r.StatusCode != http.StatusTooManyRequests
}

// mayRead reports whether robots.txt allows a URL.
func (w *walk) mayRead(address string) bool {
	u, err := feedhistory.ParseURL(address)
	if err != nil || u.Host == "" || w.same != "" && !feedhistory.SameOrigin(w.same, address) {
		return false
	}
	r, err := w.robots(address)
	return err == nil && r.TestAgent(u.RequestURI(), product)
}

// sitemaps returns the possible posts in the sitemaps, each once. Of several
// sitemaps whose names say they have posts, it reads only those.
func (w *walk) sitemaps(robots *robotstxt.RobotsData) (all []address, err error) {
	queue := slices.Clone(robots.Sitemaps)
	if len(queue) == 0 {
		queue = append(queue, w.home.ResolveReference(&url.URL{Path: "/sitemap.xml"}).String())
		if w.home.Path != "/" {
			queue = append(queue, w.home.ResolveReference(&url.URL{Path: "sitemap.xml"}).String())
		}
	}
	asked, listed := map[string]bool{}, map[string]bool{}
	for len(queue) > 0 && len(asked) < mostLists && len(all) < mostAddresses {
		at := queue[0]
		if queue = queue[1:]; asked[at] || !w.mayRead(at) {
			continue
		}
		asked[at] = true
		body, resp, err := w.load(at, mostBytes, nil)
		if err == nil {
			body, err = unzip(body, at)
		}
		if isMissing(resp) {
			continue
		}
		var list sitemap
		if err == nil {
			list, err = parseSitemap(body, at)
		}
		if errors.Is(err, errNoSitemap) {
			continue // such as the page of an error
		}
		if err != nil {
			return nil, feedhistory.NewGap(at, err)
		}
		queue = append(queue, chosen(list.Maps)...)
		for _, a := range list.Pages {
			var ok bool
			if a.alien, ok = w.holds(a.URL); !ok || listed[key(a.URL)] || a.alien && !ofPosts(at) && !hasDate.MatchString(a.URL) {
				continue
			}
			listed[key(a.URL)] = true
			if all = append(all, a); len(all) == mostAddresses {
				break
			}
		}
	}
	return all, nil
}

// hasDate matches addresses with a year and a month.
var hasDate = regexp.MustCompile(`/(19|20)[0-9]{2}[/-][01][0-9]?[/-]`)

// The names of sitemaps tell what is in them.
var (
	postsName  = regexp.MustCompile(`(?i)(^|[-_/.])(posts?|articles?|blogs?|news|entries)([-_.0-9]|$)`)
	othersName = regexp.MustCompile(`(?i)(^|[-_/.])(pages?|tags?|categor(y|ies)|taxonom(y|ies)|authors?|users?|images?|videos?|products?)([-_.0-9]|$)`)
)

func ofPosts(sitemap string) bool {
	u, err := url.Parse(sitemap)
	return err == nil && postsName.MatchString(u.Path) && !othersName.MatchString(u.Path)
}

// chosen returns those of an index's sitemaps with possible posts.
func chosen(maps []string) []string {
	isOther := func(at string) bool { return !ofPosts(at) }
	if posts := slices.DeleteFunc(slices.Clone(maps), isOther); len(posts) > 0 {
		return posts
	}
	return slices.DeleteFunc(slices.Clone(maps), func(at string) bool {
		u, err := url.Parse(at)
		return err != nil || othersName.MatchString(u.Path)
	})
}

// unzip decompresses a sitemap in a file of gzip.
func unzip(body []byte, address string) ([]byte, error) {
	if !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		body, err = readAll(z, mostBytes, address)
	}
	if _, limited := errors.AsType[*feedhistory.FetchError](err); limited || err == nil {
		return body, err
	}
	return nil, &feedhistory.FetchError{URL: address, Reason: feedhistory.ReasonMalformed, Err: err}
}

// A sitemap is a list of pages, or an index of other sitemaps.
type sitemap struct {
	Pages []address
	Maps  []string
}

var errNoSitemap = errors.New("it is no sitemap")

// parseSitemap reads a sitemap in XML, a feed, or a text with an address in each line.
func parseSitemap(body []byte, at string) (s sitemap, err error) {
	text := bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	if !bytes.HasPrefix(text, []byte("<")) {
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "http://") || strings.HasPrefix(line, "https://") {
				s.Pages = append(s.Pages, address{URL: line})
			}
		}
		return s, nil
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	d.Strict, d.CharsetReader = false, charset.NewReaderLabel
	for {
		token, err := d.Token()
		if err == io.EOF {
			return s, nil
		}
		if err != nil {
			line, _ := d.InputPos()
			return s, &feedhistory.ParseError{URL: at, Reason: feedhistory.ReasonMalformed, Line: line, Err: err}
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch element.Name.Local {
		case "urlset", "sitemapindex":
		case "url", "sitemap":
			var item struct {
				Loc     string `xml:"loc"`
				LastMod string `xml:"lastmod"`
			}
			if err := d.DecodeElement(&item, &element); err != nil {
				continue // the next token has the error again
			}
			item.Loc = strings.TrimSpace(item.Loc)
			if element.Name.Local == "sitemap" {
				s.Maps = append(s.Maps, item.Loc)
			} else {
				s.Pages = append(s.Pages, address{URL: item.Loc, Modified: parseTime(item.LastMod)})
			}
		case "rss", "feed", "RDF":
			doc, err := feedhistory.Parse(bytes.NewReader(body), at)
			if doc == nil {
				return s, err
			}
			for _, e := range doc.Entries {
				s.Pages = append(s.Pages, address{URL: linkOf(e), Modified: e.Changed()})
			}
			return s, nil
		default:
			return s, errNoSitemap
		}
	}
}

// The layouts of times in sitemaps and pages.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05-0700", "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly, "2006/01/02"}

// parseTime returns the time in a text; zero if there is none.
func parseTime(text string) time.Time {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil && t.Year() > 1980 {
			return t
		}
	}
	return time.Time{}
}

// listNames are where sites have a list of all posts.
var listNames = regexp.MustCompile(`(?i)^(archives?|blog|posts|all|all-posts|articles|journal|writing|history)(\.[a-z]+)?$`)

// archives returns the posts to which the site's home page and its archive pages link, and
// the pages that follow these.
func (w *walk) archives() (all []address, err error) {
	queue := []string{w.home.String()}
	asked, listed := map[string]bool{}, map[string]bool{}
	for len(queue) > 0 && len(asked) < mostLists && len(all) < mostAddresses {
		at := queue[0]
		if queue = queue[1:]; asked[key(at)] || !w.mayRead(at) {
			continue
		}
		asked[key(at)] = true
		p, err := w.get(at)
		if err != nil {
			if failed, _ := errors.AsType[*feedhistory.FetchError](err); failed != nil && failed.Status == 0 || w.ctx.Err() != nil {
				return nil, feedhistory.NewGap(at, err)
			}
			continue
		}
		before := len(all)
		for _, l := range p.links {
			if w.isOwn(l.URL) && !listed[key(l.URL)] {
				listed[key(l.URL)] = true
				all = append(all, address{URL: l.URL})
			}
		}
		if len(asked) == 1 || len(all) > before { // a page without news ends its series
			queue = append(queue, p.pagers()...)
		}
		if len(asked) == 1 {
			queue = append(queue, w.lists(p)...)
		}
	}
	return all, nil
}

// lists returns the pages of the site that may list all posts: those to which the home page
// links, or else those with the usual names.
func (w *walk) lists(home *page) (all []string) {
	for _, l := range home.links {
		u, err := url.Parse(l.URL)
		if err == nil && hostKey(u) == w.host && listNames.MatchString(lastSegment(u)) && !part.MatchString(path.Dir(u.Path)) && len(all) < 5 {
			all = append(all, l.URL)
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, usual := range []string{"archive/", "archives/", "archives.html", "blog/", "posts/"} {
		all = append(all, w.home.ResolveReference(&url.URL{Path: usual}).String())
	}
	return all
}

func lastSegment(u *url.URL) string {
	p := strings.Trim(u.Path, "/")
	return p[strings.LastIndex(p, "/")+1:]
}
