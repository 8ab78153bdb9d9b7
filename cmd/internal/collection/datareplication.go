package collection

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
)

// A replicationState is where the next harvest by datareplication begins.
type replicationState struct {
	collectionKey
	datareplication.Mark
}

// A replicationRun is one harvest of entities.
type replicationRun struct {
	*Source
	*command.World
	*datareplication.Harvest
	out      *bufio.Writer
	noted    datareplication.Mark // the mark in the state file
	failed   error                // an error of the output or of the state file
	count    int                  // the number of entities so far
	entities []Entity             // with --format json
}

// HarvestReplication harvests entities. Unlike the other protocols, it can continue after
// any entity, so it also records a state when a harvest ends early.
func (c *Source) HarvestReplication(w *command.World) error {
	var from replicationState
	if err := c.readState(&from); err != nil {
		return err
	}
	r := &replicationRun{
		Source: c, World: w, out: bufio.NewWriterSize(w.Stdout, 64<<10), noted: from.Mark, entities: []Entity{},
	}
	client := c.replicationClient(w)
	if !c.inOne() {
		client.PageDone = func(datareplication.Mark) error { return r.note() }
	}
	r.Harvest = client.Harvest(w.Ctx, from.Mark)
	broken, err := r.print()
	switch {
	case err != nil:
		return err
	case broken != nil && r.count == 0 && !isCutOff(broken):
		return c.replicationFailure(broken)
	}
	if c.inOne() {
		err = terminal.WriteJSON(r.out, r.json(broken))
	}
	if err = errors.Join(err, r.note()); err != nil {
		return err
	}
	r.report(broken)
	if broken != nil {
		return exit.StatusError(exit.Partial)
	}
	return nil
}

// isCutOff reports whether the limit on requests ended a harvest.
func isCutOff(err error) bool {
	limit, ok := errors.AsType[*datareplication.BudgetError](err)
	return ok && limit.Limit == "requests"
}

// replicationClient returns the Client the flags ask for.
func (c *Source) replicationClient(w *command.World) *datareplication.Harvester {
	return &datareplication.Harvester{
		HTTP: w.Client(w.Stderr), URL: c.URL, Header: c.Credentials.Authorize(), Snapshot: c.Snapshot, Lenient: c.Lenient,
		Budget: datareplication.Budget{Requests: c.MaxRequests, Entity: int64(c.MaxEntity)},
	}
}

// print prints the entities. The state is recorded after each page. broken says why the
// harvest ended early; err is an error of the output or of the state.
func (r *replicationRun) print() (broken, err error) {
	for e, broken := range r.Entities() {
		switch {
		case r.failed != nil:
			return nil, r.failed
		case broken != nil:
			return broken, nil
		case r.inOne():
			r.entities = append(r.entities, entityJSON(e))
		default:
			if err := terminal.WriteJSON(r.out, entityJSON(e)); err != nil {
				return nil, err
			}
		}
		r.count++
	}
	return nil, nil
}

// note records the mark, after everything before it has been printed.
func (r *replicationRun) note() error {
	r.failed = r.record()
	return r.failed
}

func (r *replicationRun) record() error {
	if err := r.out.Flush(); err != nil {
		return err
	}
	if r.Mark() == r.noted {
		return nil
	}
	r.noted = r.Mark()
	return r.writeState(replicationState{r.key(), r.noted})
}

// A jsonReplication is a whole harvest in JSON, a jsonEntity one entity.
type (
	jsonReplication struct {
		URL      string               `json:"url"`
		Protocol string               `json:"protocol"`
		Requests int                  `json:"requests"`
		Whole    bool                 `json:"whole"`
		Cursor   datareplication.Mark `json:"cursor"` // where the next harvest begins
		Entities []Entity             `json:"entities"`
		Error    string               `json:"error,omitempty"`
	}
	Entity struct {
		ID        string `json:"id,omitempty"`
		Time      string `json:"time,omitempty"`
		Operation string `json:"operation,omitempty"`
		Type      string `json:"type,omitempty"`
		Body      string `json:"body,omitempty"`
		Base64    []byte `json:"base64,omitempty"` // the body, if it is not UTF-8
	}
)

func (r *replicationRun) json(broken error) jsonReplication {
	j := jsonReplication{
		URL: r.URL, Protocol: r.Protocol, Requests: r.Requests(), Whole: broken == nil,
		Cursor: r.Mark(), Entities: r.entities,
	}
	if broken != nil {
		name, what := replicationDetail(broken, r.URL)
		j.Error = name + ": " + what
	}
	return j
}

func entityJSON(e *datareplication.Entity) Entity {
	j := Entity{ID: e.ContentID, Time: schema.Time(e.Modified.UTC()), Operation: string(e.Operation), Type: e.Type}
	if utf8.Valid(e.Body) {
		j.Body = string(e.Body)
	} else {
		j.Base64 = e.Body
	}
	return j
}

// report reports a harvest's entities and, if it ended early, the reason.
func (r *replicationRun) report(broken error) {
	p, missing := terminal.NewPage(r.Asides()), terminal.NewPage(r.Stderr)
	p.Para("", "", terminal.Count(r.count, "entity", "entities")+" ("+terminal.Count(r.Requests(), "request", "requests")+")")
	if broken == nil {
		p.Para("", "", "This is everything until now.")
	} else {
		p.Para("", "", "The harvest ended early:")
		name, what := replicationDetail(broken, r.URL)
		missing.Para("  - ", "    ", name+": "+what)
		if todo := cmp.Or(ReplicationAdvice(broken), explain.Remedy(broken)); todo != "" {
			missing.Para("    ", "    ", "what to do: "+todo)
		}
	}
	if cursor := r.Mark(); !cursor.IsZero() {
		p.Para("", "", "The next harvest begins after "+cursor.String()+".")
	}
}

// replicationFailure explains in one line why there is no harvest, with advice.
func (c *Source) replicationFailure(err error) error {
	name, what := replicationDetail(err, c.URL)
	todo := ReplicationAdvice(err)
	switch {
	case name == argument.WithoutUser(c.URL) && todo == "":
		return explain.Failure(c.URL, err)
	case todo == "":
		todo = explain.Remedy(err)
	}
	if todo != "" {
		what += "; " + todo
	}
	return errors.New(name + ": " + what)
}

// replicationDetail returns the URL of an error's page, and the fault.
func replicationDetail(err error, url string) (name, what string) {
	if page, ok := errors.AsType[*datareplication.PageError](err); ok {
		if what = explain.Detail(page.Err); page.From != "" {
			what += ", linked from " + argument.WithoutUser(page.From)
		}
		return argument.WithoutUser(page.URL), what
	}
	return argument.WithoutUser(cmp.Or(pageOf(err), url)), explain.Detail(err)
}

// pageOf returns the URL of the page of an error of the protocol; "" for other errors.
func pageOf(err error) string {
	var link *datareplication.LinkError
	var loop *datareplication.LoopError
	var stamp *datareplication.StampError
	var malformed *datareplication.MalformedError
	var reach *datareplication.ReachError
	var cut *datareplication.CutShortError
	var limit *datareplication.BudgetError
	var none *datareplication.NotFoundError
	switch {
	case errors.As(err, &none):
		return none.URL
	case errors.As(err, &link):
		return link.URL
	case errors.As(err, &loop):
		return loop.URL
	case errors.As(err, &stamp):
		return stamp.URL
	case errors.As(err, &malformed):
		return malformed.URL
	case errors.As(err, &reach):
		return reach.URL
	case errors.As(err, &cut):
		return cut.URL
	case errors.As(err, &limit):
		return limit.URL
	}
	return ""
}

// leastRequests is the number of requests that bring a harvest forward: for the newest page, for
// the page where the last one ended, and for the next.
const leastRequests = 3

// ReplicationAdvice is the advice for an error of the protocol; "" for other errors.
func ReplicationAdvice(err error) string {
	var limit *datareplication.BudgetError
	var page *datareplication.PageError
	switch {
	case errors.As(err, &page):
		return pageAdvice(page)
	case errors.As(err, new(*datareplication.ReachError)):
		return "begin again without the state, preferably with --snapshot"
	case errors.As(err, new(*datareplication.NotFoundError)):
		return "remove content_id from the state: then the harvest continues by time"
	case errors.As(err, new(*datareplication.CutShortError)):
		return "harvest again, to continue from there"
	case errors.As(err, &limit) && !isCutOff(limit):
		return "raise --max-entity"
	case errors.As(err, &limit) && limit.Max < leastRequests:
		return fmt.Sprintf("raise --max-requests: a harvest that continues needs %d requests at least", leastRequests)
	case isCutOff(err):
		return continued + "--max-requests"
	case errors.Is(err, datareplication.ErrNoID), errors.Is(err, datareplication.ErrRepeatedID), errors.Is(err, datareplication.ErrOperation):
		return "tell the server's operator, or use --lenient to accept it"
	case breaksRules(err):
		return "tell the server's operator"
	}
	return ""
}

// pageAdvice is the advice for a page that cannot be retrieved.
func pageAdvice(page *datareplication.PageError) string {
	status, ok := errors.AsType[*feedhistory.StatusError](page.Err)
	missing := ok && (status.Status == http.StatusNotFound || status.Status == http.StatusGone)
	switch {
	case missing && page.Snapshot && page.From == "":
		return "check the address in --snapshot"
	case missing && page.Snapshot:
		return "discard the entities of this snapshot, and harvest again from the current one"
	case missing:
		return "try again later, or tell the server's operator that a link to it leads nowhere"
	}
	return explain.Remedy(page.Err)
}

// breaksRules reports whether an error means the feed breaks the rules of the protocol.
func breaksRules(err error) bool {
	return errors.As(err, new(*datareplication.LinkError)) || errors.As(err, new(*datareplication.LoopError)) ||
		errors.As(err, new(*datareplication.StampError)) || errors.As(err, new(*datareplication.MalformedError))
}
