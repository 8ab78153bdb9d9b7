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
	"github.com/feedhistory/feedhistory/harvest/atompmh"
)

// A pmhState is where the next harvest by atom-pmh begins.
type pmhState struct {
	collectionKey
	Mark  atompmh.Mark  `json:"mark"`
	Queue atompmh.Queue `json:"queue,omitempty"` // records still to be fetched by --fetch
}

// A pmhHarvest is a harvest of metadata records, with its results.
type pmhHarvest struct {
	*atompmh.Harvest
	changes []atompmh.Change
	gaps    []*feedhistory.Gap

	fetched []Change      // the changes and the queued records, with --fetch and --format json
	queue   atompmh.Queue // records still to be fetched
	brought int           // the number of records fetched by --fetch
}

// HarvestPMH harvests metadata records.
func (c *Source) HarvestPMH(w *command.World) error {
	var from pmhState
	if err := c.readState(&from); err != nil {
		return err
	}
	harvester := c.harvester(w)
	h := pmhHarvest{Harvest: harvester.Harvest(w.Ctx, from.Mark), queue: from.Queue}
	if err := h.collect(c.URL); err != nil {
		return err
	}
	var err error
	if c.Fetch {
		err = c.fetchPMH(w, harvester, &h)
	} else {
		err = c.printPMH(w, h)
	}
	if err != nil {
		return err
	}
	next, whole := h.Mark()
	if whole || c.Fetch {
		if err := c.writeState(pmhState{c.key(), next, h.queue}); err != nil {
			return err
		}
	}
	harvestedPMH(w, h)
	if !whole || len(h.queue) > 0 && c.Fetch {
		return exit.StatusError(exit.Partial)
	}
	return nil
}

// harvester returns the Harvester the flags ask for.
func (c *Source) harvester(w *command.World) *atompmh.Harvester {
	client := w.Client(w.Stderr)
	client.Budget.Documents, client.Budget.Bytes = c.MaxRequests, int64(c.MaxBytes)
	h := &atompmh.Harvester{HTTP: client, URL: c.URL, Header: c.Authorize(), Accept: c.Accept, Historical: c.Historical}
	if c.Overlap != nil {
		h.Overlap = *c.Overlap
	}
	return h
}

// collect collects the changes and the gaps.
func (h *pmhHarvest) collect(url string) error {
	for change, err := range h.Changes() {
		gap, isGap := errors.AsType[*feedhistory.Gap](err)
		accept, isAccept := errors.AsType[*atompmh.AcceptError](err)
		switch {
		case isAccept:
			return exit.UsageError("--" + accept.Error())
		case isGap:
			h.gaps = append(h.gaps, gap)
		case err != nil:
			return explain.Failure(url, err)
		default:
			h.changes = append(h.changes, change)
		}
	}
	return nil
}

// printPMH prints the changes: a line for each record, or one object.
func (c *Source) printPMH(w *command.World, h pmhHarvest) error {
	out := bufio.NewWriterSize(w.Stdout, 64<<10)
	var err error
	if c.inOne() {
		_, whole := h.Mark()
		j := jsonPMH{
			URL: c.URL, Protocol: c.Protocol, Documents: h.Documents(), Whole: whole, All: h.All(),
			Changes: h.fetched, Pending: len(h.queue), Gaps: schema.Each(h.gaps, schema.NewGap),
		}
		if !c.Fetch {
			j.Changes = h.lines()
		}
		err = terminal.WriteJSON(out, j)
		return errors.Join(err, out.Flush())
	}
	for _, change := range h.lines() {
		err = errors.Join(err, terminal.WriteJSON(out, change))
	}
	return errors.Join(err, out.Flush())
}

// lines returns the changes, each after the record's earlier states.
func (h pmhHarvest) lines() []Change {
	lines := []Change{}
	for _, c := range h.changes {
		for _, e := range c.Historical {
			earlier := changeJSON(atompmh.Change{ID: c.ID, Time: e.Updated, Entry: e, Representations: atompmh.RepresentationsOf(e)})
			earlier.Kind = historicalKind
			lines = append(lines, earlier)
		}
		lines = append(lines, changeJSON(c))
	}
	return lines
}

// historicalKind is the Kind of a line about an earlier state of a record.
const historicalKind = "historical"

// A jsonPMH is a whole harvest in JSON, a jsonChange one change.
type (
	jsonPMH struct {
		URL       string       `json:"url"`
		Protocol  string       `json:"protocol"`
		Documents int          `json:"documents"`
		Whole     bool         `json:"whole"`
		All       bool         `json:"all"` // there are no other records
		Changes   []Change     `json:"changes"`
		Pending   int          `json:"pending,omitempty"` // records still to be fetched
		Gaps      []schema.Gap `json:"gaps"`
	}
	Change struct {
		Kind            string               `json:"kind"`
		ID              string               `json:"id"`
		Time            string               `json:"time,omitempty"`
		Title           string               `json:"title,omitempty"`
		Chosen          *jsonRepresentation  `json:"chosen,omitempty"`
		Representations []jsonRepresentation `json:"representations,omitempty"`

		// The other members are present only with --fetch.
		Type   string `json:"type,omitempty"` // the media type from the server
		Body   string `json:"body,omitempty"`
		Base64 []byte `json:"base64,omitempty"` // the body, if it is not UTF-8
		Gone   bool   `json:"gone,omitempty"`   // the record has changed again since, or was deleted
		Error  string `json:"error,omitempty"`
	}
	jsonRepresentation struct {
		URL  string `json:"url"`
		Type string `json:"type,omitempty"`
	}
)

func changeJSON(c atompmh.Change) Change {
	representation := func(r atompmh.Representation) jsonRepresentation { return jsonRepresentation(r) }
	j := Change{
		Kind: c.Kind.String(), ID: c.ID, Time: schema.Time(c.Time.UTC()), Representations: schema.Each(c.Representations, representation),
	}
	if c.Entry != nil {
		j.Title = c.Entry.Title().Plain()
	}
	if c.Chosen != nil {
		chosen := representation(*c.Chosen)
		j.Chosen = &chosen
	}
	return j
}

// harvestedPMH reports a harvest's changes and gaps.
func harvestedPMH(w *command.World, h pmhHarvest) {
	p, missing := terminal.NewPage(w.Asides()), terminal.NewPage(w.Stderr)
	kinds := map[atompmh.ChangeKind]int{}
	for _, c := range h.changes {
		kinds[c.Kind]++
	}
	what := fmt.Sprintf("%s (%s)", terminal.Count(kinds[atompmh.Record], "record", "records"), terminal.Count(h.Documents(), "document", "documents"))
	if n := kinds[atompmh.Deleted]; n > 0 {
		what += fmt.Sprintf(" · %d deleted", n)
	}
	if n := kinds[atompmh.Other]; n > 0 {
		what += fmt.Sprintf(" · %d of no known kind", n)
	}
	if h.brought > 0 {
		what += fmt.Sprintf(" · %d fetched", h.brought)
	}
	p.Para("", "", what)
	if n := len(h.queue); n > 0 {
		missing.Para("", "", terminal.Count(n, "record", "records")+" could not be fetched; the next harvest with --fetch tries again.")
	}
	switch _, whole := h.Mark(); {
	case !whole:
		p.Para("", "", "Something is missing, so the next harvest begins where this one did:")
	case h.All():
		p.Para("", "", "These are all the records.")
	default:
		p.Para("", "", "This is everything that changed since the last harvest.")
	}
	for _, g := range h.gaps {
		showHarvestGap(missing, g)
	}
}
