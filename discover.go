package feedhistory

import (
	"context"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

// Discover returns the feeds that the web page at address has: its links with
// rel="alternate" and the media type of a feed, in the page's order, each once.
// Only the first 1 MiB of the page is looked at, and at most 64 links are
// returned. There is no error if there are none; the errors are those of Get.
func (c *Client) Discover(ctx context.Context, address string) (Links, error) {
	resp, err := c.do(ctx, fetch.Request{URL: requestURL(address), Accept: "text/html, */*;q=0.5"})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return feedLinks(io.LimitReader(resp.Body, mostPage), resp.URL)
}

// How much of a web page is looked at, in bytes, and how many of its links count.
const (
	mostPage      = 1 << 20
	mostFeedLinks = 64
)

// feedLinks reads the links to feeds from a page.
func feedLinks(page io.Reader, address string) (links Links, err error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	z := html.NewTokenizer(page)
	for based := false; len(links) < mostFeedLinks; {
		kind := z.Next()
		if kind == html.ErrorToken {
			if err := z.Err(); err != io.EOF {
				return links, err
			}
			return links, nil
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		token := z.Token()
		switch link := linkOf(token); {
		case token.Data == "base" && !based && link.Href != "":
			if u, err := base.Parse(link.Href); err == nil {
				base, based = u, true
			}
		case token.Data == "link" && isFeedLink(link):
			u, err := base.Parse(link.Href)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" {
				continue
			}
			if link.Href = u.String(); !seen[link.Href] {
				seen[link.Href] = true
				links = append(links, link)
			}
		}
	}
	return links, nil
}

// linkOf returns an element's link.
func linkOf(token html.Token) (link Link) {
	for _, a := range token.Attr {
		value := strings.TrimSpace(a.Val)
		switch a.Key {
		case "rel":
			link.Rel = strings.ToLower(value)
		case "href":
			link.Href = value
		case "type":
			link.Type = strings.ToLower(value)
		case "title":
			link.Title = value
		case "hreflang":
			link.HrefLang = value
		}
	}
	return link
}

// isFeedLink reports whether a link of a page leads to a feed.
func isFeedLink(link Link) bool {
	mediaType, _, _ := strings.Cut(link.Type, ";")
	switch strings.TrimSpace(mediaType) {
	case "application/atom+xml", "application/rss+xml", "application/rdf+xml", "application/feed+json":
	default:
		return false
	}
	for rel := range strings.FieldsSeq(link.Rel) {
		if rel == "alternate" || rel == "feed" {
			return link.Href != ""
		}
	}
	return false
}
