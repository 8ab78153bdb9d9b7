package main

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// exportRaw writes everything a mirror knows about feeds, for import.
func (c *exportCommand) exportRaw(ctx context.Context, w io.Writer, store mirror.Store, feeds iter.Seq2[*mirror.Feed, error]) error {
	keys, err := c.Keyring()
	if err != nil {
		return err
	}
	private, err := keys.Private()
	if err != nil {
		return err
	}
	raw := &mirror.Export{Store: store, Private: func(feed string) bool { return private[feed] != nil }}
	if err := raw.Feeds(ctx, harmlessWriter{w}, feeds); err != nil {
		return err
	}
	return raw.End(w)
}

// printRaw writes a fetched history as if one poll had mirrored it.
func printRaw(w io.Writer, r *backfill.Recovery, private bool) error {
	h := *r.History
	h.Gaps = nil
	for _, g := range r.History.Gaps {
		gap := *g
		gap.Err = errors.New(explain.Detail(g.Err))
		h.Gaps = append(h.Gaps, &gap)
	}
	raw := &mirror.Export{Private: func(string) bool { return private }}
	return raw.History(harmlessWriter{w}, schema.FeedOf(&h), &h, r.Verdict())
}

// A harmlessWriter escapes the characters in lines of JSON with an effect on terminals.
type harmlessWriter struct{ w io.Writer }

// Write implements io.Writer.
func (h harmlessWriter) Write(line []byte) (int, error) {
	if _, err := h.w.Write(terminal.JSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
