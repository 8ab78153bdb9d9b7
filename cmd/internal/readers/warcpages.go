package readers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/backfill/sitemap"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
)

// savedPages are the pages of sites in WARC files. As an http.RoundTripper, it answers for
// these sites, and lists their pages as a sitemap does. The pages are in a temporary file, so
// memory has only their places.
type savedPages struct {
	file  *os.File
	end   int64
	sites map[string]map[string]savedPage  // by the host, and by the rest of the address; others are not kept
	heads map[string]savedPage             // each feed's latest subscription document
	known map[string]*feedhistory.Document // the mirrored entries of a feed the files may lack
}

// A savedPage is the place of the latest capture of a page.
type savedPage struct {
	uri  string // the path and the query
	kind string // the Content-Type
	at   time.Time
	from int64
	size int64
}

// The limits of pages. The method for a site's pages refuses a page of this size.
const (
	mostPage  = 2<<20 + 1
	mostPages = 1_000_000
)

func newSavedPages() (*savedPages, error) {
	file, err := os.CreateTemp("", "feedhistory-import-")
	return &savedPages{file, 0, map[string]map[string]savedPage{}, map[string]savedPage{}, map[string]*feedhistory.Document{}}, err
}

func (p *savedPages) close() error {
	_ = p.file.Close() // it is of no more use
	return os.Remove(p.file.Name())
}

// place returns the keys of a URL: the host, and the rest of the address.
func place(u *url.URL) (site, page string) {
	return strings.TrimPrefix(strings.ToLower(u.Host), "www."), strings.TrimSuffix(u.EscapedPath(), "/") + "?" + u.RawQuery
}

// expect makes p keep the pages at the hosts to which a feed's entries link.
func (p *savedPages) expect(doc *feedhistory.Document) {
	for _, e := range doc.Entries {
		if u, err := feedhistory.ParseURL(linkOf(e)); err == nil && u.Host != "" {
			if site, _ := place(u); p.sites[site] == nil {
				p.sites[site] = map[string]savedPage{}
			}
		}
	}
}

// expectMirrored does so for a feed the files may lack, by its latest mirrored entries.
func (p *savedPages) expectMirrored(ctx context.Context, store mirror.Store, feed string) error {
	if store == nil {
		return nil
	}
	f, err := store.Feed(ctx, feed)
	if errors.Is(err, mirror.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	doc, err := f.Document()
	if err != nil || f.Kind != feedhistory.Plain {
		return nil
	}
	for r, err := range store.Entries(ctx, mirror.Query{Feed: feed, Limit: atOnce}) {
		if err != nil {
			return err
		}
		if e, err := r.Entry(); err == nil && e.KeptBy == "" {
			doc.Entries = append(doc.Entries, e)
		}
	}
	p.known[feed] = doc
	p.expect(doc)
	return nil
}

// add keeps a page, or a subscription document of a feed.
func (p *savedPages) add(c *capture, feed string) error {
	u, err := url.Parse(c.url)
	if err != nil {
		return nil
	}
	site, page := place(u)
	into := p.sites[site]
	switch {
	case c.doc != nil && feed != "" && (bare(c.url) == bare(feed) || bare(selfOf(c.doc)) == bare(feed)):
		into, page = p.heads, feed
	case !c.isPage || into == nil:
		return nil
	}
	if known, ok := into[page]; ok && c.at.Before(known.at) {
		return nil
	} else if !ok && c.isPage && len(into) >= mostPages {
		return fmt.Errorf("%s: more than %d pages", site, mostPages)
	}
	body := c.body
	if c.isPage {
		body = body[:min(len(body), mostPage)]
	}
	if _, err := p.file.WriteAt(body, p.end); err != nil {
		return fmt.Errorf("the pages cannot be copied to the directory for temporary files, which TMPDIR sets: %w", err)
	}
	into[page] = savedPage{u.RequestURI(), c.header.Get("Content-Type"), c.at, p.end, int64(len(body))}
	p.end += int64(len(body))
	return nil
}

// RoundTrip implements http.RoundTripper. The pages of a site have the scheme and the host of
// the request.
func (p *savedPages) RoundTrip(r *http.Request) (*http.Response, error) {
	site, at := place(r.URL)
	page, ok := p.sites[site][at]
	resp := &http.Response{StatusCode: http.StatusNotFound, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r}
	switch {
	case r.URL.Path == "/sitemap.xml":
		var list bytes.Buffer
		for _, one := range p.sites[site] {
			fmt.Fprintf(&list, "%s://%s%s\n", r.URL.Scheme, r.URL.Host, one.uri)
		}
		page.kind, resp.Body = "text/plain", io.NopCloser(&list)
	case ok:
		resp.Body = io.NopCloser(p.open(page))
	default:
		return resp, nil
	}
	resp.StatusCode = http.StatusOK
	resp.Header.Set("Content-Type", page.kind)
	return resp, nil
}

func (p *savedPages) open(page savedPage) io.Reader {
	return io.NewSectionReader(p.file, page.from, page.size)
}

// head returns a feed's latest document in the files or, if they have none, the mirrored one.
func (p *savedPages) head(feed string) *feedhistory.Document {
	at, ok := p.heads[feed]
	if !ok {
		return p.known[feed]
	}
	doc, _ := feedhistory.Parser{Header: http.Header{"Content-Type": {at.kind}}}.Parse(p.open(at), feed) // its damage was said before
	return doc
}

// posts takes the posts among the pages of each feed's site.
func (p *savedPages) posts(ctx context.Context, yield func(Item) error) error {
	client := &feedhistory.Client{
		Transport: p, AllowPrivate: true, Tries: 1, MaxBytes: mostSaved,
		Budget: feedhistory.Budget{Documents: math.MaxInt32, Bytes: math.MaxInt64},
	}
	defer client.CloseIdle()
	site := sitemap.Site{Pace: 1} // nobody is asked
	feeds := slices.Concat(slices.Collect(maps.Keys(p.heads)), slices.Collect(maps.Keys(p.known)))
	slices.Sort(feeds)
	for _, feed := range slices.Compact(feeds) {
		doc := p.head(feed)
		if site.Recognise(doc) == backfill.No {
			continue
		}
		byLink := !slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return e.ID != linkOf(e) })
		for found, err := range site.Walk(ctx, client, doc, &backfill.Probe{}) {
			item := Item{Feed: feed, Title: doc.Title}
			if err != nil {
				item.Damage = err
			} else {
				item.Entry = postOf(found.Entries[0], byLink)
			}
			if err := yield(item); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// postOf returns the entry of a page. If its ID is the address only because nothing tells the
// feed's, it has none: then the address, the title and the time identify it.
func postOf(e *feedhistory.Entry, byLink bool) *mirror.KeptEntry {
	d := compose.DraftOf(e)
	d.Extensions = nil // the copy is due to the files
	if d.ID == linkOf(e) && !byLink {
		d.ID = ""
	}
	return &mirror.KeptEntry{Draft: d}
}
