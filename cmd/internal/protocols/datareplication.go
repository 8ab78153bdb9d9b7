package protocols

import (
	"cmp"
	"errors"
	"unicode/utf8"

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

// A replicationRun is one harvest of entities.
type replicationRun struct {
	*run
	*datareplication.Harvest
}

// entities harvests entities. Unlike the other protocols, this one can continue after any
// entity, so the state is recorded after each page, and when a harvest ends early.
func (r *run) entities() error {
	var from replicationState
	if err := r.readState(&from); err != nil {
		return err
	}
	h := replicationRun{run: r}
	state := func() error { return r.note(replicationState{r.key(), h.Mark()}) }
	r.noted = replicationState{r.key(), from.Mark}
	client := r.replicationClient(r.World)
	var failed error // of the output or of the state
	if !r.inOne() {
		client.PageDone = func(datareplication.Mark) error {
			failed = state()
			return failed
		}
	}
	h.Harvest = client.Harvest(r.Ctx, from.Mark)
	var broken error // why the harvest ended early
	for e, err := range h.Entities() {
		if broken = err; broken == nil {
			failed = r.line(entityJSON(e))
		}
		if failed != nil {
			return failed
		}
	}
	if broken != nil && r.lines == 0 && !isCutOff(broken) {
		return r.replicationFailure(broken)
	}
	all := object{Requests: new(h.Requests()), Whole: broken == nil, Cursor: new(h.Mark()), Entities: []Entity{}}
	if broken != nil {
		name, what := replicationDetail(broken, r.URL)
		all.Error = name + ": " + what
	}
	if err := errors.Join(r.object(all, "entities"), state()); err != nil {
		return err
	}
	return h.report(broken)
}

// isCutOff reports whether the limit on requests ended a harvest.
func isCutOff(err error) bool {
	limit, ok := errors.AsType[*harvest.Error](err)
	return ok && limit.Limit == "requests"
}

// replicationClient returns the Client the flags ask for.
func (c *Source) replicationClient(w *command.World) *datareplication.Harvester {
	return &datareplication.Harvester{
		HTTP: w.Client(w.Stderr), URL: c.URL, Header: c.Credentials.Authorize(), Snapshot: c.Snapshot, Lenient: c.Lenient,
		Budget: harvest.Budget{Requests: c.MaxRequests, Entity: int64(c.MaxEntity)},
	}
}

// An Entity is a line about an entity.
type Entity struct {
	ID        string `json:"id,omitempty"`
	Time      string `json:"time,omitempty"`
	Operation string `json:"operation,omitempty"`
	Type      string `json:"type,omitempty"`
	Body      string `json:"body,omitempty"`
	Base64    []byte `json:"base64,omitempty"` // the body, if it is not UTF-8
}

func entityJSON(e *datareplication.Entity) Entity {
	j := Entity{ID: e.ContentID, Time: show.Time(e.Modified.UTC()), Operation: string(e.Operation), Type: e.Type}
	if utf8.Valid(e.Body) {
		j.Body = string(e.Body)
	} else {
		j.Base64 = e.Body
	}
	return j
}

// report reports a harvest's entities and, if it ended early, the reason.
func (r replicationRun) report(broken error) error {
	r.say(terminal.Count(r.lines, "entity", "entities") + " (" + terminal.Count(r.Requests(), "request", "requests") + ")")
	if broken == nil {
		r.say("This is everything until now.")
	} else {
		r.say("The harvest ended early:")
		missing := terminal.NewPage(r.Stderr)
		name, what := replicationDetail(broken, r.URL)
		missing.Para("  - ", "    ", name+": "+what)
		if todo := cmp.Or(protocolAdvice(broken), show.Remedy(broken)); todo != "" {
			missing.Para("    ", "    ", "what to do: "+todo)
		}
	}
	if mark := r.Mark(); !mark.IsZero() {
		r.say("The next harvest begins after " + mark.String() + ".")
	}
	return r.showGaps(broken == nil, nil)
}

// replicationFailure explains in one line why there is no harvest, with advice.
func (c *Source) replicationFailure(err error) error {
	name, what := replicationDetail(err, c.URL)
	todo := protocolAdvice(err)
	switch {
	case name == terminal.WithoutUser(c.URL) && todo == "":
		return show.Failure(c.URL, err)
	case todo == "":
		todo = show.Remedy(err)
	}
	if todo != "" {
		what += "; " + todo
	}
	return errors.New(name + ": " + what)
}

// replicationDetail returns the URL of an error's page, and the fault.
func replicationDetail(err error, url string) (name, what string) {
	e, ok := errors.AsType[*harvest.Error](err)
	if !ok {
		return terminal.WithoutUser(url), show.Detail(err)
	}
	if what = harvestDetail(err); e.From != "" {
		what += ", linked from " + terminal.WithoutUser(e.From)
	}
	return terminal.WithoutUser(cmp.Or(e.URL, url)), what
}
