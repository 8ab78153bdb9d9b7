package collection

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
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
	kinds map[atompmh.ChangeKind]int // how many changes there are of each kind
	gaps  []*feedhistory.Gap

	queue   atompmh.Queue // records still to be fetched
	brought int           // the number of records fetched by --fetch
}

// HarvestPMH harvests metadata records.
func (c *Source) HarvestPMH(w *command.World) (err error) {
	spareMemory()
	var from pmhState
	if err := c.readState(&from); err != nil {
		return err
	}
	shelf, err := newDiskShelf(w.Ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shelf.Close()) }()
	harvester := c.harvester(w)
	harvester.Shelf = shelf
	h := &pmhHarvest{Harvest: harvester.Harvest(w.Ctx, from.Mark), kinds: map[atompmh.ChangeKind]int{}, queue: from.Queue}
	if err := c.printPMH(w, harvester, h); err != nil {
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
	h := &atompmh.Harvester{
		HTTP: client, URL: c.URL, Header: c.Credentials.Authorize(), Accept: c.Accept, Historical: c.Historical, WholeChain: c.WholeChain,
		Known: func(url string) {
			w.Tell("all documents have the feed's time; the last harvest has read " + argument.WithoutUser(url) +
				" as it is, so older archives were left out: --whole-chain reads them")
		},
	}
	if c.Overlap != nil {
		h.Overlap = *c.Overlap
	}
	return h
}

// news yields the changes, counts them, and notes the gaps.
func (h *pmhHarvest) news(url string) iter.Seq2[atompmh.Change, error] {
	return func(yield func(atompmh.Change, error) bool) {
		for change, err := range h.Changes() {
			gap, isGap := errors.AsType[*feedhistory.Gap](err)
			accept, isAccept := errors.AsType[*atompmh.AcceptError](err)
			switch {
			case isGap:
				h.gaps = append(h.gaps, gap)
				continue
			case isAccept:
				err = exit.UsageError("--" + accept.Error())
			case err != nil:
				err = explain.Failure(url, err)
			default:
				h.kinds[change.Kind]++
			}
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// printPMH harvests, and prints the changes: a line for each record, or one object.
func (c *Source) printPMH(w *command.World, harvester *atompmh.Harvester, h *pmhHarvest) error {
	all := h.printed(c.URL)
	if c.Fetch {
		all = h.fetched(w.Ctx, harvester, c.URL)
	}
	if c.inOne() {
		return c.printOne(w, h, all)
	}
	out := bufio.NewWriterSize(w.Stdout, 64<<10)
	for line, err := range all {
		if err == nil {
			err = terminal.WriteJSON(out, line)
		}
		if err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	return out.Flush()
}

// printOne prints the harvest as one object. Its verdict comes first, but is known only at
// the end, so the changes are in a file until then.
func (c *Source) printOne(w *command.World, h *pmhHarvest, all iter.Seq2[Change, error]) (err error) {
	spool, err := os.CreateTemp("", "feedhistory")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spool.Close(), os.Remove(spool.Name())) }()
	lines := bufio.NewWriterSize(spool, 64<<10)
	comma := ""
	for line, err := range all {
		var text bytes.Buffer
		if err == nil {
			err = terminal.WriteJSON(&text, line)
		}
		if err != nil {
			return err
		}
		_, _ = lines.WriteString(comma + strings.TrimSuffix(text.String(), "\n")) // Flush returns the error
		comma = ","
	}
	if err := lines.Flush(); err != nil {
		return err
	}
	_, whole := h.Mark()
	var text bytes.Buffer
	err = terminal.WriteJSON(&text, jsonPMH{
		URL: c.URL, Protocol: c.Protocol, Documents: h.Documents(), Whole: whole, All: h.All(),
		Changes: []Change{}, Pending: len(h.queue), Gaps: schema.Each(h.gaps, schema.NewGap),
	})
	if err != nil {
		return err
	}
	before, after, _ := strings.Cut(text.String(), `"changes":[]`)
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(w.Stdout, io.MultiReader(strings.NewReader(before+`"changes":[`), spool, strings.NewReader("]"+after)))
	return err
}

// printed yields the changes to print, each after the record's earlier states.
func (h *pmhHarvest) printed(url string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for c, err := range h.news(url) {
			for _, e := range c.Historical {
				earlier := changeJSON(atompmh.Change{ID: c.ID, Time: e.Updated, Entry: e, Representations: atompmh.RepresentationsOf(e)})
				earlier.Kind = historicalKind
				if !yield(earlier, nil) {
					return
				}
			}
			if !yield(changeJSON(c), err) {
				return
			}
		}
	}
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
func harvestedPMH(w *command.World, h *pmhHarvest) {
	p, missing := terminal.NewPage(w.Asides()), terminal.NewPage(w.Stderr)
	what := fmt.Sprintf("%s (%s)", terminal.Count(h.kinds[atompmh.Record], "record", "records"), terminal.Count(h.Documents(), "document", "documents"))
	if n := h.kinds[atompmh.Deleted]; n > 0 {
		what += fmt.Sprintf(" · %d deleted", n)
	}
	if n := h.kinds[atompmh.Other]; n > 0 {
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
		advice := HarvestAdvice(g)
		if g.Reason == feedhistory.ReasonBudget { // the changes are printed oldest first, so after the last document
			advice = "raise " + limitFlags(g) + "; or harvest with --db, which continues from there"
		}
		showHarvestGap(missing, g, advice)
	}
}
