package main

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/publish"
)

// A rangeState is where the next harvest by modified-range begins.
type rangeState struct {
	harvested
	modifiedrange.State
}

// modifiedRange harvests by ranges of modification times.
func (c *harvestCommand) modifiedRange(w *world) error {
	var from rangeState
	if err := c.readState(&from); err != nil {
		return err
	}
	sync := c.rangeClient(w).Sync(w.ctx, from.State)
	h, err := c.rangeHistory(w, sync)
	if err != nil {
		return err
	}
	if err := c.printRange(w, h, sync); err != nil {
		return err
	}
	next, whole := sync.State()
	if whole {
		if err := c.writeState(rangeState{c.harvested(), next}); err != nil {
			return err
		}
	}
	w.harvestedRange(h, sync, from.State)
	if !whole {
		return statusError(exitPartial)
	}
	return nil
}

func (c *harvestCommand) rangeClient(w *world) *modifiedrange.Client {
	client := &modifiedrange.Client{
		HTTP: w.client(w.Stderr), URL: c.URL, Header: c.header(),
		Limits: modifiedrange.Limits{Requests: c.MaxRequests},
	}
	if c.Overlap != nil {
		client.Overlap = max(*c.Overlap, 0)
		if client.Overlap == 0 {
			client.Overlap = -1 // none
		}
	}
	for _, d := range []modifiedrange.Dialect{modifiedrange.ModifiedRange, modifiedrange.RangeUpdated, modifiedrange.GData} {
		if d.String() == c.Dialect {
			client.Dialect = d
		}
	}
	return client
}

// rangeHistory merges the answers. After an interrupt, the history has a gap.
func (c *harvestCommand) rangeHistory(w *world, sync *modifiedrange.Sync) (*feedhistory.History, error) {
	p := w.newProgress()
	h, err := feedhistory.Merge(p.watch(sync.Documents()))
	p.end()
	if h == nil {
		return nil, failure(c.URL, err)
	}
	return h, nil
}

// printRange prints the changes: a line for each entry and each deletion, or one object.
func (c *harvestCommand) printRange(w *world, h *feedhistory.History, sync *modifiedrange.Sync) error {
	out := bufio.NewWriterSize(w.stdout, 64<<10)
	var err error
	if c.inOne() {
		err = printLine(out, c.rangeJSON(h, sync))
		return errors.Join(err, out.Flush())
	}
	for _, e := range h.Entries {
		err = errors.Join(err, printLine(out, publish.NewJSONEntry(e)))
	}
	for _, t := range h.Deleted {
		err = errors.Join(err, printLine(out, deletionRecord("", t)))
	}
	return errors.Join(err, out.Flush())
}

// A jsonRange is a whole harvest in JSON.
type jsonRange struct {
	URL      string               `json:"url"`
	Protocol string               `json:"protocol"`
	Dialect  string               `json:"dialect"`
	Requests int                  `json:"requests"`
	Since    string               `json:"since,omitempty"` // where the next harvest begins
	Whole    bool                 `json:"whole"`
	Entries  []*publish.JSONEntry `json:"entries"`
	Deleted  []jsonTombstone      `json:"deleted"`
	Gaps     []jsonGap            `json:"gaps"`
}

func (c *harvestCommand) rangeJSON(h *feedhistory.History, sync *modifiedrange.Sync) jsonRange {
	next, whole := sync.State()
	return jsonRange{
		URL: c.URL, Protocol: c.Protocol, Dialect: sync.Dialect().String(), Requests: sync.Requests(),
		Since: timeJSON(next.Since), Whole: whole,
		Entries: each(h.Entries, publish.NewJSONEntry), Deleted: each(h.Deleted, utcTombstone), Gaps: each(h.Gaps, gapJSON),
	}
}

func utcTombstone(t feedhistory.Tombstone) jsonTombstone {
	return jsonTombstone{t.Ref, timeJSON(t.When.UTC())}
}

// harvestedRange says what a harvest brought, and what is missing.
func (w *world) harvestedRange(h *feedhistory.History, sync *modifiedrange.Sync, from modifiedrange.State) {
	p, missing := newPage(w.Asides()), newPage(w.Stderr)
	what := fmt.Sprintf("%s (%s) · %s", count(len(h.Entries), "entry", "entries"),
		count(sync.Requests(), "request", "requests"), sync.Dialect())
	if n := len(h.Deleted); n > 0 {
		what += fmt.Sprintf(" · %d deleted", n)
	}
	p.Para("", "", what)
	next, whole := sync.State()
	switch {
	case !whole:
		p.Para("", "", "Something is missing, so the next harvest begins where this one did:")
	case from.Since.IsZero():
		p.Para("", "", "This is everything that the collection had when the harvest began.")
	default:
		p.Para("", "", "This is everything that was modified since "+timeJSON(from.Since)+".")
	}
	if whole && !next.Since.IsZero() {
		p.Para("", "", "The next harvest begins at "+timeJSON(next.Since)+", by the server's clock.")
	}
	for _, g := range h.Gaps {
		missing.harvestGap(g)
	}
}
