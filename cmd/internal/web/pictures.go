package web

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish/serve"
	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/sync/singleflight"
)

// The bounds of pictures. Those kept take at most twice halfKept.
const (
	mostPicture   = 10 << 20         // bytes of one
	halfKept      = 32 << 20         // bytes of those kept
	mostFetching  = 8                // requested at once
	pictureTime   = 30 * time.Second // for fetching one, with its turn
	pictureFails  = time.Minute      // how long a failure counts
	pictureMaxAge = "max-age=86400"
)

// A pictureProxy fetches the pictures of entries for the visitors, whose browsers load nothing
// from elsewhere: the hosts of the pictures see one reader, this server. It shows only pictures
// that a page of this server has, so it is no proxy for anything else.
type pictureProxy struct {
	root   string // the server's path
	client *http.Client
	key    []byte // for the names of pictures
	now    func() time.Time

	flights  singleflight.Group
	fetching chan struct{}                    // a value for each request under way
	kept     serve.Cache[string, *picture]    // by address, with their bytes as sizes
	sizes    serve.Cache[string, image.Point] // by address, of pictures that were kept
	failed   serve.Cache[string, time.Time]   // by address: until when a failure counts

	policy func() *bluemonday.Policy // what a text with pictures may contain
}

// A picture is a file of pixels.
type picture struct {
	mediaType, etag string
	bytes           []byte
}

// newPictureProxy returns the proxy of a server with a path. It requests by the rules of a client,
// but sends no credentials.
func newPictureProxy(client *feedhistory.Client, root string, now func() time.Time) *pictureProxy {
	if client == nil {
		client = &feedhistory.Client{}
	}
	own := client.Clone()
	own.Credentials, own.Budget, own.Tries = nil, feedhistory.Budget{}, 1
	p := &pictureProxy{root: root, client: own.HTTPClient(), key: []byte(rand.Text()), now: now, fetching: make(chan struct{}, mostFetching)}
	p.kept.Half = halfKept
	p.policy = sync.OnceValue(func() *bluemonday.Policy {
		policy := newPolicy()
		policy.AllowAttrs("src", "alt", "title").OnElements("img")
		policy.AllowAttrs("width", "height").Matching(pixels).OnElements("img")
		policy.AllowAttrs("loading").Matching(regexp.MustCompile(`^lazy$`)).OnElements("img")
		return policy.RewriteSrc(func(u *url.URL) { *u = *p.place(u.String()) })
	})
	return p
}

// place returns where this server has the picture with an address.
func (p *pictureProxy) place(address string) *url.URL {
	return &url.URL{Path: p.root + "pictures/" + p.name(address), RawQuery: url.Values{"of": {address}}.Encode()}
}

// path returns the same as text; "" without a picture or a proxy.
func (p *pictureProxy) path(address string) string {
	if p == nil || address == "" {
		return ""
	}
	return p.place(address).String()
}

// name returns the name that only this server can give to the picture with an address.
func (p *pictureProxy) name(address string) string {
	sum := hmac.New(sha256.New, p.key)
	_, _ = io.WriteString(sum, address)
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:16])
}

// size returns the size in pixels of a picture that was shown before; zero if it is unknown.
func (p *pictureProxy) size(address string) image.Point {
	size, _ := p.sizes.Get(address)
	return size
}

// showPicture answers with a picture.
func (s *Server) showPicture(w http.ResponseWriter, r *http.Request) error {
	address := r.URL.Query().Get("of")
	if s.pictures == nil || !hmac.Equal([]byte(s.pictures.name(address)), []byte(r.PathValue("name"))) {
		return s.noPage(w, r)
	}
	found, err := s.pictures.get(r.Context(), address)
	if err != nil {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "The picture cannot be shown.", http.StatusNotFound)
		return nil
	}
	h := w.Header()
	h.Set("Content-Type", found.mediaType)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", pictureMaxAge)
	h.Set("ETag", found.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found.bytes))
	return nil
}

var errNoPicture = errors.New("there is no picture")

// get returns the picture at an address. Several visitors wait for one request, which goes on if
// one of them leaves.
func (p *pictureProxy) get(ctx context.Context, address string) (*picture, error) {
	if found, ok := p.kept.Get(address); ok {
		return found, nil
	}
	if until, ok := p.failed.Get(address); ok && p.now().Before(until) {
		return nil, errNoPicture
	}
	flight := p.flights.DoChan(address, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pictureTime)
		defer cancel()
		found, err := p.fetch(ctx, address)
		if err != nil {
			p.failed.Put(address, p.now().Add(pictureFails))
			return nil, err
		}
		p.failed.Drop(address)
		p.kept.PutSized(address, found, int64(len(found.bytes)))
		if config, _, err := image.DecodeConfig(bytes.NewReader(found.bytes)); err == nil {
			p.sizes.Put(address, image.Pt(config.Width, config.Height))
		}
		return found, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-flight:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(*picture), nil
	}
}

// fetch requests a picture, with nothing of the visitor's request.
func (p *pictureProxy) fetch(ctx context.Context, address string) (*picture, error) {
	select {
	case p.fetching <- struct{}{}:
		defer func() { <-p.fetching }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "image/*")
	answer, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errNoPicture
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostPicture+1))
	mediaType := pictureType(text)
	if err != nil || len(text) > mostPicture || mediaType == "" {
		return nil, errors.Join(errNoPicture, err)
	}
	sum := sha256.Sum256(text)
	return &picture{mediaType: mediaType, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, bytes: text}, nil
}

// pictureType returns the media type of a file of pixels, by its bytes and whatever its server
// says; "" for anything else, such as SVG, which is a document.
func pictureType(text []byte) string {
	if len(text) > 12 && string(text[4:8]) == "ftyp" && slices.Contains([]string{"avif", "avis"}, string(text[8:12])) {
		return "image/avif"
	}
	if kind := http.DetectContentType(text); strings.HasPrefix(kind, "image/") {
		return kind
	}
	return ""
}
