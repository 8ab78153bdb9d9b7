package s3

import (
	"log/slog"
	"net/http"
	"time"
)

// A loggedTransport logs the requests of an Output with a Logger. URLs are logged without
// their queries, which may be signed.
type loggedTransport struct {
	next http.RoundTripper
	of   *Output
}

// RoundTrip implements http.RoundTripper.
func (t *loggedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.of == nil || t.of.Logger == nil {
		return t.next.RoundTrip(r)
	}
	url := *r.URL
	url.RawQuery, url.User = "", nil
	at := slog.String("url", url.String())
	t.of.Logger.LogAttrs(r.Context(), slog.LevelDebug, "request", at, slog.String("method", r.Method))
	began := time.Now()
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		t.of.Logger.LogAttrs(r.Context(), slog.LevelDebug, "failure", at, slog.String("error", err.Error()))
		return resp, err
	}
	t.of.Logger.LogAttrs(r.Context(), slog.LevelDebug, "answer", at, slog.Int("status", resp.StatusCode), slog.Duration("duration", time.Since(began)))
	return resp, nil
}
