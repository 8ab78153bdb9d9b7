// Package protocols harvests collections by the sibling protocols of RFC 5005, and produces
// them: the work of the verbs harvest and produce, for each protocol in a file of its own.
package protocols

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// A Source is a collection to harvest, and how.
type Source struct {
	URL         string         `arg:"" name:"URL" help:"The collection's address."`
	Protocol    string         `required:"" enum:"atom-pmh,datareplication,modified-range" placeholder:"PROTOCOL" help:"The protocol: atom-pmh, datareplication or modified-range."`
	State       string         `aliases:"mark,cursor" placeholder:"FILE" help:"File that records where a harvest ended: begin where the last one ended, and record where this one ends; also --mark."`
	Accept      []string       `of:"atom-pmh" sep:"none" placeholder:"TYPE" help:"With atom-pmh: media type in which to request records (repeatable; the preferred one first)."`
	Snapshot    string         `of:"datareplication" placeholder:"URL" help:"With datareplication: address of the index of a snapshot to begin with."`
	MaxEntity   terminal.Size  `least:"1" default:"64MiB" placeholder:"SIZE" help:"With datareplication: maximum size of an entity (default: ${default})."`
	Lenient     bool           `of:"datareplication" help:"With datareplication: accept entities without a Content-ID, with the Content-ID of another entity, or with an unknown operation."`
	Dialect     string         `of:"modified-range" default:"auto" enum:"auto,modified-range,range,gdata" placeholder:"DIALECT" help:"With modified-range: modified-range, range, gdata, or auto (the default), which is the first that the server understands."`
	Overlap     *time.Duration `of:"modified-range,atom-pmh" placeholder:"TIME" help:"With modified-range and atom-pmh: how far the next harvest reaches back (default: 1m, with atom-pmh 0s)."`
	Historical  bool           `of:"atom-pmh" help:"With atom-pmh: also print the entries of records' earlier states, as far as the producer keeps them. A mirror has them anyway."`
	WholeChain  bool           `of:"atom-pmh" help:"With atom-pmh: read the whole chain, however little has changed, to find changes that were published late in old archives."`
	Fetch       bool           `of:"atom-pmh" help:"With atom-pmh: also request and print the records themselves. The state lists the records that could not be fetched, for the next harvest."`
	DB          string         `name:"db" placeholder:"FILE|URL" help:"Harvest into a mirror: a file, or the postgres:// URL of a database."`
	Key         string         `of:"datareplication" placeholder:"FIELD" help:"With datareplication and --db: header field of an entity that names its resource. Without this flag, the mirror has an entry for each entity, as a log does."`
	MaxRequests int            `least:"1" default:"10000" placeholder:"N" help:"Make at most N requests (default: ${default}). Where a limit ends a harvest, the next one continues, except with atom-pmh and without --db."`
	MaxBytes    terminal.Size  `least:"1" default:"1GiB" placeholder:"SIZE" help:"With atom-pmh and modified-range: read at most SIZE, decompressed (default: ${default})."`
	MaxItems    int            `least:"1" default:"1000000" placeholder:"N" help:"With modified-range: receive at most N items (default: ${default})."`
	Format      string         `default:"jsonl" enum:"jsonl,json" placeholder:"FORMAT" help:"jsonl: one change a line (the default); json: one object with all of them and the verdict."`

	terminal.JSONFlag `set:"record=each change, which is the default; with --db, the result for the collection"`

	database.Quotas

	command.Login

	command.NetworkFlags
}

// These are the protocols, as the flag --protocol names them.
const (
	AtomPMH         = "atom-pmh"
	DataReplication = "datareplication"
	ModifiedRange   = "modified-range"
)

// LogIn takes the credentials for the collection from the flags, the environment and the
// files the flags name.
func (c *Source) LogIn() error {
	fields, err := c.HeaderFor(c.URL)
	if len(fields) > 0 {
		c.Fields = fields
	}
	return err
}

// A run is one harvest, printed: a line for each change as it comes or, with --format json, all
// of them in one object at the end.
type run struct {
	*Source
	*command.World
	out    *bufio.Writer
	spool  *os.File // the lines of the object: its verdict comes first, but is known only at the end
	noted  any      // the state in the file
	failed error    // why the state could not be recorded
	begun  bool     // something has come
	gaps   []*feedhistory.Gap
}

// A collection is a harvest by one of the protocols.
type collection interface {
	// changes prints the changes. A harvest that can continue in the middle notes its state on
	// the way.
	changes() error
	// state returns where the next harvest begins, and whether nothing is missing; a nil state
	// is not recorded.
	state() (state any, whole bool)
	// object returns the members of an object for this protocol; the lines go in the empty one.
	object() (o object, lines string)
	// report returns the counts and the scope of the changes; the last text precedes the gaps.
	report() []string
}

// An object is a whole harvest in JSON. The protocols share most of its members.
type object struct {
	URL       string                `json:"url"`
	Protocol  string                `json:"protocol"`
	Dialect   string                `json:"dialect,omitempty"`
	Documents *int                  `json:"documents,omitempty"`
	Requests  *int                  `json:"requests,omitempty"`
	Since     string                `json:"since,omitempty"` // where the next harvest by modified-range begins
	Whole     bool                  `json:"whole"`
	All       *bool                 `json:"all,omitempty"`    // there are no other records
	Cursor    *datareplication.Mark `json:"cursor,omitempty"` // where the next harvest by datareplication begins
	Changes   []Change              `json:"changes,omitzero"`
	Entities  []Entity              `json:"entities,omitzero"`
	Entries   []*publish.Line       `json:"entries,omitzero"`
	Deleted   []show.Tombstone      `json:"deleted,omitzero"`
	Pending   int                   `json:"pending,omitempty"` // records still to be fetched
	Gaps      []show.Gap            `json:"gaps"`
}

// Harvest harvests, prints the changes, and records the state.
func (c *Source) Harvest(w *command.World) (err error) {
	spareMemory()
	r := &run{Source: c, World: w, out: bufio.NewWriterSize(w.Stdout, 64<<10)}
	defer func() {
		if r.spool != nil {
			err = errors.Join(err, closeSpool(r.spool))
		}
	}()
	var all collection
	switch c.Protocol {
	case AtomPMH:
		all, err = r.records()
	case DataReplication:
		all, err = r.entities()
	default:
		all, err = r.ranges()
	}
	if err != nil {
		return err
	}
	return r.print(all)
}

// print prints a harvest and reports it. After an interrupt, there is a gap.
func (r *run) print(all collection) error {
	if err := errors.Join(all.changes(), r.out.Flush()); err != nil {
		return err
	}
	state, whole := all.state()
	o, lines := all.object()
	o.URL, o.Protocol, o.Whole, o.Gaps = r.URL, r.Protocol, whole, show.Each(r.gaps, show.NewGap)
	if err := r.object(o, lines); err != nil {
		return err
	}
	if state != nil {
		if err := r.note(state); err != nil {
			return err
		}
	}
	r.say(all.report()...)
	r.showGaps(r.Stderr, r.gaps)
	if !whole || r.Fetch && o.Pending > 0 {
		return terminal.StatusError(terminal.ExitPartial)
	}
	return nil
}

// miss notes an error as a gap. It returns the error if nothing has come before, unless the
// limit on requests caused it: then the next harvest continues.
func (r *run) miss(err error) error {
	gap, isGap := errors.AsType[*feedhistory.Gap](err)
	e, _ := errors.AsType[*harvest.Error](err)
	e = cmp.Or(e, new(harvest.Error))
	switch {
	case r.failed != nil:
		return r.failed
	case !isGap && !r.begun && e.Limit != "requests":
		return r.failure(err)
	case !isGap:
		gap = harvest.NewGap(cmp.Or(e.URL, r.URL), err)
	}
	r.begun, r.gaps = true, append(r.gaps, gap)
	return nil
}

// each prints the changes of a sequence, and notes the errors.
func each[T any](r *run, all iter.Seq2[T, error], print func(T) error) error {
	for v, err := range all {
		if err == nil {
			err = print(v)
		} else {
			err = r.miss(err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// createSpool creates a temporary file without a name where the system can, so it vanishes with
// the process, however that ends.
func createSpool() (*os.File, error) {
	f, err := os.CreateTemp("", "feedhistory")
	if err == nil {
		_ = os.Remove(f.Name()) // where that fails, closeSpool removes it
	}
	return f, err
}

func closeSpool(f *os.File) error {
	err := f.Close()
	if failed := os.Remove(f.Name()); !errors.Is(failed, fs.ErrNotExist) {
		err = errors.Join(err, failed)
	}
	return err
}

// inOne reports whether to print the whole harvest as one object.
func (c *Source) inOne() bool { return c.Format == "json" }

// line prints a change.
func (r *run) line(change any) (err error) {
	if r.begun = true; !r.inOne() {
		return terminal.WriteJSON(r.out, change)
	}
	comma := ","
	if r.spool == nil {
		if r.spool, err = createSpool(); err != nil {
			return err
		}
		r.out.Reset(r.spool)
		comma = ""
	}
	var text bytes.Buffer
	if err := terminal.WriteJSON(&text, change); err != nil {
		return err
	}
	_, _ = r.out.WriteString(comma) // as below, the error comes again
	_, err = r.out.WriteString(strings.TrimSuffix(text.String(), "\n"))
	return err
}

// object prints the harvest as one object, in whose empty member the lines go.
func (r *run) object(o object, member string) error {
	if !r.inOne() {
		return nil
	}
	var text bytes.Buffer
	if err := terminal.WriteJSON(&text, o); err != nil {
		return err
	}
	if r.spool == nil {
		_, err := r.Stdout.Write(text.Bytes())
		return err
	}
	if _, err := r.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	before, after, _ := strings.Cut(text.String(), `"`+member+`":[]`)
	_, err := io.Copy(r.Stdout, io.MultiReader(strings.NewReader(before+`"`+member+`":[`), r.spool, strings.NewReader("]"+after)))
	return err
}

// note records a state, if it is another than in the file, after everything before it has
// been printed.
func (r *run) note(state any) error {
	if r.failed = r.out.Flush(); r.failed == nil && state != r.noted {
		r.noted, r.failed = state, r.writeState(state)
	}
	return r.failed
}

// say reports the harvest, a paragraph for each text that is not empty.
func (r *run) say(texts ...string) {
	p := terminal.NewPage(r.Asides())
	for _, text := range texts {
		if text != "" {
			p.Para("", "", text)
		}
	}
}

// collectionKey names the collection of a state, because a state means nothing for
// another collection. The state of each protocol embeds it.
type collectionKey struct {
	URL      string `json:"url"`
	Protocol string `json:"protocol"`
}

func (c *Source) key() collectionKey { return collectionKey{c.URL, c.Protocol} }

// readState reads the state from which to begin. If there is no file yet, it leaves state
// unchanged.
func (c *Source) readState(state any) error {
	if c.State == "" {
		return nil
	}
	data, err := os.ReadFile(c.State)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--state: %w", err)
	}
	var of collectionKey
	if err := json.Unmarshal(data, &of); err != nil || of.URL == "" {
		return terminal.UsageError("--state: " + c.State + " is not the state of a harvest")
	}
	if of != c.key() {
		return terminal.UsageError("--state: " + c.State + " is the state of another harvest: " + of.Protocol + ", " + terminal.WithoutUser(of.URL))
	}
	if err := json.Unmarshal(data, state); err != nil {
		return terminal.UsageError("--state: " + c.State + ": " + err.Error())
	}
	return nil
}

// writeState records the state from which the next harvest begins. It is atomic: after a
// crash, the file has the old state or the new one.
func (c *Source) writeState(state any) error {
	if c.State == "" {
		return nil
	}
	data, err := json.Marshal(state)
	if err == nil {
		dir, name := filepath.Split(c.State)
		err = publish.Dir{Path: dir}.Put(context.Background(), name, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}

// showGaps shows the gaps of a harvest, with advice.
func (c *Source) showGaps(w io.Writer, gaps []*feedhistory.Gap) {
	p := terminal.NewPage(w)
	for _, g := range gaps {
		name, what := detail(g.URL, g.Err)
		todo := HarvestAdvice(g)
		if c.Protocol == AtomPMH && c.DB == "" && g.Reason == feedhistory.ReasonBudget { // the changes are printed oldest first, so after the last document
			flag, _ := limitFlag(g.Err)
			todo = "raise " + flag + "; or harvest with --db, which continues from there"
		}
		p.Para("  - ", "    ", name)
		p.Para("    ", "    ", string(g.Reason)+": "+what)
		p.Para("    ", "    ", "what to do: "+todo)
	}
}

// detail returns the URL an error is about, which is the given one if it names none, and the
// fault.
func detail(url string, err error) (name, what string) {
	from := ""
	if e, ok := errors.AsType[*harvest.Error](err); ok {
		if url = cmp.Or(e.URL, url); e.From != "" {
			from = ", linked from " + terminal.WithoutUser(e.From)
		}
		if e.Text == "" && e.Err != nil {
			err = e.Err
		}
	}
	return terminal.WithoutUser(url), show.Detail(err) + from
}

// failure explains in one line why there is no harvest, with advice.
func (c *Source) failure(err error) error {
	switch e, ok := errors.AsType[*harvest.Error](err); {
	case !ok:
		return show.Failure(c.URL, err)
	case e.Code == harvest.ErrAccept:
		return terminal.UsageError("--" + err.Error())
	}
	name, what := detail(c.URL, err)
	if todo := cmp.Or(protocolAdvice(err), show.Remedy(err)); todo != "" {
		what += "; " + todo
	}
	return errors.New(name + ": " + what)
}

// HarvestAdvice is the advice for a gap.
func HarvestAdvice(g *feedhistory.Gap) string {
	todo := protocolAdvice(g.Err)
	if todo == "" && g.Reason == feedhistory.ReasonBudget {
		todo = limitAdvice(g.Err)
	}
	return cmp.Or(todo, show.Advice(g))
}

// advice is what to do about the errors of the protocols, where their Code says it all.
var advice = map[harvest.Code]string{
	harvest.ErrReach:     "begin again without the state, preferably with --snapshot",
	harvest.ErrMark:      "remove content_id from the state: then the harvest continues by time",
	harvest.ErrCutShort:  "harvest again, to continue from there",
	harvest.ErrLink:      tellOperator,
	harvest.ErrLoop:      tellOperator,
	harvest.ErrMalformed: tellOperator,
	harvest.ErrStuck:     tellOperator + " that it sends the same items for every end of the range",
	harvest.ErrLoss:      tellOperator + " that it separates items modified at the same time",
	harvest.ErrIgnored:   "use fetch, or tell the server's operator; try --dialect if you know which one it understands",
}

const tellOperator = "tell the server's operator"

// protocolAdvice is the advice for an error of a protocol; "" for other errors.
func protocolAdvice(err error) string {
	e, ok := errors.AsType[*harvest.Error](err)
	switch {
	case !ok:
		return ""
	case errors.Is(e, datareplication.ErrNoID), errors.Is(e, datareplication.ErrRepeatedID), errors.Is(e, datareplication.ErrOperation):
		return "tell the server's operator, or use --lenient to accept it"
	case e.Code == harvest.ErrPage, e.Code == harvest.ErrSnapshot:
		return pageAdvice(e)
	case e.Code == harvest.ErrBudget:
		return limitAdvice(e)
	case e.Code == harvest.ErrStamp && strings.HasPrefix(e.Clause, "modified-range#"):
		return tellOperator + " that an item has no time of modification"
	case e.Code == harvest.ErrStamp:
		return tellOperator
	}
	return advice[e.Code]
}

// pageAdvice is the advice for a page that cannot be retrieved.
func pageAdvice(e *harvest.Error) string {
	missing := errors.Is(e.Err, fs.ErrNotExist)
	switch {
	case missing && e.Code == harvest.ErrPage:
		return "try again later, or tell the server's operator that a link to it leads nowhere"
	case missing && e.From == "":
		return "check the address in --snapshot"
	case missing:
		return "discard the entities of this snapshot, and harvest again from the current one"
	}
	return show.Remedy(e.Err)
}

// limitAdvice is the advice for a limit.
func limitAdvice(err error) string {
	switch flag, least := limitFlag(err); {
	case least > 0:
		return fmt.Sprintf("raise %s: some servers need at least %d", flag, least)
	case flag == "--max-entity":
		return "raise " + flag
	default:
		return "harvest again, to continue from there, or raise " + flag
	}
}

// leastRequests is the number of requests any harvest needs to get on. One by
// datareplication needs the newest page, the page where the last one ended, and the next. One by
// modified-range tries the dialects, and asks again to confirm an answer, unless the server names
// the ranges of its answers.
var leastRequests = map[string]int{DataReplication: 3, ModifiedRange: 8}

// limitText is the text of an error about a limit, because a gap from a mirror has nothing else.
var limitText = regexp.MustCompile(`the limit on (\w+) \((\d+)\) is exceeded \(([\w-]+)#`)

// limitFlag names the flag of the limit behind a gap; if it is not known, both. With a smaller
// limit than least, no harvest gets on; zero means any does.
func limitFlag(err error) (flag string, least int) {
	text := fmt.Sprint(err)
	if found := limitText.FindStringSubmatch(text); found != nil {
		most, _ := strconv.Atoi(found[2]) // of digits
		if least = leastRequests[found[3]]; found[1] != "requests" || most >= least {
			least = 0
		}
		return "--max-" + found[1], least
	}
	_, spent, _ := strings.Cut(text, "spent: ") // of a walk
	var documents, mostDocuments, bytes, mostBytes int64
	switch _, err := fmt.Sscanf(spent, "%d of %d documents, %d of %d bytes", &documents, &mostDocuments, &bytes, &mostBytes); {
	case err != nil:
	case documents >= mostDocuments:
		return "--max-requests", 0
	case bytes >= mostBytes:
		return "--max-bytes", 0
	}
	return "--max-requests or --max-bytes", 0
}

// Keep harvests into a mirror, which records how far the harvest has come.
func (c *Source) Keep(w *command.World) (err error) {
	spareMemory()
	db := &database.Location{DB: c.DB}
	store, err := db.Create(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.CloseAfter(err)) }()
	oneCache(store)
	if c.Fields != nil { // so the history server does not show the collection to others
		keys, err := db.Keyring()
		if err != nil {
			return err
		}
		if err := keys.Set(map[string]http.Header{c.URL: {}}); err != nil {
			return err
		}
	}
	m := &mirror.Mirror{Store: store, Quota: c.Limits()}
	var changes *mirror.Report
	switch c.Protocol {
	case AtomPMH:
		changes, err = c.recordHarvester(w).Keep(w.Ctx, m)
	case DataReplication:
		changes, err = c.entityHarvester(w).Keep(w.Ctx, m, c.resources())
	default:
		changes, err = c.rangeHarvester(w).Keep(w.Ctx, m)
	}
	if err == nil {
		err = c.unpolled(w.Ctx, store)
	}
	if err == nil {
		err = store.Index(w.Ctx)
	}
	if err != nil {
		return c.keepFailure(db, err)
	}
	return c.kept(w, changes)
}

// oneCache bounds the memory of a store used by one goroutine: each connection has a cache.
func oneCache(store *database.Store) {
	store.DB.SetMaxOpenConns(1)
	_, _ = store.DB.Exec("PRAGMA cache_size=-4000")
}

// unpolled marks the feed as one sync does not poll.
func (c *Source) unpolled(ctx context.Context, store mirror.Store) error {
	f, err := store.Feed(ctx, c.URL)
	if err != nil || show.IsHarvested(f) {
		return err
	}
	f.Next = show.Never
	return store.Commit(ctx, &mirror.Commit{Feed: f})
}

// keepFailure says why the harvest failed: because of a request or a document, or of the store.
func (c *Source) keepFailure(db *database.Location, err error) error {
	if errors.As(err, new(*harvest.Error)) || errors.As(err, new(*feedhistory.FetchError)) ||
		errors.As(err, new(*feedhistory.ParseError)) || show.Remedy(err) != "" {
		return c.failure(err)
	}
	return db.Failure(err)
}

// resources returns how to find out which resource an entity is about.
func (c *Source) resources() (of datareplication.Resources) {
	if c.Key == "" {
		return of
	}
	of.Key = func(e *datareplication.Entity) (string, error) {
		if key := strings.TrimSpace(e.Header.Get(c.Key)); key != "" {
			return key, nil
		}
		return "", errors.New("it has no header field " + c.Key + "; try another --key")
	}
	return of
}

// kept reports the outcome of the harvest: with --json on standard output, and always
// as text on standard error.
func (c *Source) kept(w *command.World, changes *mirror.Report) error {
	o := database.Outcome{URL: c.URL, Report: changes, Verb: "harvest"}
	changes.Feed.Next = time.Time{} // there is no next poll
	if c.JSON {
		if err := terminal.WriteJSON(w.Stdout, o.JSON(changes)); err != nil {
			return err
		}
	}
	terminal.NewPage(w.Asides()).Line(terminal.Clean(o.Text(changes)))
	c.showGaps(w.Stderr, changes.Feed.Ledger.Gaps())
	if status := o.Status(); status != terminal.ExitOK {
		return terminal.StatusError(status)
	}
	return nil
}

// spareMemory makes the garbage collector run twice as often, unless the user has set GOGC:
// a harvest of millions of records takes long, and must leave memory to other programs.
func spareMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
