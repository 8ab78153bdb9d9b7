package fleet

import (
	"context"
	"log/slog"
)

// A current is a handler that drops what is logged after its context has ended,
// because errors are normal while a worker stops.
type current struct{ slog.Handler }

// Handle implements slog.Handler.
func (c current) Handle(ctx context.Context, r slog.Record) error {
	if ctx.Err() != nil {
		return nil
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (c current) WithAttrs(attrs []slog.Attr) slog.Handler {
	return current{c.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (c current) WithGroup(name string) slog.Handler { return current{c.Handler.WithGroup(name)} }
