package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/download"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A downloadCommand is the verb download.
type downloadCommand struct {
	database.Location
	URLs     []string        `arg:"" optional:"" sep:"none" name:"URL" help:"The feeds (default: all feeds of the mirror)."`
	Out      string          `required:"" placeholder:"DIR" help:"Directory for the files, which download creates if necessary."`
	Name     string          `default:"{date} {title}" placeholder:"PATTERN" help:"Name of a file, with {date}, {title}, {feed}, {id} and {file}; a slash makes a directory (default: ${default}). The extension is the file's own."`
	Since    argument.Moment `placeholder:"TIME" help:"Only files of entries from this time on: 2003-12-13, 2003-12-13T18:30:02Z, or how long ago, such as 7d or 48h."`
	Limit    int             `placeholder:"N" help:"Only the latest N files still to be downloaded (default: 0, for all)."`
	Type     string          `placeholder:"TYPE" help:"Only files of this media type, such as audio or audio/mpeg."`
	MaxFile  argument.Size   `default:"10GiB" placeholder:"SIZE" help:"Maximum size of one file (default: ${default})."`
	Parallel int             `default:"4" placeholder:"N" help:"Download from N hosts at the same time, one file from each (default: ${default})."`
	DryRun   bool            `help:"Print the files to be downloaded, and download nothing."`

	network.Flags
}

// Help returns the text of --help before the flags.
func (c *downloadCommand) Help() string {
	return "download fetches the files of entries, such as a podcast's episodes. It requests each file once: the database records what it has downloaded, " +
		"even if you move or delete the file. Run it again to resume interrupted downloads.\n\n" +
		"It uses the feed's own credentials, for the feed's origin only. No file replaces another one.\n\n" +
		"The exit status is 3 if some files could not be downloaded, and 1 if none could."
}

// Validate refuses limits of zero, and patterns with unknown names.
func (c *downloadCommand) Validate() error {
	switch {
	case c.Limit < 0:
		return errors.New("--limit: a number cannot be negative")
	case c.Parallel < 1:
		return errors.New("--parallel: at least 1")
	case c.MaxFile < 1:
		return errors.New("--max-file: at least 1")
	}
	if err := download.CheckPattern(c.Name); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	return nil
}

// Run downloads the files.
func (c *downloadCommand) Run(w *command.World) (err error) {
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	records := &download.Records{DB: store.DB}
	if err := records.Open(w.Ctx); err != nil {
		return c.Failure(err)
	}
	files, err := c.files(w.Ctx, store, records)
	if err != nil {
		return err
	}
	c.announce(w, files)
	if c.DryRun {
		return c.list(w, files)
	}
	if len(files) == 0 {
		return nil
	}
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	root, err := os.OpenRoot(c.Out)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer root.Close()
	return c.download(w, store, &download.Downloader{Root: root, Records: records}, files)
}

// download downloads files, and reports on each.
func (c *downloadCommand) download(w *command.World, store *database.Store, d *download.Downloader, files []download.File) error {
	transport, err := c.Transport()
	if err != nil {
		return err
	}
	d.Transport, d.UserAgent = transport, cmp.Or(c.UserAgent, "feedhistory/"+feedhistory.Version)
	d.Credential, d.Parallel, d.MaxBytes = store.Keys.Credential, c.Parallel, int64(c.MaxFile)
	d.Pause = max(time.Second, c.Pace)
	bar := w.NewBar(len(files), "downloading")
	var saved, failed int
	var size int64
	d.Read = func(n int) {
		size += int64(n)
		bar.Describe(fmt.Sprintf("%d of %s · %s", saved+failed, terminal.Count(len(files), "file", "files"), megabytes(size)))
	}
	p, missing := terminal.NewPage(w.Stdout), terminal.NewPage(w.Stderr)
	d.Each = func(r download.Result) {
		bar.Clear()
		bar.Step()
		if r.Err != nil {
			failed++
			missing.Para("", "  ", explain.Failure(r.URL, r.Err).Error())
			return
		}
		saved++
		p.Line(terminal.Clean(r.Saved))
		for _, what := range r.Differs {
			missing.Para("  - ", "    ", r.Saved+": "+what)
		}
	}
	err = d.Download(w.Ctx, files)
	bar.End()
	switch {
	case w.Ctx.Err() != nil:
		w.Say("interrupted; run the same command again to continue")
		if saved > 0 {
			return exit.StatusError(exit.Partial)
		}
		return exit.StatusError(exit.Interrupted)
	case err != nil:
		return c.Failure(err)
	}
	w.Tell(terminal.Count(saved, "file", "files") + " downloaded · " + megabytes(size))
	switch {
	case failed > 0 && saved == 0:
		return exit.StatusError(exit.Failed)
	case failed > 0:
		w.Say(terminal.Count(failed, "file", "files") + " could not be downloaded; run the same command again to try again")
		return exit.StatusError(exit.Partial)
	}
	return cmp.Or(p.Err, missing.Err)
}

// files returns the files the flags ask for, without those downloaded before, the
// latest first.
func (c *downloadCommand) files(ctx context.Context, store *database.Store, records *download.Records) (files []download.File, err error) {
	var names []string
	titles := map[string]string{}
	for _, url := range c.URLs {
		f, err := store.Feed(ctx, argument.FeedName(url))
		if err != nil {
			return nil, c.Unknown(url, err)
		}
		names = append(names, f.URL)
	}
	for f, err := range store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, c.Failure(err)
		}
		titles[f.URL] = cmp.Or(f.Title, f.URL)
	}
	seen := map[string]bool{}
	for r, err := range database.EntriesOfFeeds(ctx, store, mirror.Query{Since: c.Since.Time}, slices.Compact(names)) {
		if err != nil {
			return nil, c.Failure(err)
		}
		e, err := r.Entry()
		if err != nil {
			return nil, fmt.Errorf("%s: the entry %s: %w", r.Feed, r.ID, err)
		}
		for _, f := range c.filesOf(r, e, titles[r.Feed]) {
			if !seen[f.Feed+"\n"+f.URL] {
				seen[f.Feed+"\n"+f.URL] = true
				files = append(files, f)
			}
		}
	}
	return c.missing(ctx, records, files)
}

// missing returns those of the files not downloaded before, as many as the flags ask
// for.
func (c *downloadCommand) missing(ctx context.Context, records *download.Records, files []download.File) (missing []download.File, err error) {
	for _, f := range files {
		taken, err := records.IsTaken(ctx, f)
		if err != nil {
			return nil, c.Failure(err)
		}
		if taken {
			continue
		}
		if missing = append(missing, f); len(missing) == c.Limit {
			break
		}
	}
	return missing, nil
}

// filesOf returns the files of an entry.
func (c *downloadCommand) filesOf(r *mirror.Record, e *feedhistory.Entry, feed string) (files []download.File) {
	for _, l := range e.Links {
		if l.Rel != feedhistory.RelEnclosure || !argument.IsWeb(l.Href) || !c.isOfType(l) {
			continue
		}
		length, _ := strconv.ParseInt(strings.TrimSpace(l.Length), 10, 64)
		files = append(files, download.File{
			Feed: r.Feed, URL: l.Href, Length: max(length, 0), Type: l.Type,
			Name: download.Expand(c.Name, download.Fields{
				Feed: feed, Title: cmp.Or(terminal.Clean(e.Title().Plain()), "untitled"), Date: r.Time(), ID: r.ID, URL: l.Href, Type: l.Type,
			}),
		})
	}
	return files
}

// isOfType reports whether a file has the media type of --type.
func (c *downloadCommand) isOfType(l feedhistory.Link) bool {
	return c.Type == "" || strings.EqualFold(l.Type, c.Type) || strings.HasPrefix(strings.ToLower(l.Type), strings.ToLower(strings.TrimSuffix(c.Type, "/*"))+"/")
}

// announce says how much there is to download.
func (c *downloadCommand) announce(w *command.World, files []download.File) {
	var size int64
	unknown := 0
	for _, f := range files {
		size += f.Length
		if f.Length == 0 {
			unknown++
		}
	}
	text := terminal.Count(len(files), "file", "files") + " to download"
	if size > 0 {
		text += " · " + megabytes(size)
	}
	if unknown > 0 {
		text += fmt.Sprintf(" · %d of unknown size", unknown)
	}
	w.Tell(text)
}

// list prints the files to be downloaded.
func (c *downloadCommand) list(w *command.World, files []download.File) error {
	p := terminal.NewPage(w.Stdout)
	for _, f := range files {
		size := "-"
		if f.Length > 0 {
			size = megabytes(f.Length)
		}
		p.Line(terminal.Clean(f.Name) + "\t" + size + "\t" + terminal.Clean(f.URL))
	}
	w.Tell("a dry run: nothing was downloaded")
	return p.Err
}

// megabytes returns a size, rounded for people.
func megabytes(n int64) string {
	switch {
	case n < 1000:
		return terminal.Count(int(n), "byte", "bytes")
	case n < 1e6:
		return fmt.Sprintf("%d kB", n/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
