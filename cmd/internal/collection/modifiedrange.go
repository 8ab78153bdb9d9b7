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

// A rangeRun is one harvest by ranges of modification times.
type rangeRun struct {
	*Source
	*command.World
	*modifiedrange.Harvest
	out     *bufio.Writer
	noted   modifiedrange.Mark // the state in the file
	entries int
	deleted int
	gaps    []*feedhistory.Gap
	all     feedhistory.Merger // with --format json
}

// HarvestRange harvests by ranges of modification times.
func (c *Source) HarvestRange(w *command.World) error {
	var from rangeState
	if err := c.readState(&from); err != nil {
		return err
	}
	r := &rangeRun{
		Source: c, World: w, Harvest: c.rangeClient(w).Harvest(w.Ctx, from.Mark),
		out: bufio.NewWriterSize(w.Stdout, 64<<10), noted: from.Mark,
	}
	if err := r.print(); err != nil {
		return err
	}
	if err := r.note(); err != nil {
		return err
	}
	r.report(from.Mark)
	if _, whole := r.Harvest.Mark(); !whole {
		return exit.StatusError(exit.Partial)
	}
	return nil
}

func (c *Source) rangeClient(w *command.World) *modifiedrange.Harvester {
	client := &modifiedrange.Harvester{
		HTTP: w.Client(w.Stderr), URL: c.URL, Header: c.Credentials.Authorize(),
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

// print prints each answer as it comes, a line for each entry and each deletion; or all
// answers as one object at the end. After an interrupt, there is a gap.
func (r *rangeRun) print() error {
	p, came := r.NewProgress(), false
	defer p.End()
	for doc, err := range p.Watch(r.Documents()) {
		gap, isGap := errors.AsType[*feedhistory.Gap](err)
		if err != nil && !isGap {
			if !came {
				return explain.Failure(r.URL, err)
			}
			gap = feedhistory.NewGap(r.URL, err)
		}
		if came = true; gap != nil {
			r.gaps, doc = append(r.gaps, gap), gap.Document
		}
		if err := r.answer(doc); err != nil {
			return err
		}
	}
	if r.inOne() {
		return terminal.WriteJSON(r.out, r.json())
	}
	return nil
}

// answer prints the changes of an answer and records the state after it; or it keeps them
// for the end.
func (r *rangeRun) answer(doc *feedhistory.Document) error {
	switch {
	case doc == nil:
		return nil
	case r.inOne():
		r.all.Add(doc, nil)
		return nil
	}
	return errors.Join(r.changes(doc), r.note())
}

// note records the state, after everything before it has been printed.
func (r *rangeRun) note() error {
	if err := r.out.Flush(); err != nil {
		return err
	}
	next, whole := r.Harvest.Mark()
	if next == r.noted && !whole {
		return nil
	}
	r.noted = next
	return r.writeState(rangeState{r.key(), next})
}

// changes prints the changes of an answer.
func (r *rangeRun) changes(doc *feedhistory.Document) (err error) {
	var m feedhistory.Merger // an answer may have several states of an entry
	m.Add(doc, nil)
	h, _ := m.History()
	for _, e := range h.Entries {
		err = errors.Join(err, terminal.WriteJSON(r.out, publish.NewLine(e)))
	}
	for _, t := range h.Deleted {
		err = errors.Join(err, terminal.WriteJSON(r.out, schema.DeletionRecord("", t)))
	}
	r.entries += len(h.Entries)
	r.deleted += len(h.Deleted)
	return err
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

func (r *rangeRun) json() jsonRange {
	next, whole := r.Harvest.Mark()
	j := jsonRange{
		URL: r.URL, Protocol: r.Protocol, Dialect: r.Harvest.Dialect().String(), Requests: r.Requests(),
		Since: schema.Time(next.Since), Whole: whole,
		Entries: []*publish.Line{}, Deleted: []schema.Tombstone{}, Gaps: schema.Each(r.gaps, schema.NewGap),
	}
	if h, _ := r.all.History(); h != nil {
		r.entries, r.deleted = len(h.Entries), len(h.Deleted)
		j.Entries, j.Deleted = schema.Each(h.Entries, publish.NewLine), schema.Each(h.Deleted, utcTombstone)
	}
	return j
}

func utcTombstone(t feedhistory.Tombstone) schema.Tombstone {
	return schema.Tombstone{Ref: t.Ref, When: schema.Time(t.When.UTC())}
}

// report reports a harvest's modifications and gaps.
func (r *rangeRun) report(from modifiedrange.Mark) {
	p, missing := terminal.NewPage(r.Asides()), terminal.NewPage(r.Stderr)
	what := fmt.Sprintf("%s (%s) · %s", terminal.Count(r.entries, "entry", "entries"),
		terminal.Count(r.Requests(), "request", "requests"), r.Harvest.Dialect())
	if r.deleted > 0 {
		what += fmt.Sprintf(" · %d deleted", r.deleted)
	}
	p.Para("", "", what)
	next, whole := r.Harvest.Mark()
	switch {
	case !whole && next.Rest != (modifiedrange.Rest{}):
		p.Para("", "", "Something is missing; the next harvest continues there:")
	case !whole:
		p.Para("", "", "Something is missing, so the next harvest begins where this one did:")
	case from.Rest != (modifiedrange.Rest{}):
		p.Para("", "", "This is the rest of the harvest that was cut short, and everything that was modified since.")
	case from.Since.IsZero():
		p.Para("", "", "This is everything that the collection had when the harvest began.")
	default:
		p.Para("", "", "This is everything that was modified since "+schema.Time(from.Since)+".")
	}
	if whole && !next.Since.IsZero() {
		p.Para("", "", "The next harvest begins at "+schema.Time(next.Since)+", by the server's clock.")
	}
	for _, g := range r.gaps {
		showHarvestGap(missing, g, HarvestAdvice(g))
	}
}
