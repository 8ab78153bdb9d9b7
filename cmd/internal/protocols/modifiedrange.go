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

// A rangeRun is one harvest by ranges of modification times.
type rangeRun struct {
	*run
	*modifiedrange.Harvest
	entries int
	deleted int
	all     feedhistory.Merger // with --format json
}

// ranges harvests by ranges of modification times.
func (r *run) ranges() error {
	var from rangeState
	if err := r.readState(&from); err != nil {
		return err
	}
	r.noted = rangeState{r.key(), from.Mark}
	h := &rangeRun{run: r, Harvest: r.rangeClient(r.World).Harvest(r.Ctx, from.Mark)}
	if err := h.print(); err != nil {
		return err
	}
	if err := h.note(); err != nil {
		return err
	}
	return h.report(from.Mark)
}

func (c *Source) rangeClient(w *command.World) *modifiedrange.Harvester {
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

// print prints each answer as it comes, a line for each entry and each deletion; or all
// answers as one object at the end. After an interrupt, there is a gap.
func (r *rangeRun) print() error {
	p, begun := r.NewProgress(), false
	defer p.End()
	for doc, err := range p.Watch(r.Documents()) {
		gap, isGap := errors.AsType[*feedhistory.Gap](err)
		if err != nil && !isGap {
			if !begun {
				return show.Failure(r.URL, err)
			}
			gap = feedhistory.NewGap(r.URL, err)
		}
		if begun = true; gap != nil {
			r.gaps, doc = append(r.gaps, gap), gap.Document
		}
		if err := r.answer(doc); err != nil {
			return err
		}
	}
	return r.printAll()
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

// note records the state; of a whole harvest in any case.
func (r *rangeRun) note() error {
	next, whole := r.Harvest.Mark()
	if whole {
		r.noted = nil
	}
	return r.run.note(rangeState{r.key(), next})
}

// changes prints the changes of an answer.
func (r *rangeRun) changes(doc *feedhistory.Document) (err error) {
	var m feedhistory.Merger // an answer may have several states of an entry
	m.Add(doc, nil)
	h, _ := m.History()
	for _, e := range h.Entries {
		err = errors.Join(err, r.line(publish.NewLine(e)))
	}
	for _, t := range h.Deleted {
		err = errors.Join(err, r.line(show.DeletionRecord("", t)))
	}
	r.entries += len(h.Entries)
	r.deleted += len(h.Deleted)
	return err
}

// printAll prints all answers as one object, with --format json.
func (r *rangeRun) printAll() error {
	if !r.inOne() {
		return nil
	}
	next, whole := r.Harvest.Mark()
	all := object{
		Dialect: r.Harvest.Dialect().String(), Requests: new(r.Requests()), Since: show.Time(next.Since), Whole: whole,
		Entries: []*publish.Line{}, Deleted: []show.Tombstone{}, Gaps: show.Each(r.gaps, show.NewGap),
	}
	if h, _ := r.all.History(); h != nil {
		r.entries, r.deleted = len(h.Entries), len(h.Deleted)
		all.Entries, all.Deleted = show.Each(h.Entries, publish.NewLine), show.Each(h.Deleted, utcTombstone)
	}
	return r.object(all, "")
}

func utcTombstone(t feedhistory.Tombstone) show.Tombstone {
	return show.Tombstone{Ref: t.Ref, When: show.Time(t.When.UTC())}
}

// report reports a harvest's modifications and gaps.
func (r *rangeRun) report(from modifiedrange.Mark) error {
	what := fmt.Sprintf("%s (%s) · %s", terminal.Count(r.entries, "entry", "entries"),
		terminal.Count(r.Requests(), "request", "requests"), r.Harvest.Dialect())
	r.say(terminal.Counts(what, terminal.Part{N: r.deleted, Says: "deleted"}))
	next, whole := r.Harvest.Mark()
	switch {
	case !whole && next.Rest != (modifiedrange.Rest{}):
		r.say("Something is missing; the next harvest continues there:")
	case !whole:
		r.say("Something is missing, so the next harvest begins where this one did:")
	case from.Rest != (modifiedrange.Rest{}):
		r.say("This is the rest of the harvest that was cut short, and everything that was modified since.")
	case from.Since.IsZero():
		r.say("This is everything that the collection had when the harvest began.")
	default:
		r.say("This is everything that was modified since " + show.Time(from.Since) + ".")
	}
	if whole && !next.Since.IsZero() {
		r.say("The next harvest begins at " + show.Time(next.Since) + ", by the server's clock.")
	}
	return r.showGaps(whole, HarvestAdvice)
}
