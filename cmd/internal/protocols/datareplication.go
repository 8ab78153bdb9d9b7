package protocols

import (
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
)

// A replicationState is where the next harvest by datareplication begins.
type replicationState struct {
	collectionKey
	datareplication.Mark
}

// An entityHarvest is one harvest of entities.
type entityHarvest struct {
	*run
	*datareplication.Harvest
	entities int
}

// entities returns a harvest of entities. Unlike the other protocols, this one can continue
// after any entity, so the state is recorded after each page, and when a harvest ends early.
func (r *run) entities() (collection, error) {
	var from replicationState
	if err := r.readState(&from); err != nil {
		return nil, err
	}
	r.noted = replicationState{r.key(), from.Mark}
	h := &entityHarvest{run: r}
	harvester := r.entityHarvester(r.World)
	if !r.inOne() {
		harvester.PageDone = func(at datareplication.Mark) error { return r.note(replicationState{r.key(), at}) }
	}
	h.Harvest = harvester.Harvest(r.Ctx, from.Mark)
	return h, nil
}

// entityHarvester returns the Harvester the flags ask for.
func (c *Source) entityHarvester(w *command.World) *datareplication.Harvester {
	return &datareplication.Harvester{
		HTTP: w.Client(w.Stderr), URL: c.URL, Header: c.Credentials.Authorize(), Snapshot: c.Snapshot, Lenient: c.Lenient,
		Budget: harvest.Budget{Requests: c.MaxRequests, Entity: int64(c.MaxEntity)},
	}
}

func (h *entityHarvest) changes() error {
	return each(h.run, h.Entities(), func(e *datareplication.Entity) error {
		h.entities++
		return h.line(entityJSON(e))
	})
}

func (h *entityHarvest) state() (any, bool) {
	next, whole := h.Mark()
	return replicationState{h.key(), next}, whole
}

func (h *entityHarvest) object() (object, string) {
	next, _ := h.Mark()
	return object{Requests: new(h.Requests()), Cursor: new(next), Entities: []Entity{}}, "entities"
}

func (h *entityHarvest) report() []string {
	counts := terminal.Count(h.entities, "entity", "entities") + " (" + terminal.Count(h.Requests(), "request", "requests") + ")"
	next := ""
	mark, whole := h.Mark()
	if !mark.IsZero() {
		next = "The next harvest begins after " + mark.String() + "."
	}
	switch {
	case !whole && slices.ContainsFunc(h.gaps, func(g *feedhistory.Gap) bool { return !errors.Is(g, harvest.ErrReach) || h.entities == 0 }):
		return []string{counts, next, "The harvest ended early:"}
	case !whole:
		return []string{counts, next, "Something may be missing:"}
	}
	return []string{counts, "This is everything until now.", next}
}

// An Entity is a line about an entity.
type Entity struct {
	ID        string `json:"id,omitempty"`
	Time      string `json:"time,omitempty"`
	Operation string `json:"operation,omitempty"`
	payload
}

func entityJSON(e *datareplication.Entity) Entity {
	return Entity{e.ContentID, show.Time(e.Modified.UTC()), string(e.Operation), payloadOf(e.Type, e.Body)}
}

// A payload is the body of an entity or of a record's representation.
type payload struct {
	Type   string `json:"type,omitempty"`
	Body   string `json:"body,omitempty"`
	Base64 []byte `json:"base64,omitempty"` // the body, if it is not UTF-8
}

func payloadOf(kind string, body []byte) payload {
	if utf8.Valid(body) {
		return payload{Type: kind, Body: string(body)}
	}
	return payload{Type: kind, Base64: body}
}
