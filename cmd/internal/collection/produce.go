package collection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/outputs"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/publish"
)

// A Production is a collection to publish for harvests, and how.
type Production struct {
	Protocol   string          `required:"" enum:"atom-pmh,datareplication,modified-range" placeholder:"PROTOCOL" help:"The protocol: atom-pmh, datareplication or modified-range."`
	Out        string          `placeholder:"DIR" help:"Directory in which to publish; produce creates it if necessary. Not with modified-range."`
	Listen     argument.Listen `placeholder:"ADDRESS" help:"Serve the result at this address until interrupted; port 0 means any free port."`
	DB         string          `name:"db" placeholder:"FILE|URL" help:"With atom-pmh and modified-range: keep the collection in a database instead: a file, or a postgres:// URL. --listen serves it while other runs add to it."`
	Base       string          `placeholder:"URL" help:"URL where the result is served (default: the URL of --listen)."`
	Title      string          `help:"With atom-pmh and modified-range: the feed's title."`
	Deletions  string          `default:"entry" enum:"entry,absence" placeholder:"WAY" help:"With atom-pmh: announce deletions by an entry (the default), or by the absence of records from one complete document."`
	Settle     time.Duration   `placeholder:"TIME" help:"With atom-pmh: how long after its stamp a change may become visible."`
	Historical bool            `help:"With atom-pmh: keep the entries of records' earlier states."`
	Size       int             `placeholder:"N" help:"Number of entries in an archive, or of items in an answer (default: 100)."`
	PageSize   argument.Size   `default:"1MB" placeholder:"SIZE" help:"With datareplication: size of a page (default: ${default})."`
	CleanUp    argument.Moment `placeholder:"TIME" help:"With datareplication: then remove the old pages no harvester needs that was up to date at TIME: a time, a date, or how long ago, such as 30d."`
	Snapshot   bool            `help:"With datareplication: the lines are all resources; publish a snapshot of them, from which new harvesters begin."`
}

// Produce publishes the lines in a directory. It returns a handler for serving the result; an
// error with the exit status if something cannot be published yet; and any other error.
func (c *Production) Produce(w *command.World, log *slog.Logger) (http.Handler, error, error) {
	spareMemory()
	if c.Protocol == AtomPMH {
		return c.producePMH(w, log)
	}
	handler, err := c.produceReplication(w, log)
	return handler, nil, err
}

// Pools reports whether the collection is produced from a database.
func (c *Production) Pools() bool {
	return c.DB != "" || c.Protocol == ModifiedRange || c.Protocol == AtomPMH && c.Out == "" && c.Deletions == "entry" && c.Settle == 0
}

// producePMH publishes metadata records.
func (c *Production) producePMH(w *command.World, log *slog.Logger) (handler http.Handler, waiting, err error) {
	p := &atompmh.Producer{
		Output: publish.Dir{Path: c.Out}, Base: c.Base, Settle: c.Settle, Historical: c.Historical, Split: feedhistory.Split{Size: c.Size},
		Pool: func(_ context.Context, since time.Time) iter.Seq2[atompmh.Item, error] {
			return c.linesSince(w.Stdin, since)
		},
	}
	if c.Deletions == "absence" {
		p.Deletions = atompmh.ByAbsence
	}
	if c.Title != "" {
		p.Head = &feedhistory.Document{Title: c.Title}
	}
	err = p.Update(w.Ctx)
	if only := onlyFuture(err); only != "" {
		w.Say(only)
		waiting, err = exit.StatusError(exit.Partial), nil
	}
	if err != nil {
		return nil, nil, err
	}
	w.Tell("the feed: " + p.URL())
	return &publish.Handler{FS: outputs.Root(c.Out), Logger: log}, waiting, nil
}

// linesSince yields the records described by lines, those changed since a time.
func (c *Production) linesSince(in io.Reader, since time.Time) iter.Seq2[atompmh.Item, error] {
	return func(yield func(atompmh.Item, error) bool) {
		n := 0
		for line, err := range schema.Lines[Change](in) {
			if err == nil && line.Kind == historicalKind {
				continue
			}
			var item atompmh.Item
			if err == nil {
				item, err = itemOf(line)
			}
			if n++; err == nil && item.Modified.Before(since) {
				continue
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
		if n == 0 && c.Deletions == "absence" {
			yield(atompmh.Item{}, errors.New("the input has no record: publishing none would delete all"))
		}
	}
}

// onlyFuture says which records have a time in the future; "" if something else is wrong,
// too.
func onlyFuture(err error) string {
	if !errors.Is(err, atompmh.ErrFuture) || errors.Is(err, atompmh.ErrLate) || errors.Is(err, atompmh.ErrSameTime) || errors.Is(err, atompmh.ErrRecord) {
		return ""
	}
	return "not published yet: " + strings.ReplaceAll(err.Error(), "\n", "; ")
}

// itemOf returns the record described by a line in harvest's format.
func itemOf(line Change) (item atompmh.Item, err error) {
	item = atompmh.Item{ID: line.ID, Title: line.Title, Deleted: line.Kind == atompmh.Deleted.String()}
	if line.Kind != "" && line.Kind != atompmh.Record.String() && line.Kind != historicalKind && !item.Deleted {
		return item, fmt.Errorf("the record %q is of the kind %q: neither record nor deleted", line.ID, line.Kind)
	}
	if item.Modified, err = time.Parse(time.RFC3339, line.Time); err != nil {
		return item, fmt.Errorf("the record %q: time is not a time such as 2003-12-13T18:30:02Z: %q", line.ID, line.Time)
	}
	for _, r := range line.Representations {
		item.Representations = append(item.Representations, atompmh.Representation(r))
	}
	return item, nil
}

// A jsonResource is an entity as harvest prints it, with further header fields.
type jsonResource struct {
	Entity
	Header map[string]string `json:"header"`
}

func (j jsonResource) entity() datareplication.Entity {
	e := datareplication.Entity{
		ContentID: j.ID, Operation: datareplication.Operation(strings.ToUpper(j.Operation)), Type: j.Type, Body: j.Base64,
	}
	if j.Base64 == nil {
		e.Body = []byte(j.Body)
	}
	for name, value := range j.Header {
		if e.Header == nil {
			e.Header = textproto.MIMEHeader{}
		}
		e.Header.Set(name, value)
	}
	return e
}

// produceReplication appends entities, or makes a snapshot.
func (c *Production) produceReplication(w *command.World, log *slog.Logger) (http.Handler, error) {
	p := &datareplication.Producer{Output: publish.Dir{Path: c.Out}, PageSize: int64(c.PageSize)}
	var err error
	if c.Snapshot {
		lines := schema.Lines[jsonResource](w.Stdin)
		err = p.Snapshot(w.Ctx, func(yield func(datareplication.Entity, error) bool) {
			for line, err := range lines {
				if !yield(line.entity(), err) {
					return
				}
			}
		})
	} else {
		err = c.append(w, p)
	}
	if err == nil && !c.CleanUp.IsZero() {
		err = p.CleanUp(w.Ctx, c.CleanUp.Time)
	}
	if err != nil {
		return nil, err
	}
	if c.Base != "" {
		w.Tell("the feed: " + c.Base)
	}
	if created, err := p.LastSnapshot(); err == nil && !created.IsZero() && c.Base != "" {
		w.Tell("the snapshot: " + strings.TrimSuffix(c.Base, "/") + "/snapshot")
	}
	return &datareplication.Handler{FS: publish.Dir{Path: c.Out}, Base: c.Base, Logger: log}, nil
}

// The entities are appended in portions of this many, or this many bytes.
const (
	appendEntities = 1000
	appendBytes    = 4 << 20
)

// append appends the entities of the lines. If the newest entity of the feed is among them,
// only those after it are new: an earlier run has appended the others.
func (c *Production) append(w *command.World, p *datareplication.Producer) (err error) {
	if w.FromTerminal() && !c.CleanUp.IsZero() {
		return nil
	}
	last, err := p.Last()
	if err != nil {
		return err
	}
	spool, err := os.CreateTemp("", "feedhistory")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spool.Close(), os.Remove(spool.Name())) }()
	n, first := 0, 0 // the number of lines, and of those appended before
	for line, err := range schema.Lines[jsonResource](io.TeeReader(w.Stdin, spool)) {
		if err != nil {
			return err
		}
		if n++; line.ID != "" && line.ID == last.ContentID {
			first = n
		}
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var portion []datareplication.Entity
	size := 0
	n = 0
	for line, err := range schema.Lines[jsonResource](spool) {
		if err != nil {
			return err
		}
		if n++; n <= first {
			continue
		}
		e := line.entity()
		portion, size = append(portion, e), size+len(e.Body)
		if len(portion) < appendEntities && size < appendBytes {
			continue
		}
		if err := p.Append(w.Ctx, portion...); err != nil {
			return err
		}
		clear(portion)
		portion, size = portion[:0], 0
	}
	return p.Append(w.Ctx, portion...)
}
