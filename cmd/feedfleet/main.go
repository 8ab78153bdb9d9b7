// Command feedfleet mirrors feeds on many machines: package fleet at a terminal.
//
// Results go to standard output and everything else to standard error. The exit
// status is 0, 1 after a failure, and 2 after wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/fleet"
)

const description = `Mirrors feeds on many machines, which share a PostgreSQL database.

feedhistory list, entries, export and serve read the same database.

Exit status: 0 done, 1 failed, 2 wrong usage.`

// A commandLine is the whole command line.
type commandLine struct {
	command.NetworkFlags
	command.Globals

	Work        workCommand        `cmd:"" help:"Run a worker."`
	Subscribe   subscribeCommand   `cmd:"" help:"Have the workers mirror feeds."`
	Unsubscribe unsubscribeCommand `cmd:"" help:"Have the workers stop mirroring feeds."`
	Status      statusCommand      `cmd:"" help:"Show the state of the workers' feeds."`
}

// client returns the Client the flags ask for.
func client(w *command.World) *feedhistory.Client {
	c := w.Client(w.Stderr)
	c.Budget, c.PerHost = feedhistory.Budget{Documents: slicedDocuments}, 1
	return c
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the command; it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var line commandLine
	w := command.NewWorld(ctx, "feedfleet", &line.Globals, stdin, stdout, stderr)
	w.NetworkFlags = &line.NetworkFlags
	call, err := w.Parse(&line, args, kong.Description(description))
	if err == nil {
		err = w.Prepare()
	}
	if err == nil {
		err = call.Run(w)
	}
	if status := w.Status(err, call); status <= terminal.ExitUsage {
		return status
	}
	return terminal.ExitFailed // an interrupt is a failure, too
}

// A sharedDatabase is the flag common to all verbs.
type sharedDatabase struct {
	DB string `name:"db" env:"FEEDHISTORY_DB" required:"" placeholder:"URL" help:"The PostgreSQL database that the workers share: postgres://USER@HOST/NAME."`
}

// Validate refuses anything but the URL of a PostgreSQL database.
func (d *sharedDatabase) Validate() error {
	if !d.location().IsPostgres() {
		return errors.New("--db: workers share a PostgreSQL database: postgres://USER@HOST/NAME; for other databases, use feedhistory sync")
	}
	return nil
}

// location returns the database for messages about it.
func (d *sharedDatabase) location() *database.Location { return &database.Location{DB: d.DB} }

// open opens the database.
func (d *sharedDatabase) open(w *command.World) (*fleet.Database, error) {
	db, err := fleet.Open(w.Ctx, d.DB)
	return db, d.failure(err)
}

// failure describes the fault of the database or of a URL, if the error is about one.
func (d *sharedDatabase) failure(err error) error {
	if refused, ok := errors.AsType[*fleet.URLError](err); ok {
		return terminal.UsageError(refused.Error())
	}
	return d.location().Failure(err)
}

// A subscribeCommand is the verb subscribe.
type subscribeCommand struct {
	sharedDatabase
	URLs []string `arg:"" optional:"" sep:"none" name:"URL" help:"Feeds for the workers to mirror, or web pages that name one."`
	OPML []string `name:"opml" sep:"none" placeholder:"FILE" help:"Also subscribe to the feeds of a subscription list; - is standard input (repeatable)."`
}

// Help is the text of --help besides the flags.
func (c *subscribeCommand) Help() string {
	return "The command requests each address once. If there is a web page, it subscribes to the feed that the page names; if there is no answer now, " +
		"it subscribes to the address itself. Existing subscriptions do not change, except that feeds which are gone, or dead letters, " +
		"are polled again."
}

// Run subscribes to the feeds.
func (c *subscribeCommand) Run(w *command.World) error {
	given, err := c.given(w)
	if err != nil {
		return err
	}
	if len(given) == 0 {
		return terminal.UsageError("give an address, or --opml FILE")
	}
	db, err := c.open(w)
	if err != nil {
		return err
	}
	defer db.Close()
	added, err := db.Subscribe(w.Ctx, given)
	if err != nil {
		return c.failure(err)
	}
	p := &terminal.Page{W: w.Asides()}
	p.Para("", "  ", fmt.Sprintf("subscribed to %s; %s already", terminal.Count(added, "feed", "feeds"), terminal.Count(len(given)-added, "was", "were")))
	return p.Err
}

// given returns the addresses of the arguments and the lists.
func (c *subscribeCommand) given(w *command.World) (urls []string, err error) {
	for _, url := range c.URLs {
		url = terminal.WebAddress(url)
		if err := fleet.CheckURL(url); err != nil {
			return nil, terminal.UsageError(err.Error())
		}
		feed, err := feedAt(w, url)
		if err != nil {
			return nil, err
		}
		urls = append(urls, feed)
	}
	for _, file := range c.OPML {
		feeds, err := database.Subscriptions(w, file)
		if err != nil {
			return nil, show.Failure(file, err)
		}
		for _, feed := range feeds {
			if err := fleet.CheckURL(feed.URL); err != nil {
				w.Say(fmt.Sprintf("%s: left out: %v", file, err))
				continue
			}
			urls = append(urls, feed.URL)
		}
	}
	if len(urls) == 0 && len(c.OPML) > 0 {
		return nil, errors.New("no feed in the lists can be polled")
	}
	return urls, nil
}

// feedAt returns the feed named by a web page, in the first available format. If the address is a
// feed's, or does not answer now, it returns the address itself.
func feedAt(w *command.World, url string) (string, error) {
	c := client(w)
	defer c.CloseIdle()
	feed, err := w.Resolve(c, url, func(address string) error {
		doc, err := c.Get(w.Ctx, address)
		if doc != nil { // a part of it is enough
			return nil
		}
		return err
	})
	switch {
	case w.Ctx.Err() != nil:
		return "", w.Ctx.Err()
	case feed == url && command.IsNoFeed(err) && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: this is not a feed, and it names none", url)
	case feed != url && (command.IsNoFeed(err) || fleet.CheckURL(feed) != nil):
		return "", fmt.Errorf("%s: this is not a feed, and the feed it names cannot be subscribed to: %s", url, feed)
	}
	return feed, nil
}

// An unsubscribeCommand is the verb unsubscribe.
type unsubscribeCommand struct {
	sharedDatabase
	URLs []string `arg:"" sep:"none" name:"URL" help:"Feeds that the workers should no longer poll."`
}

// Help is the text of --help besides the flags.
func (c *unsubscribeCommand) Help() string {
	return "This removes the feeds with everything known about them; feedhistory export makes a copy first."
}

// Run unsubscribes from the feeds, and says how many were not subscribed to.
func (c *unsubscribeCommand) Run(w *command.World) error {
	db, err := c.open(w)
	if err != nil {
		return err
	}
	defer db.Close()
	removed, err := db.Unsubscribe(w.Ctx, show.Each(c.URLs, terminal.WebAddress))
	if err != nil {
		return c.failure(err)
	}
	p := &terminal.Page{W: w.Asides()}
	p.Para("", "  ", "unsubscribed from "+terminal.Count(removed, "feed", "feeds"))
	if missing := len(c.URLs) - removed; missing > 0 {
		w.Say(fmt.Sprintf("%s not subscribed to", terminal.Count(missing, "was", "were")))
		return errors.Join(p.Err, terminal.StatusError(terminal.ExitFailed))
	}
	return p.Err
}
