package protocols

import (
	"errors"
	"fmt"
	"reflect"

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

// A recordHarvest is one harvest of metadata records.
type recordHarvest struct {
	*run
	*atompmh.Harvest
	harvester *atompmh.Harvester
	from      atompmh.Mark
	counts    map[atompmh.ChangeKind]int // how many changes there are of each kind

	queue   atompmh.Queue // records still to be fetched
	brought int           // the number of records fetched by --fetch
}

// records returns a harvest of metadata records.
func (r *run) records() (collection, error) {
	var from pmhState
	if err := r.readState(&from); err != nil {
		return nil, err
	}
	harvester := r.recordHarvester(r.World)
	h := &recordHarvest{run: r, harvester: harvester, Harvest: harvester.Harvest(r.Ctx, from.Mark), from: from.Mark, counts: map[atompmh.ChangeKind]int{}, queue: from.Queue}
	if r.Fetch && h.queue == nil {
		h.queue = atompmh.Queue{}
	}
	return h, nil
}

// recordHarvester returns the Harvester the flags ask for.
func (c *Source) recordHarvester(w *command.World) *atompmh.Harvester {
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

// changes prints the changes, each after the record's earlier states. With --fetch, they have
// the records themselves, and then come the records that earlier harvests could not fetch; an
// interrupt leaves the other records in the queue. The state does not remember all records of a
// feed: if it turns complete, a last line says that there are no others.
func (h *recordHarvest) changes() error {
	all := h.Changes()
	if h.Fetch {
		all = h.harvester.Fetch(h.Ctx, all, h.queue)
	}
	err := each(h.run, all, h.change)
	if err == nil && !h.from.IsZero() && h.All() && !h.inOne() {
		err = h.line(onlyLine{allKind})
	}
	return err
}

// change prints a change.
func (h *recordHarvest) change(c atompmh.Change) (err error) {
	if c.Kind != atompmh.Record || c.Entry != nil { // otherwise it is an earlier harvest's
		h.counts[c.Kind]++
	}
	if h.Fetch && c.Chosen != nil && c.Err == nil {
		h.brought++
	}
	for _, e := range c.Historical {
		earlier := changeJSON(atompmh.Change{ID: c.ID, Time: e.Updated, Entry: e, Representations: atompmh.RepresentationsOf(e)})
		earlier.Kind = historicalKind
		err = errors.Join(err, h.line(earlier))
	}
	return errors.Join(err, h.line(changeJSON(c)))
}

func (h *recordHarvest) state() (any, bool) {
	next, whole := h.Mark()
	if !whole && !h.Fetch && reflect.DeepEqual(next, h.from) {
		return nil, false
	}
	return &pmhState{h.key(), next, h.queue}, whole
}

func (h *recordHarvest) object() (object, string) {
	return object{Documents: new(h.DocumentsRead()), All: new(h.All()), Changes: []Change{}, Pending: len(h.queue)}, "changes"
}

func (h *recordHarvest) report() []string {
	what := fmt.Sprintf("%s (%s)", terminal.Count(h.counts[atompmh.Record], "record", "records"), terminal.Count(h.DocumentsRead(), "document", "documents"))
	counts := terminal.Counts(what, terminal.Part{N: h.counts[atompmh.Deleted], Says: "deleted"},
		terminal.Part{N: h.counts[atompmh.Other], Says: "of no known kind"}, terminal.Part{N: h.brought, Says: "fetched"})
	if n := len(h.queue); n > 0 {
		terminal.NewPage(h.Stderr).Para("", "", terminal.Count(n, "record", "records")+" could not be fetched; the next harvest with --fetch tries again.")
	}
	switch _, whole := h.Mark(); {
	case !whole:
		return []string{counts, "Something is missing, so the next harvest begins where this one did:"}
	case h.All():
		return []string{counts, "These are all the records."}
	}
	return []string{counts, "This is everything that changed since the last harvest."}
}

// These are the kinds of lines besides those of changes: an earlier state of a record; and the
// line after all records of a harvest that a consumer is to have no others of.
const (
	historicalKind = "historical"
	allKind        = "all"
)

// An onlyLine has nothing but a kind.
type onlyLine struct {
	Kind string `json:"kind"`
}

// A Change is a line about a record.
type Change struct {
	Kind            string                   `json:"kind"`
	ID              string                   `json:"id"`
	Time            string                   `json:"time,omitempty"`
	Title           string                   `json:"title,omitempty"`
	Chosen          *atompmh.Representation  `json:"chosen,omitempty"`
	Representations []atompmh.Representation `json:"representations,omitempty"`

	// The other members are present only with --fetch.
	payload        // with the media type from the server
	Gone    bool   `json:"gone,omitempty"` // the record has changed again since, or was deleted
	Error   string `json:"error,omitempty"`
}

func changeJSON(c atompmh.Change) Change {
	j := Change{
		Kind: c.Kind.String(), ID: c.ID, Time: show.Time(c.Time.UTC()), Chosen: c.Chosen, Representations: c.Representations,
		payload: payloadOf(c.Type, c.Body), Gone: c.Gone,
	}
	if c.Entry != nil {
		j.Title = c.Entry.Title().Plain()
	}
	if c.Err != nil {
		j.Error = show.Detail(c.Err)
	}
	return j
}
