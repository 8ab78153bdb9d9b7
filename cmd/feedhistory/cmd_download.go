package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"golang.org/x/time/rate"
)

// A downloadCommand is the verb download.
type downloadCommand struct {
	database.Location
	Feeds    []string        `arg:"" optional:"" sep:"none" name:"FEED" help:"The feeds (default: all feeds of the mirror)."`
	Out      string          `required:"" placeholder:"DIR" help:"Directory for the files, which download creates if necessary."`
	Name     string          `default:"{date} {title}" placeholder:"PATTERN" help:"Name of a file, with {date}, {title}, {feed}, {id} and {file}; a slash makes a directory (default: ${default}). The extension is that of the media type."`
	Since    terminal.Moment `placeholder:"TIME" help:"Only files of entries from this time on: 2003-12-13, 2003-12-13T18:30:02Z, or how long ago, such as 7d or 48h."`
	Until    terminal.Moment `placeholder:"TIME" help:"Only files of entries from before this time."`
	Limit    int             `least:"0" placeholder:"N" help:"Only the latest N files still to be downloaded (default: 0, for all)."`
	Type     string          `placeholder:"TYPE" help:"Only files of this media type, such as audio or audio/mpeg."`
	MaxFile  terminal.Size   `default:"10GiB" least:"1" placeholder:"SIZE" help:"Maximum size of one file (default: ${default})."`
	Parallel int             `default:"4" least:"1" placeholder:"N" help:"Download from N hosts at the same time, one file from each (default: ${default})."`
	Rate     terminal.Size   `placeholder:"SIZE" help:"Download at most this much in a second, such as 500kB (default: 0, for no limit)."`
	Again    bool            `help:"Download also files downloaded before. The new copy replaces the old one, if that is still in the directory."`
	Verify   bool            `help:"Also read the files downloaded before, and name those that differ from what was downloaded. With --again, download these again, and no others."`
	DryRun   bool            `help:"Print the files to be downloaded, and download nothing."`

	terminal.JSONFlag `set:"record=each file"`

	command.NetworkFlags

	damaged bool // --verify has found a difference
}

// Help returns the text of --help before the flags.
func (c *downloadCommand) Help() string {
	return "download fetches the files of entries, such as a podcast's episodes. The address of a feed that is not mirrored yet is mirrored first. A file has the time of its entry. download requests each file once: the database records what it has downloaded, " +
		"even if you move or delete the file. Run it again to resume interrupted downloads. " +
		"It names the files in the directory that have become shorter, and with --verify those with other bytes; --again downloads them again. " +
		"An address that differs from an earlier one of its entry in a signature only, such as token-hash and token-time, is that of the same file.\n\n" +
		"It uses the feed's own credentials, for the feed's origin only. No file replaces another one without --again. " +
		"The extension is one of the file's media type, if the feed gives that, so that no episode is a program.\n\n" +
		"The exit status is 3 if some files could not be downloaded, or --verify has found a difference, and 1 if none could be downloaded."
}

// Validate refuses a low rate, and patterns with unknown names.
func (c *downloadCommand) Validate() error {
	switch {
	case c.Rate != 0 && c.Rate < leastRate:
		return errors.New("--rate: at least " + terminal.SizeText(leastRate))
	case !c.Until.IsZero() && !c.Since.Before(c.Until.Time):
		return errors.New("--since must be before --until")
	}
	if err := database.CheckPattern(c.Name); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	return nil
}

// leastRate keeps a slow download from being taken for a server that hangs.
const leastRate = 4000

// mirror adds and polls the feeds that the arguments name by address and the mirror does not
// have.
func (c *downloadCommand) mirror(w *command.World) error {
	var unknown []string
	for _, arg := range c.Feeds {
		if terminal.CheckURL(arg) != nil {
			continue
		}
		store, err := (&database.Location{DB: c.DB}).Read(w)
		if err == nil {
			_, err = c.Location.Feed(w.Ctx, store, arg, false)
			err = errors.Join(err, store.Close())
		}
		if err != nil {
			unknown = append(unknown, arg)
		}
	}
	if unknown == nil {
		return nil
	}
	sync := syncCommand{
		Location: c.Location, URLs: unknown, Polling: database.Polling{Interval: time.Hour, Parallel: c.Parallel}, NetworkFlags: c.NetworkFlags,
	}
	aside := *w
	aside.Stdout = w.Asides()
	err := sync.Run(&aside)
	if status, ok := errors.AsType[terminal.StatusError](err); ok && int(status) == terminal.ExitPartial {
		return nil // files of the entries that are there
	}
	return err
}

// Run downloads the files.
func (c *downloadCommand) Run(w *command.World) (err error) {
	if !c.DryRun {
		if err := c.mirror(w); err != nil {
			return err
		}
	}
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	records := &database.Downloads{DB: store.DB}
	if err := records.Open(w.Ctx); err != nil {
		return c.Failure(err)
	}
	if !c.DryRun {
		unlock, err := publish.Dir{Path: c.Out}.Lock(w.Ctx)
		if errors.Is(err, publish.ErrLocked) {
			return errors.New("--out: another process is downloading to " + c.Out + "; try again when it has finished")
		} else if err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	root, err := os.OpenRoot(c.Out)
	switch {
	case err == nil:
		defer root.Close()
	case !c.DryRun || !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--out: %w", err)
	}
	files, err := c.files(w, store, records, root)
	if err != nil {
		return err
	}
	c.announce(w, files)
	switch {
	case c.DryRun:
		return c.list(w, files)
	case len(files) > 0:
		err = c.download(w, store, &database.Downloader{Root: root, Downloads: records}, files)
	}
	if c.damaged && !c.Again {
		err = cmp.Or(err, error(terminal.StatusError(terminal.ExitPartial)))
	}
	return err
}

// download downloads files, and reports on each.
func (c *downloadCommand) download(w *command.World, store *database.Store, d *database.Downloader, files []database.File) error {
	transport, err := c.Transport()
	if err != nil {
		return err
	}
	d.Transport, d.UserAgent = transport, cmp.Or(c.UserAgent, "feedhistory/"+feedhistory.Version)
	d.Credential, d.Parallel, d.MaxBytes = store.Keys.Credential, c.Parallel, int64(c.MaxFile)
	d.Pause = max(time.Second, c.Pace)
	if c.Rate > 0 {
		d.Rate = rate.NewLimiter(rate.Limit(c.Rate), copyBuffer)
	}
	bar := w.NewBar(len(files), "downloading")
	var saved, failed int
	var size int64
	d.Read = func(n int) {
		size += int64(n)
		bar.Describe(fmt.Sprintf("%d of %s · %s", saved+failed, terminal.Count(len(files), "file", "files"), megabytes(size)))
	}
	p, missing := terminal.NewPage(w.Stdout), terminal.NewPage(w.Stderr)
	d.Each = func(r database.DownloadResult) {
		bar.Clear()
		bar.Step()
		if c.JSON {
			p.Err = cmp.Or(p.Err, terminal.WriteJSON(w.Stdout, r))
		}
		if r.Err != nil {
			failed++
			missing.Para("", "  ", show.Failure(r.URL, r.Err).Error())
			return
		}
		saved++
		if !c.JSON {
			p.Line(terminal.Clean(r.Saved))
		}
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
			return terminal.StatusError(terminal.ExitPartial)
		}
		return terminal.StatusError(terminal.ExitInterrupted)
	case err != nil:
		return c.Failure(err)
	}
	w.Tell(terminal.Count(saved, "file", "files") + " downloaded · " + megabytes(size))
	switch {
	case failed > 0 && saved == 0:
		return terminal.StatusError(terminal.ExitFailed)
	case failed > 0:
		w.Say(terminal.Count(failed, "file", "files") + " could not be downloaded; run the same command again to try again")
		return terminal.StatusError(terminal.ExitPartial)
	}
	return cmp.Or(p.Err, missing.Err)
}

// files returns the files the flags ask for, without those downloaded before, the
// latest first.
func (c *downloadCommand) files(w *command.World, store *database.Store, records *database.Downloads, root *os.Root) (files []database.File, err error) {
	ctx := w.Ctx
	titles := map[string]string{}
	feeds, err := c.Location.Feeds(ctx, store, c.Feeds)
	if err != nil {
		return nil, err
	}
	for f, err := range store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, c.Failure(err)
		}
		titles[f.URL] = cmp.Or(f.Title, f.URL)
	}
	seen := map[string]bool{}
	for r, err := range database.EntriesOfFeeds(ctx, store, mirror.Query{Since: c.Since.Time, Until: c.Until.Time}, database.URLs(feeds)) {
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
	return c.missing(w, records, root, files)
}

// missing returns those of the files not downloaded before, as many as the flags ask for;
// with --again, the others, too. It names the copies that differ from what was downloaded.
// Without a root, there are none.
func (c *downloadCommand) missing(w *command.World, records *database.Downloads, root *os.Root, files []database.File) (missing []database.File, err error) {
	for _, f := range files {
		saved, err := records.Taken(w.Ctx, f)
		if err != nil {
			return nil, c.Failure(err)
		}
		if saved.File != "" {
			damage := ""
			if root != nil && (c.Verify || !c.Again) {
				if damage, err = saved.Damage(root, c.Verify); err != nil {
					return nil, fmt.Errorf("--out: %w", err)
				}
			}
			if damage != "" && !c.Again {
				w.Say(fmt.Sprintf("%s %s; --again downloads it again", saved.File, damage))
				c.damaged = c.damaged || c.Verify
			}
			if !c.Again || c.Verify && damage == "" {
				continue
			}
			f.Old = saved.File
		}
		if missing = append(missing, f); len(missing) == c.Limit {
			break
		}
	}
	return missing, nil
}

// filesOf returns the files of an entry.
func (c *downloadCommand) filesOf(r *mirror.Record, e *feedhistory.Entry, feed string) (files []database.File) {
	signed := map[string]int{} // how many files of the entry have the same address but for the signature
	for _, l := range e.Links {
		if l.Rel != feedhistory.RelEnclosure || !terminal.IsWeb(l.Href) || !c.isOfType(l) {
			continue
		}
		length, _ := strconv.ParseInt(strings.TrimSpace(l.Length), 10, 64)
		address := feedhistory.Unsigned(l.Href)
		signed[address]++
		files = append(files, database.File{
			Feed: r.Feed, ID: r.ID, Time: r.Time(), URL: l.Href, Of: fmt.Sprint(r.ID, " ", signed[address]), Length: max(length, 0), Type: l.Type,
			Name: database.Expand(c.Name, database.Fields{
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
func (c *downloadCommand) announce(w *command.World, files []database.File) {
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
func (c *downloadCommand) list(w *command.World, files []database.File) error {
	p := terminal.NewPage(w.Stdout)
	for _, f := range files {
		if c.JSON {
			p.Err = cmp.Or(p.Err, terminal.WriteJSON(w.Stdout, database.DownloadResult{File: f}))
			continue
		}
		size := "-"
		if f.Length > 0 {
			size = megabytes(f.Length)
		}
		p.Line(terminal.Clean(f.Name) + "\t" + size + "\t" + terminal.Clean(f.URL))
	}
	w.Tell("a dry run: nothing was downloaded")
	return p.Err
}

// copyBuffer is the number of bytes a download passes on at once.
const copyBuffer = 32 << 10

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
