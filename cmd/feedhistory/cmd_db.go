package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"runtime"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A dbCommand is the verb db.
type dbCommand struct {
	Check  dbCheckCommand  `cmd:"" help:"Look for damage in the database, and repair it."`
	Info   dbInfoCommand   `cmd:"" help:"Count the feeds, documents and entries in the database."`
	Backup dbBackupCommand `cmd:"" help:"Copy the database while it is in use."`
	Vacuum dbVacuumCommand `cmd:"" help:"Rewrite the database without unused space."`
}

// A dbCheckCommand is the verb db check.
type dbCheckCommand struct {
	database.Location
	Repair bool `help:"Put what is sound into a new file in place of the damaged one, which is kept, and fetch the rest again."`

	terminal.JSONFlag `set:"record=each damage"`

	command.NetworkFlags
	command.Login
}

// Help returns the text of --help before the flags.
func (c *dbCheckCommand) Help() string {
	return "db check reads every row and compares it with its checksum, every entry with the search index, and the tables with each other. " +
		"If another process writes meanwhile, check again before you believe a damage.\n\n" +
		"With --repair, everything that is sound in a damaged file goes into a new one, which takes its name; the damaged one is kept beside it, as FILE.damaged. " +
		"The feeds of which something is missing are then read from their beginning. Entries that they no longer have are named, and are in the damaged file only. " +
		"No other process may use the file meanwhile. PostgreSQL is repaired by its own tools.\n\n" +
		"The exit status is 0 if nothing is damaged or missing, otherwise 3, or 1 if the check failed."
}

// Run checks the database.
func (c *dbCheckCommand) Run(w *command.World) error {
	if c.Repair && c.IsPostgres() {
		return terminal.UsageError("--repair is for files; pg_dump copies what PostgreSQL can read")
	}
	found, err := c.check(w)
	switch {
	case err != nil:
		return c.Failure(err)
	case c.Repair && len(found.Damages) > 0:
		w.Tell(damages(found) + " found; repairing")
		return c.Failure(c.repair(w, found))
	}
	return c.report(w, found)
}

func damages(found *sqlstore.Inspection) string {
	return terminal.Count(len(found.Damages)+int(found.More), "damage", "damages")
}

// check opens the database and checks it.
func (c *dbCheckCommand) check(w *command.World) (*sqlstore.Inspection, error) {
	store, err := c.Read(w)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return store.Check(w.Ctx)
}

// repair makes a new file of the damaged one, polls the feeds with losses, and names the
// entries still missing.
func (c *dbCheckCommand) repair(w *command.World, found *sqlstore.Inspection) error {
	feeds, err := c.Location.Repair(w)
	if err != nil {
		return err
	}
	w.Tell("the damaged file is kept as " + c.DB + ".damaged")
	if len(feeds) > 0 {
		sync := syncCommand{
			Location: c.Location, URLs: feeds, Polling: database.Polling{Interval: time.Hour, Parallel: 8},
			NetworkFlags: c.NetworkFlags, Login: c.Login,
		}
		aside := *w
		aside.Stdout = w.Asides()
		err = sync.Run(&aside)
	}
	if _, said := errors.AsType[terminal.StatusError](err); err != nil && !said { // what is missing is reported below
		return err
	}
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer store.Close()
	var missing []sqlstore.Damage
	for _, d := range found.Damages {
		if d.Table != "entries" {
			continue
		}
		found, err := store.Records(w.Ctx, d.Feed, []string{d.ID})
		if err != nil {
			return err
		}
		if found[d.ID] == nil {
			missing = append(missing, d)
		}
	}
	now, err := store.Check(w.Ctx)
	if err != nil {
		return err
	}
	now.Damages = append(missing, now.Damages...)
	if err := c.print(w, now); err != nil || len(now.Damages) == 0 {
		return err
	}
	w.Tell("the feeds no longer have this; what was readable of it is in " + c.DB + ".damaged")
	return terminal.StatusError(terminal.ExitPartial)
}

// report prints the damage found.
func (c *dbCheckCommand) report(w *command.World, found *sqlstore.Inspection) error {
	if err := c.print(w, found); err != nil || len(found.Damages) == 0 {
		return err
	}
	how := "; feedhistory db check --repair saves what is sound, and fetches the rest again"
	if c.IsPostgres() {
		how = "; restore the rows from a backup, or export what is sound and import it into a new database"
	}
	w.Tell(damages(found) + how)
	return terminal.StatusError(terminal.ExitPartial)
}

// print prints the damages, and unless they are for programs, the counts.
func (c *dbCheckCommand) print(w *command.World, found *sqlstore.Inspection) error {
	p := terminal.NewPage(w.Stdout)
	for _, d := range found.Damages {
		if c.JSON {
			p.JSON(d)
		} else {
			p.Para("", "  ", d.String())
		}
	}
	if !c.JSON {
		counts(p, found)
		if len(found.Damages) == 0 {
			p.Line("nothing is damaged")
		}
	}
	return p.Err
}

// counts prints the contents of a database, in numbers.
func counts(p *terminal.Page, found *sqlstore.Inspection) {
	p.Field("feeds", fmt.Sprint(found.Feeds))
	p.Field("entries", fmt.Sprintf("%d, %d earlier versions", found.Entries, found.Versions))
	p.Field("documents", fmt.Sprintf("%d, %d still to be read", found.Documents, found.Pending))
	p.Field("to index", fmt.Sprint(found.Unindexed))
	if found.Unsealed > 0 {
		p.Field("unsealed", fmt.Sprintf("%d rows that an earlier feedhistory wrote have no checksum", found.Unsealed))
	}
}

// A dbInfoCommand is the verb db info.
type dbInfoCommand struct {
	database.Location

	terminal.JSONFlag `set:"record=the information"`
}

// An information is the line of db info --json.
type information struct {
	Database string `json:"database"`
	sqlstore.Info
}

// Run shows the contents of the database.
func (c *dbInfoCommand) Run(w *command.World) error {
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer store.Close()
	info, err := store.Describe(w.Ctx)
	if err != nil {
		return c.Failure(err)
	}
	if c.JSON {
		return terminal.WriteJSON(w.Stdout, information{c.Place(), *info})
	}
	p := terminal.NewPage(w.Stdout)
	p.Field("database", c.Place())
	p.Field("schema", fmt.Sprint("version ", info.Schema))
	p.Field("size", fmt.Sprintf("%d bytes, %d of them unused", info.Bytes, info.Unused))
	p.Field("feeds", fmt.Sprint(info.Feeds))
	entries := fmt.Sprintf("%d, %d earlier versions", info.Entries, info.Versions)
	if info.Erased > 0 {
		entries += fmt.Sprintf("; %d erased", info.Erased)
	}
	p.Field("entries", entries)
	p.Field("documents", fmt.Sprint(info.Documents))
	p.Field("to index", fmt.Sprint(info.Unindexed))
	return p.Err
}

// A dbBackupCommand is the verb db backup.
type dbBackupCommand struct {
	database.Location
	File string `arg:"" sep:"none" name:"FILE" help:"The file to write, which must not exist."`
}

// Help returns the text of --help before the flags.
func (c *dbBackupCommand) Help() string {
	return "The copy has everything committed before the command began, even if others write meanwhile. " +
		"Credentials of private feeds are not in it; they are in the file beside the database whose name ends in .db.credentials, such as feeds.db.credentials: copy that, too. Use pg_dump for PostgreSQL."
}

// Run copies the database.
func (c *dbBackupCommand) Run(w *command.World) error {
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer store.Close()
	if c.IsPostgres() {
		return terminal.UsageError("db backup is for files: use pg_dump --schema feedhistory for PostgreSQL")
	}
	if err := backup(w.Ctx, store, c.File); err != nil {
		return c.CopyFailure(err, c.File)
	}
	w.Tell("copied to " + c.File)
	return nil
}

// backup copies the database to a new file, which only its owner can read. The file has its
// name only once it is complete.
func backup(ctx context.Context, store *database.Store, file string) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = errors.New(file + ": the file exists already; give another name, or remove it first")
		}
		return err
	}
	f, err := command.Unfinished(file, 0o600)
	if err != nil {
		return err
	}
	part := f.Name()
	if err = store.Backup(ctx, part); err == nil && runtime.GOOS == "windows" { // where an open file keeps its name
		_ = f.Close()
	}
	if err == nil {
		err = place(part, file)
	}
	if err != nil {
		_ = os.Remove(part)
	}
	_ = f.Close()
	if err != nil {
		_ = os.Remove(part) // on Windows
	}
	return err
}

// place gives a file another name, which it does not take from another file: by a link or, on a
// file system without links, such as a USB stick's, if there is none.
func place(file, name string) error {
	err := os.Link(file, name)
	if err == nil {
		return os.Remove(file)
	}
	if _, missing := os.Lstat(name); !errors.Is(missing, fs.ErrNotExist) {
		return err
	}
	return os.Rename(file, name)
}

// A dbVacuumCommand is the verb db vacuum.
type dbVacuumCommand struct{ database.Location }

// Help returns the text of --help before the flags.
func (c *dbVacuumCommand) Help() string {
	return "It needs as much space again as the database takes, and nobody else can write meanwhile. The file keeps nothing that was removed."
}

// Run rewrites the database.
func (c *dbVacuumCommand) Run(w *command.World) error {
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	defer store.Close()
	before, err := store.Describe(w.Ctx)
	if err == nil {
		err = store.Scrub(w.Ctx)
	}
	if err != nil {
		return c.Failure(err)
	}
	after, err := store.Describe(w.Ctx)
	if err != nil {
		return c.Failure(err)
	}
	w.Tell(fmt.Sprintf("%d bytes before, %d now", before.Bytes, after.Bytes))
	return nil
}

// readableEntries is a store without the entries whose content is damaged. It records
// them, so a command can show the rest and name them.
type readableEntries struct {
	mirror.Store
	damaged map[string]error // why an entry cannot be read, by feed and id
	names   []string         // the keys of damaged, in the order in which they were found
}

// Entries implements mirror.Store.
func (s *readableEntries) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	return func(yield func(*mirror.Record, error) bool) {
		for r, err := range s.Store.Entries(ctx, q) {
			if err == nil && s.isDamaged(r) {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func (s *readableEntries) isDamaged(r *mirror.Record) bool {
	if r.Content.Format == "" {
		return false
	}
	_, err := r.Entry()
	if err != nil {
		s.note(r, err)
	}
	return err != nil
}

// note records a damaged entry.
func (s *readableEntries) note(r *mirror.Record, err error) {
	name := show.Address(r.Feed) + ": the entry " + r.ID
	if s.damaged == nil {
		s.damaged = map[string]error{}
	}
	if s.damaged[name] == nil {
		s.names = append(s.names, name)
	}
	s.damaged[name] = err
}

// declare reads the entries of a feed, and returns its state with a gap for each damaged
// one: without them, the feed is not whole.
func (s *readableEntries) declare(ctx context.Context, f *mirror.Feed) (*mirror.Feed, error) {
	before := len(s.names)
	for _, err := range s.Entries(ctx, mirror.Query{Feed: f.URL}) {
		if err != nil {
			return nil, err
		}
	}
	if len(s.names) == before {
		return f, nil
	}
	state := *f
	state.Verdict = feedhistory.VerdictPartial
	for _, name := range s.names[before:] {
		state.Ledger.Add(&feedhistory.Gap{
			URL: f.URL, From: f.URL, Reason: feedhistory.ReasonMalformed, Found: f.Changed,
			Err: fmt.Errorf("%s cannot be read in the database: %v", name, s.damaged[name]),
		})
	}
	return &state, nil
}

// mostNamed is the maximum number of damaged entries to name.
const mostNamed = 20

// say names the damaged entries, and returns the exit status for them; nil if there are
// none.
func (s *readableEntries) say(w *command.World) error {
	for i, name := range s.names {
		if i == mostNamed {
			w.Say(fmt.Sprintf("and %d more", len(s.names)-i))
			break
		}
		w.Say(fmt.Sprintf("%s cannot be read, and is left out: %v", name, s.damaged[name]))
	}
	if len(s.names) > 0 {
		return terminal.StatusError(terminal.ExitPartial)
	}
	return nil
}
