package feedhistory

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"github.com/feedhistory/feedhistory/internal/weblink"
)

// Discover returns the feeds of the web page at address, the best first. They
// are those that the page names, see [NotFeedError]; if it names none, the first
// that is at a well-known place, such as /feed or /atom.xml, in the page's
// directory or at the root of its host: at most 14 requests, one after the other.
// If there is a feed at address itself, that is the only one.
//
// There is no error if there are none; the errors are those of Get. What a page
// names may be at any host, or none: nothing of it has been requested.
func (c *Client) Discover(ctx context.Context, address string) (Links, error) {
	address = withoutFragment(address)
	doc, err := c.Get(ctx, address)
	if doc != nil {
		return Links{feedLink(address, doc)}, nil
	}
	other, ok := errors.AsType[*NotFeedError](err)
	switch {
	case !ok:
		return nil, err
	case len(other.Feeds) > 0 || !other.Page:
		return other.Feeds, nil
	}
	return c.wellKnown(ctx, other.URL)
}

// feedLink is the link that a page would have to a feed.
func feedLink(address string, doc *Document) Link {
	return Link{Rel: RelAlternate, Href: address, Type: doc.Format.mediaType(), Title: clipTitle(doc.Title)}
}

func (f Format) mediaType() string {
	return name(f, "", "application/atom+xml", "application/rss+xml", "application/feed+json")
}

// wellKnownPlaces are where the software of sites has feeds.
var wellKnownPlaces = []string{"feed", "feed.xml", "atom.xml", "index.xml", "rss.xml", "rss", "feed.json"}

// wellKnown looks for a feed at the well-known places of a page's site. An answer
// that others are likely to repeat is an error.
func (c *Client) wellKnown(ctx context.Context, page string) (Links, error) {
	base, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	for _, dir := range uniques(base.ResolveReference(&url.URL{Path: "."}).String(), base.ResolveReference(&url.URL{Path: "/"}).String()) {
		for _, place := range wellKnownPlaces {
			doc, err := c.Get(ctx, dir+place)
			if doc != nil {
				return Links{feedLink(dir+place, doc)}, nil
			}
			status, ok := errors.AsType[*StatusError](err)
			if ok && (status.Status == http.StatusTooManyRequests || status.Status >= 500) || !ok && !is[*ParseError](err) && !is[*RefusedError](err) {
				return nil, err
			}
		}
	}
	return nil, nil
}

// uniques returns the two, or one if they are the same.
func uniques(a, b string) []string {
	if a == b {
		return []string{a}
	}
	return []string{a, b}
}

// notFeed makes of the error on a document that is no feed one with the feeds
// that it names, if it is a page; other errors stay as they are.
func (c *Client) notFeed(err error, text, base string, header http.Header) error {
	parse, ok := errors.AsType[*ParseError](err)
	if !ok {
		return err
	}
	contentType := header.Get("Content-Type")
	mediaType, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	mediaType = strings.TrimSpace(mediaType)
	page := parse.Err.Error() == htmlPage ||
		(mediaType == "text/html" || mediaType == "application/xhtml+xml") && strings.Contains(text, "<")
	if page && (parse.Reason == ReasonMalformed || parse.Reason == ReasonNotFeed) {
		parse = &ParseError{URL: base, Reason: ReasonNotFeed, Clause: clauseFeed, Line: 1, Column: 1, Err: stringError(htmlPage)}
	}
	if parse.Reason != ReasonNotFeed {
		return err
	}
	e := &NotFeedError{URL: base, Page: page, Err: parse}
	if page {
		e.Feeds = feedLinks(text, base, contentType, c.Limits.withDefaults().URL)
	}
	return e
}

// How much of a web page is looked at, in bytes, how many of its links count, and
// how long their titles may be.
const (
	mostPage      = 1 << 20
	mostFeedLinks = 64
	mostTitle     = 200
)

// feedLinks reads the links to feeds from a page, the best first.
func feedLinks(page, address, contentType string, longest int) Links {
	base, err := url.Parse(address)
	if err != nil {
		return nil
	}
	text, err := charset.NewReader(strings.NewReader(page[:min(len(page), mostPage)]), contentType)
	if err != nil {
		return nil // there is nothing
	}
	found, ref := scanPage(io.LimitReader(text, 3*mostPage))
	if u, err := base.Parse(ref); err == nil && isWeb(u) {
		base = u
	}
	var links Links
	seen := map[string]bool{}
	for _, link := range found {
		u, err := base.Parse(link.Href)
		if err != nil || !isWeb(u) || u.User != nil {
			continue
		}
		u.Fragment, u.RawFragment = "", ""
		if link.Href = u.String(); len(link.Href) <= longest && !seen[link.Href] {
			seen[link.Href] = true
			links = append(links, link)
		}
		if len(links) == mostFeedLinks {
			break
		}
	}
	return bestFirst(links)
}

func isWeb(u *url.URL) bool { return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" }

// scanPage returns the links of a page to feeds, as they are written, and its
// base: the first that it gives.
func scanPage(page io.Reader) (links Links, base string) {
	z := html.NewTokenizer(page)
	z.SetMaxBuf(mostPage)
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return links, base
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		tag, _ := z.TagName()
		if name := string(tag); name != "base" && name != "link" {
			continue
		} else if link := linkOf(z); name == "base" && base == "" {
			base = link.Href
		} else if name == "link" && isFeedLink(link) {
			link.Rel = RelAlternate
			links = append(links, link)
		}
	}
}

// linkOf returns the link of the current element. The first attribute of a name
// counts.
func linkOf(z *html.Tokenizer) (link Link) {
	set := func(field *string, value string) {
		if *field == "" {
			*field = strings.TrimSpace(value)
		}
	}
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "rel":
			set(&link.Rel, strings.ToLower(string(value)))
		case "href":
			set(&link.Href, string(value))
		case "type":
			mediaType, _, _ := strings.Cut(strings.ToLower(string(value)), ";")
			set(&link.Type, mediaType)
		case "title":
			set(&link.Title, clipTitle(string(value)))
		case "hreflang":
			set(&link.HrefLang, clipTitle(string(value)))
		}
	}
	return link
}

func clipTitle(title string) string {
	if title = strings.TrimSpace(title); len(title) > mostTitle {
		title = title[:mostTitle]
	}
	return strings.ToValidUTF8(title, "")
}

// feedTypes are the media types of feeds, the best first.
var feedTypes = []string{"application/atom+xml", "application/rss+xml", "application/feed+json", "application/rdf+xml"}

// isFeedLink reports whether a link of a page leads to a feed.
func isFeedLink(link Link) bool {
	if link.Href == "" || slices.Index(feedTypes, link.Type) < 0 {
		return false
	}
	return slices.ContainsFunc(strings.Fields(link.Rel), func(rel string) bool { return rel == "alternate" || rel == "feed" })
}

// bestFirst returns one link for each feed, in the best of its formats; feeds of
// comments come last.
func bestFirst(links Links) (best Links) {
	var comments Links
	var feeds []Links              // each in the formats that it has
	var names [][]weblink.FeedName // of those
	for _, link := range links {
		name := weblink.NameOf(link.Title, link.Href)
		i := 0
		for ; i < len(feeds); i++ {
			if !slices.ContainsFunc(feeds[i], func(l Link) bool { return l.Type == link.Type }) &&
				!slices.ContainsFunc(names[i], func(other weblink.FeedName) bool { return !name.Matches(other) }) {
				break
			}
		}
		if i == len(feeds) {
			feeds, names = append(feeds, nil), append(names, nil)
		}
		feeds[i], names[i] = append(feeds[i], link), append(names[i], name)
	}
	for _, formats := range feeds {
		first := formats[0]
		for _, link := range formats {
			if slices.Index(feedTypes, link.Type) < slices.Index(feedTypes, first.Type) {
				first = link
			}
		}
		if weblink.IsOfComments(first.Title, first.Href) {
			comments = append(comments, first)
		} else {
			best = append(best, first)
		}
	}
	return append(best, comments...)
}
