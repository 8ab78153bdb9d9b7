package replication

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A Page is the header of a page, with its entities.
type Page struct {
	Requested string // the requested URL
	URL       string // the URL after redirects
	Status    int
	Header    http.Header

	Self, Prev, Next string    // absolute URLs; "" if there is none
	Modified         time.Time // zero if missing or invalid

	body io.ReadCloser
}

// Open requests a page by GET or HEAD. Close the page.
func Open(ctx context.Context, f *feedhistory.Client, method, address string) (*Page, error) {
	resp, err := f.Do(ctx, feedhistory.Request{URL: address, Method: method, Accept: "multipart/*, */*;q=0.1"})
	if err != nil {
		return nil, err
	}
	p := &Page{
		Requested: address, URL: resp.URL, Status: resp.Status, Header: resp.Header, body: resp.Body,
	}
	p.Modified, _ = ParseTime(resp.Header.Get(FieldModified))
	links := Links(resp.Header)
	for rel, at := range map[string]*string{"self": &p.Self, "prev": &p.Prev, "next": &p.Next} {
		if target, ok := links[rel]; ok {
			if *at, err = resolve(resp.URL, target); err != nil {
				p.Close()
				return nil, fmt.Errorf("%s: the link with rel=%s: %w", resp.URL, rel, err)
			}
		}
	}
	return p, nil
}

// resolve makes a link absolute, without its fragment, which does not identify
// a page.
func resolve(base, ref string) (string, error) {
	b, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	u, err := b.Parse(ref)
	if err != nil {
		return "", err
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String(), nil
}

// Close ends the request.
func (p *Page) Close() error { return p.body.Close() }

// IsEmpty reports whether the answer means there is no page yet
// (datareplication#feed-1).
func (p *Page) IsEmpty() bool { return p.Status == http.StatusNoContent }

// Key returns the URL that identifies a page: the one it gives itself, or else the one
// where it was found.
func (p *Page) Key() string {
	if p.Self != "" {
		return p.Self
	}
	return p.URL
}

// Is reports whether a URL identifies the page.
func (p *Page) Is(address string) bool {
	return address == p.Self || address == p.URL || address == p.Requested
}

// Body returns the page as it was sent.
func (p *Page) Body() io.Reader { return p.body }
