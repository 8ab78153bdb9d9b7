package fleet

import (
	"context"
	"log/slog"
)

// A quietHandler drops records logged after their context has ended, because errors
// are normal while a worker stops.
type quietHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (c quietHandler) Handle(ctx context.Context, r slog.Record) error {
	if ctx.Err() != nil {
		return nil
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (c quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{c.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (c quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{c.Handler.WithGroup(name)}
}
