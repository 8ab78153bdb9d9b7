package fetch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// logs reports whether events of a level are wanted. Unwanted ones cost nothing.
func (c *Client) logs(ctx context.Context, level slog.Level) bool {
	return c.Logger != nil && c.Logger.Enabled(ctx, level)
}

func (c *Client) logRequest(x *exchange, method string) {
	if c.logs(x.caller, slog.LevelDebug) {
		c.Logger.LogAttrs(x.caller, slog.LevelDebug, "request", slog.String("url", x.url),
			slog.String("method", method), slog.Bool("conditional", x.conditional))
	}
}

func (c *Client) logAnswer(x *exchange) {
	if c.logs(x.caller, slog.LevelDebug) {
		c.Logger.LogAttrs(x.caller, slog.LevelDebug, "answer", slog.String("url", x.url),
			slog.Int("status", x.resp.StatusCode), slog.Duration("duration", time.Since(x.started)))
	}
}

func (c *Client) logBody(b *body) {
	if !c.logs(b.x.caller, slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{
		slog.String("url", b.x.url), slog.Int64("bytes", b.n), slog.Int64("wire", b.wire.n),
		slog.Duration("duration", time.Since(b.x.started)),
	}
	if b.trailing {
		attrs = append(attrs, slog.Bool("trailing", true))
	}
	if b.err != io.EOF && b.err != http.ErrBodyReadAfterClose {
		attrs = append(attrs, slog.Any("error", b.err))
	}
	c.Logger.LogAttrs(b.x.caller, slog.LevelDebug, "body", attrs...)
}

func (c *Client) logRedirect(ctx context.Context, from string, to *url.URL, status int) {
	if c.logs(ctx, slog.LevelInfo) {
		c.Logger.LogAttrs(ctx, slog.LevelInfo, "redirect", slog.String("url", from),
			slog.String("to", to.String()), slog.Int("status", status))
	}
}

func (c *Client) logRetry(ctx context.Context, rawURL string, try int, wait time.Duration, err error) {
	if c.logs(ctx, slog.LevelInfo) {
		c.Logger.LogAttrs(ctx, slog.LevelInfo, "retry", slog.String("url", rawURL),
			slog.Int("try", try), slog.Duration("wait", wait), slog.Any("error", c.public(err)))
	}
}

// logWait logs a wait the host asked for.
func (c *Client) logWait(ctx context.Context, u *url.URL, wait time.Duration) {
	if wait > 0 && c.logs(ctx, slog.LevelInfo) {
		c.Logger.LogAttrs(ctx, slog.LevelInfo, "wait", slog.String("host", u.Host), slog.Duration("wait", wait))
	}
}

// logFailure logs why there is no Response.
func (c *Client) logFailure(ctx context.Context, rawURL string, err error) {
	if !c.logs(ctx, slog.LevelInfo) {
		return
	}
	url, detail := slog.String("url", iri.Redact(rawURL)), slog.Any("error", c.public(err))
	if f, ok := errors.AsType[*Failure](err); ok && f.Kind == Refused {
		c.Logger.LogAttrs(ctx, slog.LevelInfo, "refusal", url, slog.String("rule", f.Name), detail)
		return
	}
	c.Logger.LogAttrs(ctx, slog.LevelInfo, "failure", url, detail)
}
