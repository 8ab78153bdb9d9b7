package main

import (
	"bufio"
	"errors"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
)

// The verb harvest.
type harvestCommand struct {
	URL         string        `arg:"" name:"URL" help:"The collection's address."`
	Protocol    string        `required:"" enum:"modified-range" placeholder:"PROTOCOL" help:"How to ask: modified-range."`
	State       string        `placeholder:"FILE" help:"Begin where the last harvest ended, and note there where this one did."`
	Dialect     string        `default:"auto" enum:"auto,modified-range,range,gdata" placeholder:"DIALECT" help:"Of modified-range: modified-range, range, gdata, or auto: whichever the server heeds (the default)."`
	Overlap     time.Duration `default:"1m" placeholder:"TIME" help:"By how much the next harvest reaches back (default: ${default})."`
	MaxRequests int           `default:"10000" placeholder:"N" help:"Requests to make at most (default: ${default})."`
	JSON        bool          `name:"json" help:"Print one JSON object with the verdict, rather than a line for each entry and deletion."`
}

// Help is what --help says beyond the flags.
func (c *harvestCommand) Help() string {
	return "What was modified or deleted since the last harvest goes to standard output, a report to standard error. " +
		"The state is noted only if nothing is missing, after everything has been printed; else the exit status is 3, " +
		"and the next harvest begins where this one did."
}

// Validate refuses limits that allow for nothing.
func (c *harvestCommand) Validate() error {
	switch {
	case c.MaxRequests < 1:
		return errors.New("--max-requests: at least 1")
	case c.Overlap < 0:
		return errors.New("--overlap: a time cannot be negative")
	}
	return nil
}

// Run harvests the collection, prints what came and notes the state.
func (c *harvestCommand) Run(w *world) error {
	if err := checkURL(c.URL); err != nil {
		return err
	}
	from, err := c.readState()
	if err != nil {
		return err
	}
	sync := c.client(w).Sync(w.ctx, from)
	h, err := c.history(w, sync)
	if err != nil {
		return err
	}
	next, whole := sync.State()
	if err := c.print(w, h, sync); err != nil {
		return err
	}
	if whole && c.State != "" {
		if err := c.writeState(next); err != nil {
			return err
		}
	}
	(&page{w: w.stderr}).harvested(h, sync, from)
	if !whole {
		return statusError(exitPartial)
	}
	return nil
}

func (c *harvestCommand) client(w *world) *modifiedrange.Client {
	client := &modifiedrange.Client{
		HTTP: w.client(w.stderr), URL: c.URL, Overlap: c.Overlap,
		Limits: modifiedrange.Limits{Requests: c.MaxRequests},
	}
	if c.Overlap == 0 {
		client.Overlap = -1 // none
	}
	for _, d := range []modifiedrange.Dialect{modifiedrange.ModifiedRange, modifiedrange.RangeUpdated, modifiedrange.GData} {
		if d.String() == c.Dialect {
			client.Dialect = d
		}
	}
	return client
}

// history merges the answers. If it is interrupted, what there is has a gap.
func (c *harvestCommand) history(w *world, sync *modifiedrange.Sync) (*feedhistory.History, error) {
	p := w.newProgress()
	h, err := feedhistory.Merge(p.watch(sync.Documents()))
	p.end()
	if h == nil {
		return nil, failure(c.URL, err)
	}
	return h, nil
}

// print writes what came: a line for each entry and each deletion, or one
// object.
func (c *harvestCommand) print(w *world, h *feedhistory.History, sync *modifiedrange.Sync) error {
	out := bufio.NewWriterSize(w.stdout, 64<<10)
	var err error
	if c.JSON {
		err = printJSON(out, c.harvestJSON(h, sync))
		return errors.Join(err, out.Flush())
	}
	for _, e := range h.Entries {
		err = errors.Join(err, printLine(out, entryJSON(e)))
	}
	for _, t := range h.Deleted {
		err = errors.Join(err, printLine(out, tombstoneJSON(t)))
	}
	return errors.Join(err, out.Flush())
}

// jsonHarvest is what a harvest brought, as one object.
type jsonHarvest struct {
	URL      string          `json:"url"`
	Protocol string          `json:"protocol"`
	Dialect  string          `json:"dialect"`
	Requests int             `json:"requests"`
	Since    string          `json:"since,omitempty"` // where the next begins
	Whole    bool            `json:"whole"`
	Entries  []jsonEntry     `json:"entries"`
	Deleted  []jsonTombstone `json:"deleted"`
	Gaps     []jsonGap       `json:"gaps"`
}

func (c *harvestCommand) harvestJSON(h *feedhistory.History, sync *modifiedrange.Sync) jsonHarvest {
	next, whole := sync.State()
	return jsonHarvest{
		URL: c.URL, Protocol: c.Protocol, Dialect: sync.Dialect().String(), Requests: sync.Requests(),
		Since: timeJSON(next.Since), Whole: whole,
		Entries: each(h.Entries, entryJSON), Deleted: each(h.Deleted, tombstoneJSON), Gaps: each(h.Gaps, gapJSON),
	}
}
