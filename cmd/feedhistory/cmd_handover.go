package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A handoverCommand is the verb handover.
type handoverCommand struct {
	database.Location
	Feeds []string `arg:"" optional:"" sep:"none" name:"FEED" help:"Mirrored feeds (default: all to which the reader is subscribed)."`
	To    string   `required:"" placeholder:"URL" help:"The address of the reader: Miniflux 2.2.16 or later."`

	TokenEnv  string `placeholder:"VARIABLE" help:"Environment variable with an API key of the reader (default: MINIFLUX_TOKEN)."`
	TokenFile string `placeholder:"FILE" help:"File with the API key."`
	User      string `placeholder:"NAME" help:"User to log in as, with the password in the environment variable FEEDHISTORY_PASSWORD."`

	Through string `placeholder:"URL" help:"The base of a history server with the same feeds, which the reader can reach. The reader reads the history there, and keeps its enclosures; the subscription's address is put back afterwards."`
	FeedID  int64  `name:"feed-id" least:"0" placeholder:"N" help:"The reader's number for the feed, if the reader has the feed under another address."`
	Status  string `default:"read" enum:"read,unread" placeholder:"STATUS" help:"Mark the entries as read (the default) or unread."`
	Starred bool   `help:"Star the entries: Miniflux never deletes starred ones."`
	Gone    bool   `help:"Hand over every entry, because the feed no longer answers."`
	DryRun  bool   `help:"Print the entries to be handed over, and change nothing."`

	terminal.JSONFlag `set:"record=each feed"`

	command.NetworkFlags
}

// Help returns the text of --help before the flags.
func (c *handoverCommand) Help() string {
	return "The reader gets the mirrored entries the feed no longer shows and the reader does not have. " +
		"Another run continues where the last one ended, and adds nothing twice.\n\n" +
		"By default, Miniflux deletes read entries 60 days, and unread entries 180 days, after the handover. " +
		"To keep them, set CLEANUP_ARCHIVE_READ_DAYS and CLEANUP_ARCHIVE_UNREAD_DAYS to -1 in Miniflux's environment, or give --starred."
}

// Validate refuses incompatible flags, and a user name with a colon.
func (c *handoverCommand) Validate() error {
	switch {
	case strings.Contains(c.User, ":"):
		return errors.New("--user: a name has no colon; set the password in " + command.PasswordVariable)
	case c.To != "" && !terminal.IsURL(c.To):
		return errors.New("--to: " + c.To + " is not the address of a reader: it begins with https:// or http://")
	case c.Through != "" && !terminal.IsURL(c.Through):
		return errors.New("--through: " + c.Through + " is not the address of a history server: it begins with https:// or http://")
	case c.FeedID != 0 && len(c.Feeds) != 1:
		return errors.New("--feed-id: give one feed")
	}
	return nil
}

// Run hands over the feeds.
func (c *handoverCommand) Run(w *command.World) (err error) {
	transport := &http.Transport{ForceAttemptHTTP2: true} // without a proxy
	reader, err := c.reader(w, transport)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	feeds, err := c.FeedsOrAll(w.Ctx, store, c.Feeds)
	if err != nil {
		return err
	}
	if err := reader.Check(w.Ctx); err != nil {
		return c.Failure(err)
	}
	subscribed, err := reader.Feeds(w.Ctx)
	if err != nil {
		return c.Failure(err)
	}
	client := w.Client(w.Stderr)
	defer client.CloseIdle()
	run := &handoverRun{
		handoverCommand: c, w: w, subscribed: subscribed, page: terminal.NewPage(w.Asides()), missing: terminal.NewPage(w.Stderr),
		Handover: readers.Handover{
			Reader: reader, Store: store, Client: client,
			Status: c.Status, Starred: c.Starred, Gone: c.Gone, DryRun: c.DryRun, Through: c.Through,
			Doubt: func(feed string, err error) {
				w.Say(feed + ": the entries are handed over one by one, because " + err.Error())
			},
		},
	}
	return run.all(feeds)
}

// reader returns the reader, with the credentials named by the flags.
func (c *handoverCommand) reader(w *command.World, transport http.RoundTripper) (*readers.Miniflux, error) {
	s := readers.Server{
		URL: c.To, Header: http.Header{"Accept": {"application/json"}}, Transport: transport, Timeout: time.Minute,
		UserAgent: cmp.Or(w.UserAgent, "feedhistory/"+feedhistory.Version), Login: "--token-env, --token-file or --user",
	}
	token := ""
	switch {
	case c.User != "":
		password, err := command.PasswordOf(c.User)
		if err != nil {
			return nil, err
		}
		s.SetUser(c.User, password)
		return readers.NewMiniflux(s), nil
	case c.TokenFile != "":
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, terminal.UsageError("--token-file: " + c.TokenFile + ": " + show.Detail(err))
		}
		if token = strings.TrimSpace(string(text)); token == "" {
			return nil, terminal.UsageError("--token-file: " + c.TokenFile + " is empty")
		}
	default:
		token = strings.TrimSpace(os.Getenv(cmp.Or(c.TokenEnv, "MINIFLUX_TOKEN")))
		switch {
		case token == "" && c.TokenEnv != "":
			return nil, terminal.UsageError(command.NoToken)
		case token == "":
			return nil, terminal.UsageError("the environment variable MINIFLUX_TOKEN has no API key" +
				"; you can create one in Miniflux at Settings, API Keys")
		}
	}
	s.Header.Set("Authorization", "Bearer "+token)
	return readers.NewMiniflux(s), nil
}

// A handoverRun is a run of the verb.
type handoverRun struct {
	*handoverCommand
	readers.Handover
	w          *command.World
	page       *terminal.Page // information
	missing    *terminal.Page // entries not handed over, and gaps of the mirror
	subscribed []readers.ReaderFeed

	worst int // the exit status so far
}

// all hands over the feeds the arguments ask for. It continues with the next feed if a
// feed cannot be read or the reader is not subscribed to it, and ends after other errors.
func (h *handoverRun) all(feeds iter.Seq2[*mirror.Feed, error]) error {
	elsewhere := 0
	for f, err := range feeds {
		if err != nil {
			return h.Failure(err)
		}
		to, err := h.find(f)
		if errors.Is(err, readers.ErrNotSubscribed) && len(h.handoverCommand.Feeds) == 0 {
			elsewhere++
			continue
		}
		if err == nil {
			err = h.feed(f, to)
		}
		if _, ok := errors.AsType[*readers.UnreadableError](err); err != nil && !ok && !errors.Is(err, readers.ErrNotSubscribed) {
			return h.Failure(err)
		}
		h.trouble(f, err)
	}
	if elsewhere > 0 {
		h.page.Para("", "  ", "the reader is not subscribed to "+terminal.Count(elsewhere, "mirrored feed", "mirrored feeds"))
	}
	switch err := cmp.Or(h.page.Err, h.missing.Err); {
	case err != nil:
		return err
	case h.worst != terminal.ExitOK:
		return terminal.StatusError(h.worst)
	}
	return nil
}

// trouble explains a failed handover of a feed, with advice, if err is not nil.
func (h *handoverRun) trouble(f *mirror.Feed, err error) {
	if err == nil {
		return
	}
	advice := "; with --gone, everything is handed over"
	if errors.Is(err, readers.ErrNotSubscribed) {
		advice = "; subscribe to it there first, or name the reader's feed with --feed-id"
	}
	h.w.Say(show.Address(f.URL) + ": " + err.Error() + advice)
	h.worst = terminal.ExitFailed
}

// find returns the reader's feed for a mirrored one.
func (h *handoverRun) find(f *mirror.Feed) (readers.ReaderFeed, error) {
	if to, ok := readers.AtServer(f, h.Handover.Through, h.subscribed); ok {
		return to, nil
	}
	if h.FeedID == 0 {
		return readers.Match(f, h.subscribed)
	}
	for _, to := range h.subscribed {
		if to.ID == h.FeedID {
			return to, nil
		}
	}
	return readers.ReaderFeed{}, terminal.UsageError(fmt.Sprintf("--feed-id: the reader has no feed %d", h.FeedID))
}

// feed hands over one feed. It reports its work, even if an error ends it.
func (h *handoverRun) feed(f *mirror.Feed, to readers.ReaderFeed) error {
	bar := h.w.NewBar(int(f.Entries), "asking the reader for its entries")
	h.Each = func() {
		bar.Describe("handing over")
		bar.Step()
	}
	report, err := h.Handover.Run(h.w.Ctx, f.URL, to)
	bar.End()
	if report == nil || report.Entries == 0 && err != nil {
		return err
	}
	return errors.Join(h.report(report), err)
}

// mostRefused is the maximum number of refused entries in a report.
const mostRefused = 10

// report prints the handover of one feed.
func (h *handoverRun) report(r *readers.Report) error {
	isPartial := len(r.Refused) > 0 || terminal.ExitOf(r.Verdict) != terminal.ExitOK
	if isPartial && h.worst != terminal.ExitFailed {
		h.worst = terminal.ExitPartial
	}
	if h.JSON {
		return terminal.WriteJSON(h.w.Stdout, r)
	}
	if err := list(h.w.Stdout, r.ToAdd); err != nil {
		return err
	}
	p := h.page
	if isPartial {
		p = h.missing
	}
	p.Line(terminal.Clean(show.Address(r.Feed) + ": " + outcomes(r)))
	for i, refusal := range r.Refused {
		if i == mostRefused {
			p.Para("  ", "    ", fmt.Sprintf("and %d more", len(r.Refused)-i))
			break
		}
		p.Para("  ", "    ", refusal.ID+": "+refusal.Error)
	}
	if r.Verdict != feedhistory.VerdictWhole {
		p.Para("  ", "  ", "the mirror itself does not have the whole history: "+r.Verdict.String()+"; feedhistory list "+show.Address(r.Feed)+" says more")
	}
	return nil
}

// list prints the entries to be handed over.
func list(out io.Writer, toAdd []show.Entry) error {
	p := terminal.NewPage(out)
	for _, e := range toAdd {
		date, _, _ := strings.Cut(cmp.Or(e.Published, e.Updated, strings.Repeat(" ", 10)), "T")
		p.Line(date + "  " + terminal.Clean(cmp.Or(e.Title, e.ID)))
	}
	return p.Err
}

// outcomes returns the numbers of a feed's entries by their outcomes.
func outcomes(r *readers.Report) string {
	added := "%d handed over"
	if r.DryRun {
		added = "%d to hand over"
	}
	return terminal.Counts(fmt.Sprintf(added, r.Added), []terminal.Part{
		{N: r.Had, Says: "there already"}, {N: r.Shown, Says: "still in the feed"},
		{N: r.Removed, Says: "deleted in the reader"}, {N: len(r.Refused), Says: "refused"},
	}...)
}
