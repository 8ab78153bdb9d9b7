package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/kinds"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/syncing"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// An importCommand is the verb import.
type importCommand struct {
	database.Location
	Files   []string `arg:"" optional:"" sep:"none" name:"FILE" help:"Output of export --raw or fetch --raw (default: standard input); with --from, the source, and the feeds to import (default: all)."`
	From    string   `placeholder:"KIND" help:"Import the archive of another program: newsboat, miniflux, freshrss, greader, google-reader, inoreader, feedly, opml, directory or git."`
	Replace bool     `help:"Replace feeds that are already mirrored."`
	DryRun  bool     `help:"With --from, count the entries to be imported, and change nothing."`
	JSON    bool     `name:"json" help:"With --from, print JSON Lines (one object a line): each feed."`

	syncing.Quotas
	network.Flags
	logins.Login
}

// Help returns the text of --help before the flags.
func (c *importCommand) Help() string {
	return "import restores feeds as they were, with earlier versions of entries and everything the mirror knew about them. " +
		"With it, you can move a mirror from one database to another, such as from SQLite to PostgreSQL and back.\n\n" +
		"Import skips a feed that the database already has in the same state. So after an error or an interrupt, " +
		"run the same import again: it continues with the feed it had reached.\n\n" +
		"With --from, import adds entries others have kept: newsboat's cache.db; the SQLite file of FreshRSS; Miniflux, FreshRSS, " +
		"or any reader with the Google Reader API by its URL (greader); JSON of Google Reader, Inoreader or Feedly; a list of feeds (OPML); a directory of saved feed documents; " +
		"or all versions of a feed in a git repository: --from git REPOSITORY PATH [FEED]. " +
		"A file's kind is recognised without --from.\n\n" +
		"The publisher's copy of an entry always wins over a reader's, and deleted entries do not come back. " +
		"The verdict stays as it is, because a reader proves nothing about gaps. A missed window is closed if the memory has entries from both sides of it. " +
		"The exit status is 3 if rows were skipped because they cannot be read.\n\n" +
		"The databases of newsboat and FreshRSS may be in use: import reads a copy, for which TMPDIR needs room."
}

// Validate refuses flags that do not go together.
func (c *importCommand) Validate() error {
	if c.From != "" && c.Replace {
		return errors.New("--from and --replace exclude each other: nothing is replaced")
	}
	return errors.Join(c.Quotas.Check(), c.Login.Check())
}

// source returns the source of a memory that the arguments name; nil for the lines of export
// --raw.
func (c *importCommand) source(w *command.World) (*kinds.Source, error) {
	if c.From == "" {
		if len(c.Files) == 0 || kinds.Recognise(w.Ctx, c.Files[0]) == "" {
			if c.DryRun {
				return nil, exit.UsageError("--dry-run: only with --from, or with a recognised source")
			}
			return nil, nil
		}
		if c.Replace {
			return nil, exit.UsageError("--replace: only for the output of export --raw")
		}
	}
	source, err := kinds.New(w.Ctx, strings.ToLower(c.From), c.Files)
	if err != nil {
		return nil, exit.UsageError(err.Error())
	}
	return source, nil
}

// Run imports the feeds.
func (c *importCommand) Run(w *command.World) (err error) {
	if source, err := c.source(w); err != nil {
		return err
	} else if source != nil {
		return c.memory(w, source)
	}
	store, err := c.Create(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	in := &mirror.Import{
		Store: credentialKeeper{store}, Replace: c.Replace, Private: c.markPrivate,
		Check: func(feed string) error {
			if err := argument.CheckURL(feed); err != nil {
				return errors.New(err.Error()) // not a usageError: the command line is right
			}
			return nil
		},
	}
	files := c.Files
	if len(files) == 0 {
		files = []string{"-"}
	}
	status := exit.OK
	for _, file := range files {
		if err := c.file(w, in, file); err != nil {
			return err
		}
		if !in.Ended {
			status = exit.Worse(status, tellUnended(w, file))
		}
	}
	if err := store.Index(w.Ctx); err != nil {
		return c.Failure(err)
	}
	what := terminal.Count(in.Feeds, "feed", "feeds") + " · " + terminal.Count(in.Entries, "entry", "entries") + " imported"
	if in.Same > 0 {
		what += fmt.Sprintf(" · %d already there", in.Same)
	}
	p := terminal.NewPage(w.Asides())
	p.Para("", "", what)
	if p.Err == nil && status != exit.OK {
		return exit.StatusError(status)
	}
	return p.Err
}

// tellUnended says that the lines of a file lack the record that ends them, and returns
// the exit status: a pipe may have been cut between two feeds.
func tellUnended(w *command.World, file string) int {
	w.Say(inputName(file) + ": the lines do not end with the record that ends those of --raw: an earlier version wrote them, or feeds at the end are missing")
	if w.IsStream(file) {
		return exit.Partial
	}
	return exit.OK
}

// inputName names a file, or standard input, for messages.
func inputName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// A credentialKeeper keeps the credentials of a feed that is replaced.
type credentialKeeper struct{ *database.Store }

// Remove implements mirror.Store.
func (s credentialKeeper) Remove(ctx context.Context, url string) error {
	return s.Store.Store.Remove(ctx, url)
}

// markPrivate records a feed as private, so the history server does not show it to
// others.
func (c *importCommand) markPrivate(feed string) error {
	keys, err := c.Keyring()
	if err != nil {
		return err
	}
	return keys.Set(map[string]http.Header{feed: {}})
}

// file imports the lines of a file. The lines of a feed are in one file.
func (c *importCommand) file(w *command.World, in *mirror.Import, name string) error {
	f, err := w.OpenFile(name)
	if err != nil {
		return explain.Failure(name, err)
	}
	defer f.Close()
	return c.importFailure(name, in.Read(w.Ctx, f))
}

// importFailure names the file in which an import failed, or gives advice after an error
// of the database.
func (c *importCommand) importFailure(file string, err error) error {
	line, ok := errors.AsType[*mirror.LineError](err)
	if !ok {
		return err
	}
	if problem := c.Failure(line.Err); problem != line.Err { // the database's, and not the line's
		return fmt.Errorf("%w; run the same import again to continue", problem)
	}
	if exists, ok := errors.AsType[*mirror.ExistsError](line.Err); ok {
		line.Err = fmt.Errorf("%s is already in %s, and differs: --replace replaces it", argument.WithoutUser(exists.URL), c.Place())
	}
	return fmt.Errorf("%s: %w", inputName(file), line)
}
