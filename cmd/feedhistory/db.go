package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/syncing"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
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
	Heal bool `help:"Fetch damaged feeds again, and rebuild the search index if it differs."`

	terminal.JSONFlag `set:"record=each damage"`

	network.Flags
	logins.Login
}

// Help returns the text of --help before the flags.
func (c *dbCheckCommand) Help() string {
	return "db check reads every row and compares it with its checksum, every entry with the search index, and the tables with each other. " +
		"With --heal, damaged entries are fetched again; those that the feeds no longer have are named, and stay as they are. " +
		"If another process writes meanwhile, check again before you believe a damage.\n\n" +
		"The exit status is 0 if nothing is damaged, otherwise 3, or 1 if the check failed."
}

// Validate refuses incompatible credentials.
func (c *dbCheckCommand) Validate() error { return c.Login.Check() }

// Run checks the database.
func (c *dbCheckCommand) Run(w *command.World) error {
	found, err := c.check(w)
	if err == nil && c.Heal && (len(found.Damages) > 0 || found.Unsealed > 0) {
		w.Tell(terminal.Count(len(found.Damages)+int(found.More), "damage", "damages") + " found; healing")
		if err = c.heal(w, found); err == nil {
			found, err = c.check(w)
		}
	}
	if err != nil {
		return c.Failure(err)
	}
	return c.report(w, found)
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

// heal repairs the damage found, and polls the feeds with losses.
func (c *dbCheckCommand) heal(w *command.World, found *sqlstore.Inspection) error {
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	feeds, err := store.Heal(w.Ctx, found)
	if err == nil && found.Index() {
		err = store.Index(w.Ctx)
	}
	if err = errors.Join(err, store.Close()); err != nil || len(feeds) == 0 {
		return err
	}
	sync := syncCommand{
		Location: c.Location, URLs: feeds, Polling: syncing.Polling{Interval: time.Hour, Parallel: 8},
		Flags: c.Flags, Login: c.Login,
	}
	aside := *w
	aside.Stdout = w.Asides()
	err = sync.Run(&aside)
	if _, said := errors.AsType[exit.StatusError](err); said {
		return nil // the second check reports the losses
	}
	return err
}

// A damage is one line of db check --json.
type damage struct {
	Table   string `json:"table"`
	Feed    string `json:"feed,omitempty"`
	ID      string `json:"id,omitempty"`
	Message string `json:"message"`
}

// report prints the damage found.
func (c *dbCheckCommand) report(w *command.World, found *sqlstore.Inspection) error {
	p := terminal.NewPage(w.Stdout)
	for _, d := range found.Damages {
		if !c.JSON {
			p.Para("", "  ", d.String())
		} else if err := terminal.WriteJSON(w.Stdout, damage{d.Table, d.Feed, d.ID, d.What}); err != nil {
			return err
		}
	}
	if !c.JSON {
		counts(p, found)
		if len(found.Damages) == 0 {
			p.Line("nothing is damaged")
		}
	}
	switch {
	case p.Err != nil:
		return p.Err
	case len(found.Damages) > 0 && !c.Heal:
		w.Tell(terminal.Count(len(found.Damages)+int(found.More), "damage", "damages") + "; feedhistory db check --heal fetches again what the feeds still have")
		return exit.StatusError(exit.Partial)
	case len(found.Damages) > 0:
		w.Tell("the feeds no longer have this; feedhistory db backup, export and import make a new database of what can be read")
		return exit.StatusError(exit.Partial)
	}
	return nil
}

// counts prints the contents of a database, in numbers.
func counts(p *terminal.Page, found *sqlstore.Inspection) {
	p.Field("feeds", fmt.Sprint(found.Feeds))
	p.Field("entries", fmt.Sprintf("%d, %d earlier versions", found.Entries, found.Versions))
	p.Field("documents", fmt.Sprintf("%d, %d still to be read", found.Documents, found.Pending))
	p.Field("to index", fmt.Sprint(found.Unindexed))
	if found.Unsealed > 0 {
		p.Field("unsealed", fmt.Sprintf("%d rows of an earlier version have no checksum; --heal adds it", found.Unsealed))
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
		"Credentials of private feeds are not in it; they are in the file .logins beside the database. Use pg_dump for PostgreSQL."
}

// Run copies the database.
func (c *dbBackupCommand) Run(w *command.World) error {
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer store.Close()
	if c.IsPostgres() {
		return exit.UsageError("db backup is for files: use pg_dump --schema feedhistory for PostgreSQL")
	}
	if err := backup(w.Ctx, store, c.File); err != nil {
		return c.Failure(err)
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
	part := file + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = f.Close()
	if err == nil {
		err = store.Backup(ctx, part)
	}
	if err == nil {
		err = os.Link(part, file) // it does not replace a file made meanwhile
	}
	return errors.Join(err, os.Remove(part))
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
