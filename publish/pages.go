package publish

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/publish/serve"
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
	Format feedhistory.Format // Format is Atom or RSS; "" means the one preferred by the request's Accept, or else Atom.
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
	if !serve.Reads(w, r) {
		return
	}
	at, err := p.request(r)
	if err != nil {
		serve.Refuse(w, http.StatusBadRequest, err.Error()+": "+at.url("", Position{}))
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
	if err := settings.Check("publish", settings.Number{Name: "Pages.Size", Value: int64(p.Size)}); err != nil {
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
	return compose.Page(cmp.Or(p.Head, new(feedhistory.Document)), entries, p.links(at, entries, more)), nil
}

// links returns the neighbours of a page (5005#5, 5005#6). The last page is
// known only once it has been reached.
func (p *Pages) links(at pageRequest, entries []*feedhistory.Entry, more bool) compose.URLs {
	links := compose.URLs{Self: at.url(at.param, at.place), First: at.url("", Position{})}
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
	if format == "" {
		header.Add("Vary", "Accept")
		format = feedhistory.FormatAtom
		if serve.Preferred(r.Header, "application/atom+xml", "application/rss+xml") == 1 {
			format = feedhistory.FormatRSS
		}
	}
	var b bytes.Buffer
	if err := compose.NewWriter(&b, format, page).Close(); err != nil {
		p.fail(w, r, err)
		return
	}
	header.Set("Content-Type", mediaType(format))
	header.Set("X-Content-Type-Options", "nosniff")
	linkFields(header, page.Links)
	header.Set("Cache-Control", p.cacheControl())
	serve.NewBody(b.Bytes()).Serve(w, r, http.StatusOK)
}

func (p *Pages) cacheControl() string {
	if p.MaxAge < 0 {
		return "no-cache"
	}
	return briefly(cmp.Or(p.MaxAge, time.Minute))
}

// fail answers with an error, unless the client has gone.
func (p *Pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return
	}
	refuse(w, http.StatusInternalServerError)
	if p.Logger != nil {
		p.Logger.ErrorContext(r.Context(), "a page cannot be made", "url", r.URL.String(), "error", err)
	}
}

// A Position is a place between entries: just after the entry it names, in the order of
// a PageFunc. The zero value is the newest end.
//
// In SQL, the entries beyond it are WHERE (updated, id) < (?, ?) ORDER BY
// updated DESC, id DESC. A log with a different order can look its position up
// by the ID.
type Position struct {
	Updated time.Time
	ID      string
}

// IsZero reports whether the place is the newest end.
func (c Position) IsZero() bool { return c.ID == "" && c.Updated.IsZero() }

// errToken is the answer to a request with an invalid token.
var errToken = errors.New("this is not the address of a page; begin with the first page")

const tokenVersion = 1

// maxToken is the maximum size to decode: an id of 4 KiB, and the rest of a token.
const maxToken = 6 << 10

// token encodes a place for a URL: a version, seconds, nanoseconds and the id, with a
// checksum to reveal addresses which were cut or mistyped. A token is no secret, and
// gives access to nothing.
func (c Position) token() string {
	b := []byte{tokenVersion}
	b = binary.BigEndian.AppendUint64(b, uint64(c.Updated.Unix()))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Updated.Nanosecond()))
	b = append(b, c.ID...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseToken decodes a token.
func parseToken(token string) (c Position, err error) {
	if len(token) > maxToken {
		return c, errToken
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) < 1+8+4+1+4 || b[0] != tokenVersion {
		return c, errToken
	}
	b, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	nanos := binary.BigEndian.Uint32(b[9:])
	if crc32.ChecksumIEEE(b) != sum || nanos >= 1e9 {
		return c, errToken
	}
	c.Updated = time.Unix(int64(binary.BigEndian.Uint64(b[1:])), int64(nanos)).UTC()
	c.ID = string(b[13:])
	return c, nil
}
