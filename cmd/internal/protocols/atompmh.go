package protocols

import (
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/harvest"
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
	*run
	*atompmh.Harvest
	counts map[atompmh.ChangeKind]int // how many changes there are of each kind

	queue   atompmh.Queue // records still to be fetched
	brought int           // the number of records fetched by --fetch
}

// records harvests metadata records.
func (r *run) records() error {
	spareMemory()
	var from pmhState
	if err := r.readState(&from); err != nil {
		return err
	}
	harvester := r.harvester(r.World)
	h := &pmhHarvest{run: r, Harvest: harvester.Harvest(r.Ctx, from.Mark), counts: map[atompmh.ChangeKind]int{}, queue: from.Queue}
	all := h.printed()
	if r.Fetch {
		all = h.fetched(harvester)
	}
	for line, err := range all {
		if err == nil {
			err = r.line(line)
		}
		if err != nil {
			return errors.Join(err, r.out.Flush())
		}
	}
	next, whole := h.Mark()
	err := errors.Join(r.out.Flush(), r.object(object{
		Documents: new(h.Documents()), Whole: whole, All: new(h.All()),
		Changes: []Change{}, Pending: len(h.queue), Gaps: show.Each(r.gaps, show.NewGap),
	}, "changes"))
	if err == nil && (whole || r.Fetch) {
		err = r.writeState(pmhState{r.key(), next, h.queue})
	}
	if err != nil {
		return err
	}
	return h.report()
}

// harvester returns the Harvester the flags ask for.
func (c *Source) harvester(w *command.World) *atompmh.Harvester {
	h := &atompmh.Harvester{
		Budget: harvest.Budget{Requests: c.MaxRequests, Bytes: int64(c.MaxBytes)},
		HTTP:   w.Client(w.Stderr), URL: c.URL, Header: c.Credentials.Authorize(), Accept: c.Accept, Historical: c.Historical, WholeChain: c.WholeChain,
		Known: func(url string) {
			w.Tell("all documents have the feed's time; the last harvest has read " + terminal.WithoutUser(url) +
				" as it is, so older archives were left out: --whole-chain reads them")
		},
	}
	if c.Overlap != nil {
		h.Overlap = *c.Overlap
	}
	return h
}

// news yields the changes, counts them, and notes the gaps.
func (h *pmhHarvest) news() iter.Seq2[atompmh.Change, error] {
	return func(yield func(atompmh.Change, error) bool) {
		for change, err := range h.Changes() {
			gap, isGap := errors.AsType[*feedhistory.Gap](err)
			switch {
			case isGap:
				h.gaps = append(h.gaps, gap)
				continue
			case errors.Is(err, harvest.ErrAccept):
				err = terminal.UsageError("--" + err.Error())
			case err != nil:
				err = show.Failure(h.URL, err)
			default:
				h.counts[change.Kind]++
			}
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// printed yields the changes to print, each after the record's earlier states.
func (h *pmhHarvest) printed() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for c, err := range h.news() {
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

// A Change is a line about a record.
type Change struct {
	Kind            string                   `json:"kind"`
	ID              string                   `json:"id"`
	Time            string                   `json:"time,omitempty"`
	Title           string                   `json:"title,omitempty"`
	Chosen          *atompmh.Representation  `json:"chosen,omitempty"`
	Representations []atompmh.Representation `json:"representations,omitempty"`

	// The other members are present only with --fetch.
	Type   string `json:"type,omitempty"` // the media type from the server
	Body   string `json:"body,omitempty"`
	Base64 []byte `json:"base64,omitempty"` // the body, if it is not UTF-8
	Gone   bool   `json:"gone,omitempty"`   // the record has changed again since, or was deleted
	Error  string `json:"error,omitempty"`
}

func changeJSON(c atompmh.Change) Change {
	j := Change{
		Kind: c.Kind.String(), ID: c.ID, Time: show.Time(c.Time.UTC()), Chosen: c.Chosen, Representations: c.Representations,
		Type: c.Type, Gone: c.Gone,
	}
	if c.Entry != nil {
		j.Title = c.Entry.Title().Plain()
	}
	switch {
	case c.Err != nil:
		j.Error = show.Detail(c.Err)
	case utf8.Valid(c.Body):
		j.Body = string(c.Body)
	default:
		j.Base64 = c.Body
	}
	return j
}

// report reports a harvest's changes and gaps.
func (h *pmhHarvest) report() error {
	what := fmt.Sprintf("%s (%s)", terminal.Count(h.counts[atompmh.Record], "record", "records"), terminal.Count(h.Documents(), "document", "documents"))
	h.say(terminal.Counts(what, terminal.Part{N: h.counts[atompmh.Deleted], Says: "deleted"},
		terminal.Part{N: h.counts[atompmh.Other], Says: "of no known kind"}, terminal.Part{N: h.brought, Says: "fetched"}))
	if n := len(h.queue); n > 0 {
		terminal.NewPage(h.Stderr).Para("", "", terminal.Count(n, "record", "records")+" could not be fetched; the next harvest with --fetch tries again.")
	}
	_, whole := h.Mark()
	switch {
	case !whole:
		h.say("Something is missing, so the next harvest begins where this one did:")
	case h.All():
		h.say("These are all the records.")
	default:
		h.say("This is everything that changed since the last harvest.")
	}
	return h.showGaps(whole && (len(h.queue) == 0 || !h.Fetch), func(g *feedhistory.Gap) string {
		if g.Reason == feedhistory.ReasonBudget { // the changes are printed oldest first, so after the last document
			return "raise " + limitFlags(g) + "; or harvest with --db, which continues from there"
		}
		return HarvestAdvice(g)
	})
}

// fetched yields the changes with the records themselves, and the records earlier harvests
// could not fetch. An interrupt leaves the other records in the queue.
func (h *pmhHarvest) fetched(harvester *atompmh.Harvester) iter.Seq2[Change, error] {
	if h.queue == nil {
		h.queue = atompmh.Queue{}
	}
	return func(yield func(Change, error) bool) {
		for c, err := range harvester.Fetch(h.Ctx, h.news(), h.queue) {
			j := changeJSON(c)
			if j.Error == "" && j.Type+j.Body != "" || j.Base64 != nil {
				h.brought++
			}
			if !yield(j, err) {
				return
			}
		}
	}
}
