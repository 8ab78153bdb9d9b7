package collection

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/publish"
)

// A rangeState is where the next harvest by modified-range begins.
type rangeState struct {
	collectionKey
	modifiedrange.Mark
}

// HarvestRange harvests by ranges of modification times.
func (c *Source) HarvestRange(w *command.World) error {
	var from rangeState
	if err := c.readState(&from); err != nil {
		return err
	}
	sync := c.rangeClient(w).Harvest(w.Ctx, from.Mark)
	h, err := c.rangeHistory(w, sync)
	if err != nil {
		return err
	}
	if err := c.printRange(w, h, sync); err != nil {
		return err
	}
	next, whole := sync.Mark()
	if whole || next.Rest != (modifiedrange.Rest{}) { // everything before the rest has been printed
		if err := c.writeState(rangeState{c.key(), next}); err != nil {
			return err
		}
	}
	harvestedRange(w, h, sync, from.Mark)
	if !whole {
		return exit.StatusError(exit.Partial)
	}
	return nil
}

func (c *Source) rangeClient(w *command.World) *modifiedrange.Harvester {
	client := &modifiedrange.Harvester{
		HTTP: w.Client(w.Stderr), URL: c.URL, Header: c.Authorize(),
		Budget: modifiedrange.Budget{Requests: c.MaxRequests, Items: c.MaxItems, Bytes: int64(c.MaxBytes)},
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
func (c *Source) rangeHistory(w *command.World, sync *modifiedrange.Harvest) (*feedhistory.History, error) {
	p := w.NewProgress()
	h, err := feedhistory.Merge(p.Watch(sync.Documents()))
	p.End()
	if h == nil {
		return nil, explain.Failure(c.URL, err)
	}
	return h, nil
}

// printRange prints the changes: a line for each entry and each deletion, or one object.
func (c *Source) printRange(w *command.World, h *feedhistory.History, sync *modifiedrange.Harvest) error {
	out := bufio.NewWriterSize(w.Stdout, 64<<10)
	var err error
	if c.inOne() {
		err = terminal.WriteJSON(out, c.rangeJSON(h, sync))
		return errors.Join(err, out.Flush())
	}
	for _, e := range h.Entries {
		err = errors.Join(err, terminal.WriteJSON(out, publish.NewLine(e)))
	}
	for _, t := range h.Deleted {
		err = errors.Join(err, terminal.WriteJSON(out, schema.DeletionRecord("", t)))
	}
	return errors.Join(err, out.Flush())
}

// A jsonRange is a whole harvest in JSON.
type jsonRange struct {
	URL      string             `json:"url"`
	Protocol string             `json:"protocol"`
	Dialect  string             `json:"dialect"`
	Requests int                `json:"requests"`
	Since    string             `json:"since,omitempty"` // where the next harvest begins
	Whole    bool               `json:"whole"`
	Entries  []*publish.Line    `json:"entries"`
	Deleted  []schema.Tombstone `json:"deleted"`
	Gaps     []schema.Gap       `json:"gaps"`
}

func (c *Source) rangeJSON(h *feedhistory.History, sync *modifiedrange.Harvest) jsonRange {
	next, whole := sync.Mark()
	return jsonRange{
		URL: c.URL, Protocol: c.Protocol, Dialect: sync.Dialect().String(), Requests: sync.Requests(),
		Since: schema.Time(next.Since), Whole: whole,
		Entries: schema.Each(h.Entries, publish.NewLine), Deleted: schema.Each(h.Deleted, utcTombstone), Gaps: schema.Each(h.Gaps, schema.NewGap),
	}
}

func utcTombstone(t feedhistory.Tombstone) schema.Tombstone {
	return schema.Tombstone{Ref: t.Ref, When: schema.Time(t.When.UTC())}
}

// harvestedRange reports a harvest's modifications and gaps.
func harvestedRange(w *command.World, h *feedhistory.History, sync *modifiedrange.Harvest, from modifiedrange.Mark) {
	p, missing := terminal.NewPage(w.Asides()), terminal.NewPage(w.Stderr)
	what := fmt.Sprintf("%s (%s) · %s", terminal.Count(len(h.Entries), "entry", "entries"),
		terminal.Count(sync.Requests(), "request", "requests"), sync.Dialect())
	if n := len(h.Deleted); n > 0 {
		what += fmt.Sprintf(" · %d deleted", n)
	}
	p.Para("", "", what)
	next, whole := sync.Mark()
	switch {
	case !whole && next.Rest != (modifiedrange.Rest{}):
		p.Para("", "", "Something is missing; the next harvest continues there:")
	case !whole:
		p.Para("", "", "Something is missing, so the next harvest begins where this one did:")
	case from.Since.IsZero():
		p.Para("", "", "This is everything that the collection had when the harvest began.")
	default:
		p.Para("", "", "This is everything that was modified since "+schema.Time(from.Since)+".")
	}
	if whole && !next.Since.IsZero() {
		p.Para("", "", "The next harvest begins at "+schema.Time(next.Since)+", by the server's clock.")
	}
	for _, g := range h.Gaps {
		showHarvestGap(missing, g)
	}
}
