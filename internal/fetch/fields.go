package fetch

import (
	"context"
	"net/http"
	"net/url"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// Fields returns further header fields of a request to a URL. It may be called
// from several goroutines.
type Fields func(ctx context.Context, url string) (http.Header, error)

// WithFields returns a context whose requests have further header fields, which may be
// credentials, if they go to the origin of a URL. Each request, redirects and
// repetitions included, calls fields, so tokens can be renewed. Nil fields mean the
// context unchanged.
func WithFields(ctx context.Context, origin string, fields Fields) context.Context {
	u, err := url.Parse(origin)
	if fields == nil || err != nil {
		return ctx
	}
	return context.WithValue(ctx, fieldsKey{}, &originFields{u, fields})
}

type fieldsKey struct{}

type originFields struct {
	origin *url.URL
	fields Fields
}

// addFields adds the context's header fields for a request.
func addFields(ctx context.Context, u *url.URL, r *http.Request) error {
	of, ok := ctx.Value(fieldsKey{}).(*originFields)
	if !ok || !iri.SameOrigin(of.origin, u) {
		return nil
	}
	header, err := of.fields(ctx, u.String())
	if err != nil {
		return wrap(u.String(), err)
	}
	return addSecrets(u, r.Header, header)
}
