package publish

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// Pages serves an endless feed as a paged one (RFC 5005 §3): search results, or a log
// never split into archives. The entries come from a query.
//
//	pages := &publish.Pages{
//		Head: &feedhistory.Document{ID: "urn:example:log", Title: "Log"},
//		Older: func(ctx context.Context, than publish.Position, limit int) ([]*feedhistory.Entry, bool, error) {
//			return store.Older(ctx, than.Updated, than.ID, limit)
//		},
//	}
//
// The first page has the feed's own URL. The URLs of the other pages contain a token
// for the entry after which the page begins, not how many entries come before it. So
// however many entries are added while somebody reads page after page, no entry that
// was there at the start is repeated or skipped. If an entry moves meanwhile, because
// it is edited and becomes the newest, it is on the first page at the next reading. In
// this respect pages stay lossy (5005#4); an archived feed is the remedy.
type Pages struct {
	// Head describes the feed: ID, Title, Authors, Links … Do not change it
	// while it is in use.
	Head *feedhistory.Document

	// Older returns the newest entries older than a place, newest first, up to the limit,
	// and whether there are more. For the zero Position it returns the newest entries of
	// all. It is required.
	Older PageFunc

	// Newer returns the oldest entries newer than a place, up to the limit, also newest
	// first, and whether there are more. If Newer is nil, pages have no link to the
	// previous page.
	Newer PageFunc

	Size   int                // Size is the number of entries of a page; zero means 50.
	URL    string             // URL is the URL of the first page; "" means the path of the request, as a relative reference.
	Format feedhistory.Format // Format is Atom or RSS; zero means the one preferred by the request's Accept, or else Atom.
	MaxAge time.Duration      // MaxAge is how long caches may keep a page; zero means a minute; with a negative value caches ask each time.
	Logger *slog.Logger       // Logger logs failed queries; nil means no logging.
}

// A PageFunc returns entries on one side of a position, without the entry at the
// place itself. Several goroutines may call it at the same time.
type PageFunc func(ctx context.Context, than Position, limit int) (entries []*feedhistory.Entry, more bool, err error)

// The parameters of a page's URL. A page has at most one of them.
const (
	paramOlder = "before"
	paramNewer = "after"
)

// ServeHTTP answers with the page named by the query of the URL.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are supported", http.StatusMethodNotAllowed)
		return
	}
	at, err := p.request(r)
	if err != nil {
		w.Header().Set("Cache-Control", "no-cache")
		http.Error(w, err.Error()+": "+at.url("", Position{}), http.StatusBadRequest)
		return
	}
	page, err := p.page(r.Context(), at)
	switch {
	case err != nil:
		p.fail(w, r, err)
	case page == nil:
		http.Redirect(w, r, at.url("", Position{}), http.StatusTemporaryRedirect)
	default:
		p.write(w, r, page)
	}
}

// A pageRequest says which page was requested.
type pageRequest struct {
	param string // "" means the first page
	place Position
	base  string     // the feed's URL without its query
	query url.Values // the other parameters, which all pages keep
}

// request reads the URL of a request.
func (p *Pages) request(r *http.Request) (at pageRequest, err error) {
	at.query = r.URL.Query()
	older, newer := at.query[paramOlder], at.query[paramNewer]
	at.query.Del(paramOlder)
	at.query.Del(paramNewer)
	at.base = cmp.Or(p.URL, requestPath(r))
	if base, query, ok := strings.Cut(at.base, "?"); ok {
		own, _ := url.ParseQuery(query)
		maps.Copy(at.query, own)
		at.base = base
	}
	switch {
	case len(older)+len(newer) == 0:
		return at, nil
	case len(older)+len(newer) > 1:
		return at, errToken
	case len(older) == 1:
		at.param = paramOlder
	case p.Newer == nil:
		return at, errToken
	default:
		at.param = paramNewer
	}
	at.place, err = parseToken(slices.Concat(older, newer)[0])
	return at, err
}

// requestPath returns the requested path, before any http.StripPrefix. With two
// slashes at its start it would be the address of another host.
func requestPath(r *http.Request) string {
	path := r.URL.EscapedPath()
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
		path = u.EscapedPath()
	}
	return "/" + strings.TrimLeft(path, "/\\")
}

// url returns the URL of a page.
func (at pageRequest) url(param string, place Position) string {
	query := at.query
	if param != "" {
		query = make(url.Values, len(at.query)+1)
		maps.Copy(query, at.query)
		query.Set(param, place.token())
	}
	if len(query) == 0 {
		return at.base
	}
	return at.base + "?" + query.Encode()
}

func (p *Pages) size() int { return cmp.Or(p.Size, 50) }

// page makes the requested page; nil if it is the first page now.
func (p *Pages) page(ctx context.Context, at pageRequest) (*feedhistory.Document, error) {
	if p.Older == nil {
		return nil, errors.New("publish: Pages.Older must be set")
	}
	if err := plain.Check("publish", plain.Number{Name: "Pages.Size", Value: int64(p.Size)}); err != nil {
		return nil, err
	}
	query := p.Older
	if at.param == paramNewer {
		query = p.Newer
	}
	entries, more, err := query(ctx, at.place, p.size())
	if err != nil {
		return nil, err
	}
	if extra := len(entries) - p.size(); extra > 0 {
		more = true
		if at.param == paramNewer {
			entries = entries[extra:]
		} else {
			entries = entries[:p.size()]
		}
	}
	if at.param == paramNewer && len(entries) == 0 {
		return nil, nil
	}
	return feedhistory.NewPage(cmp.Or(p.Head, new(feedhistory.Document)), entries, p.links(at, entries, more)), nil
}

// links returns the neighbours of a page (5005#5, 5005#6). The last page is
// known only once it has been reached.
func (p *Pages) links(at pageRequest, entries []*feedhistory.Entry, more bool) feedhistory.DocumentLinks {
	links := feedhistory.DocumentLinks{Self: at.url(at.param, at.place), First: at.url("", Position{})}
	if len(entries) == 0 {
		links.Last = links.Self
		return links
	}
	newest, oldest := positionOf(entries[0]), positionOf(entries[len(entries)-1])
	if at.param == paramNewer || more { // a page with newer entries has entries after it
		links.Next = at.url(paramOlder, oldest)
	} else {
		links.Last = links.Self
	}
	if p.Newer != nil && (at.param == paramOlder || at.param == paramNewer && more) {
		links.Prev = at.url(paramNewer, newest)
	}
	return links
}

func positionOf(e *feedhistory.Entry) Position { return Position{e.Updated, e.ID} }

// write renders the page and serves it. The ETag is of its bytes, so an
// unchanged page is not sent twice.
func (p *Pages) write(w http.ResponseWriter, r *http.Request, page *feedhistory.Document) {
	format, header := p.Format, w.Header()
	if format == 0 {
		header.Add("Vary", "Accept")
		format = feedhistory.Atom
		if prefers(r.Header, "application/atom+xml", "application/rss+xml") == 1 {
			format = feedhistory.RSS
		}
	}
	var b bytes.Buffer
	if err := writeFormat(&b, page, format); err != nil {
		p.fail(w, r, err)
		return
	}
	body := b.Bytes()
	header.Add("Vary", "Accept-Encoding")
	if AcceptsGzip(r.Header) {
		if data, err := gzipped(&b, gzip.DefaultCompression); err == nil && len(data) < len(body) {
			body = data
			header.Set("Content-Encoding", "gzip")
		}
	}
	sum := sha256.Sum256(body)
	header.Set("Content-Type", mediaType(format))
	header.Set("Etag", entityTag(sum[:]))
	header.Set("X-Content-Type-Options", "nosniff")
	header["Link"] = linkFields(page.Links)
	header.Set("Cache-Control", p.cacheControl())
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func (p *Pages) cacheControl() string {
	if p.MaxAge < 0 {
		return "no-cache"
	}
	return briefly(cmp.Or(p.MaxAge, time.Minute))
}

func writeFormat(b *bytes.Buffer, d *feedhistory.Document, format feedhistory.Format) error {
	switch format {
	case feedhistory.Atom:
		return feedhistory.WriteAtom(b, d)
	case feedhistory.RSS:
		return feedhistory.WriteRSS(b, d)
	}
	return fmt.Errorf("feeds are not written as %v", format)
}

// fail answers with an error, unless the client has gone.
func (p *Pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return
	}
	refuse(w, http.StatusInternalServerError)
	if p.Logger != nil {
		p.Logger.ErrorContext(r.Context(), "a page cannot be made", "url", r.URL.String(), "err", err)
	}
}
