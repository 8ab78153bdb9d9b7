package protocols

import (
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/publish"
)

// A rangeState is where the next harvest by modified-range begins.
type rangeState struct {
	collectionKey
	modifiedrange.Mark
}

// A rangeHarvest is one harvest by ranges of modification times.
type rangeHarvest struct {
	*run
	*modifiedrange.Harvest
	from    modifiedrange.Mark
	entries int
	deleted int
	all     feedhistory.Merger // with --format json
}

// ranges returns a harvest by ranges of modification times.
func (r *run) ranges() (collection, error) {
	var from rangeState
	if err := r.readState(&from); err != nil {
		return nil, err
	}
	r.noted = rangeState{r.key(), from.Mark}
	return &rangeHarvest{run: r, from: from.Mark, Harvest: r.rangeHarvester(r.World).Harvest(r.Ctx, from.Mark)}, nil
}

// rangeHarvester returns the Harvester the flags ask for.
func (c *Source) rangeHarvester(w *command.World) *modifiedrange.Harvester {
	client := &modifiedrange.Harvester{
		HTTP: w.Client(w.Stderr), URL: c.URL, Header: c.Credentials.Authorize(),
		Budget: harvest.Budget{Requests: c.MaxRequests, Items: c.MaxItems, Bytes: int64(c.MaxBytes)},
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

// changes prints each answer as it comes, a line for each entry and each deletion; or it keeps
// all answers for the end.
func (h *rangeHarvest) changes() error {
	p := h.NewProgress()
	defer p.End()
	for r, err := range p.Watch(h.Readings()) {
		if err == nil {
			err = h.read(r)
		} else {
			err = h.miss(err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read prints a Reading.
func (h *rangeHarvest) read(r *feedhistory.Reading) error {
	for _, gap := range r.Gaps {
		if err := h.miss(gap); err != nil {
			return err
		}
	}
	doc := r.Readable()
	if h.begun = true; doc == nil {
		return nil
	}
	return h.answer(doc)
}

// answer prints the changes of an answer, which may have several states of an entry, and records
// the state after it.
func (h *rangeHarvest) answer(doc *feedhistory.Document) (err error) {
	if h.inOne() {
		h.all.Add(&feedhistory.Reading{Document: doc}, nil)
		return nil
	}
	var m feedhistory.Merger
	m.Add(&feedhistory.Reading{Document: doc}, nil)
	all, _ := m.History()
	for _, e := range all.Entries {
		err = errors.Join(err, h.line(publish.NewLine(e)))
	}
	for _, t := range all.Deleted {
		err = errors.Join(err, h.line(show.DeletionRecord("", t)))
	}
	h.entries += len(all.Entries)
	h.deleted += len(all.Deleted)
	state, _ := h.state()
	return errors.Join(err, h.note(state))
}

func (h *rangeHarvest) state() (any, bool) {
	next, whole := h.Harvest.Mark()
	return rangeState{h.key(), next}, whole
}

func (h *rangeHarvest) object() (object, string) {
	next, _ := h.Harvest.Mark()
	o := object{
		Dialect: h.Harvest.Dialect().String(), Requests: new(h.Requests()), Since: show.Time(next.Since),
		Entries: []*publish.Line{}, Deleted: []show.Tombstone{},
	}
	if all, _ := h.all.History(); all != nil {
		h.entries, h.deleted = len(all.Entries), len(all.Deleted)
		o.Entries, o.Deleted = show.Each(all.Entries, publish.NewLine), show.Each(all.Deleted, utcTombstone)
	}
	return o, ""
}

func utcTombstone(t feedhistory.Tombstone) show.Tombstone {
	return show.Tombstone{Ref: t.Ref, When: show.Time(t.When.UTC())}
}

func (h *rangeHarvest) report() []string {
	counts := terminal.Counts(fmt.Sprintf("%s (%s) · %s", terminal.Count(h.entries, "entry", "entries"),
		terminal.Count(h.Requests(), "request", "requests"), h.Harvest.Dialect()), terminal.Part{N: h.deleted, Says: "deleted"})
	said := "This is everything that was modified since " + show.Time(h.from.Since) + "."
	next, whole := h.Harvest.Mark()
	switch {
	case !whole && next.Rest != (modifiedrange.Rest{}):
		return []string{counts, "Something is missing; the next harvest continues there:"}
	case !whole:
		return []string{counts, "Something is missing, so the next harvest begins where this one did:"}
	case h.from.Rest != (modifiedrange.Rest{}):
		said = "This is the rest of the harvest that was cut short, and everything that was modified since."
	case h.from.Since.IsZero():
		said = "This is everything that the collection had when the harvest began."
	}
	if next.Since.IsZero() {
		return []string{counts, said}
	}
	return []string{counts, said, "The next harvest begins at " + show.Time(next.Since) + "."}
}
