package feedhistory

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
)

// Discover returns the feeds of the web page at address, the best first: those the page
// names, see [NotFeedError]. If it names none, Discover looks for one at well-known
// places, such as /feed or /atom.xml, in the page's directory and at the root of its
// host, with at most 14 requests, one after another, and returns the first it finds. If
// there is a feed at address itself, it returns only that.
//
// To find no feed is not an error; the errors are those of Get, among them the
// *ParseError for text without markup, which is no web page. Discover does not request
// the feeds a page names, which may be at any host, or missing.
// The error may be the context's.
func (c *Client) Discover(ctx context.Context, address string) (Links, error) {
	address = iri.WithoutFragment(address)
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

// wellKnownPlaces are the paths at which the software of websites serves feeds.
var wellKnownPlaces = []string{"feed", "feed.xml", "atom.xml", "index.xml", "rss.xml", "rss", "feed.json"}

// wellKnown looks for a feed at the well-known places of a page's site. It gives up
// after an error that the other places are likely to repeat.
func (c *Client) wellKnown(ctx context.Context, page string) (Links, error) {
	base, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	dirs := []string{base.ResolveReference(&url.URL{Path: "."}).String(), base.ResolveReference(&url.URL{Path: "/"}).String()}
	for _, dir := range slices.Compact(dirs) {
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

// feedLink returns the link to a feed as a page would have it.
func feedLink(address string, doc *Document) Link {
	return Link{Rel: RelAlternate, Href: address, Type: doc.Format.mediaType(), Title: markup.ClipTitle(doc.Title)}
}

func (f Format) mediaType() string {
	return name(f, "", "application/atom+xml", "application/rss+xml", "application/feed+json")
}
