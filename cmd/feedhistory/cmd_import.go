package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// An importCommand is the verb import.
type importCommand struct {
	database.Location
	Files   []string `arg:"" optional:"" sep:"none" name:"FILE" help:"Output of export --raw or fetch --raw (default: standard input); with --from, the source, and the feeds to import (default: all)."`
	From    string   `default:"" enum:",${kinds}" placeholder:"KIND" help:"Import the archive of another program: ${kinds}."`
	Replace bool     `help:"Replace feeds that are already mirrored."`
	DryRun  bool     `help:"With --from, count the entries to be imported, and change nothing."`
	JSON    bool     `name:"json" help:"With --from, print JSON Lines (one object a line): each feed."`

	database.Quotas
	command.NetworkFlags
	command.Login
}

// Help returns the text of --help before the flags.
func (c *importCommand) Help() string {
	return "import restores feeds as they were, with earlier versions of entries and everything the mirror knew about them. " +
		"With it, you can move a mirror from one database to another, such as from SQLite to PostgreSQL and back.\n\n" +
		"Import skips a feed that the database already has in the same state. So after an error or an interrupt, " +
		"run the same import again: it continues with the feed it had reached.\n\n" +
		"With --from, import adds entries and folders others have kept: newsboat's cache.db, and its list of feeds (urls); the SQLite file of FreshRSS; Miniflux, by its URL; a list of feeds (OPML); " +
		"saved feed documents, in files and directories and in the WARC files of web archives: --from directory or warc FILE… [FEED…]; " +
		"or all versions of a feed in a git repository: --from git REPOSITORY PATH [FEED]. " +
		"A file's kind is recognised without --from.\n\n" +
		"The publisher's copy of an entry always wins over a reader's, and deleted entries do not come back. " +
		"The verdict stays as it is, because a copy from a reader cannot show what is missing. A missed window is closed if the copy has entries from both sides of it. " +
		"The exit status is 3 if rows were skipped because they cannot be read.\n\n" +
		"The databases of newsboat and FreshRSS may be in use: import reads a copy, for which TMPDIR needs room."
}

// source returns the source the arguments name; nil for the lines of export
// --raw.
func (c *importCommand) source(w *command.World) (*readers.Source, error) {
	kind := c.From
	if kind == "" && len(c.Files) > 0 {
		kind = readers.Recognise(w.Ctx, c.Files[0])
	}
	switch {
	case kind == "" && c.DryRun:
		return nil, terminal.UsageError("--dry-run: only with --from, or with a recognised source")
	case kind == "":
		return nil, nil
	case c.Replace:
		return nil, terminal.UsageError("--replace: only for the output of export --raw")
	}
	source, err := readers.NewSource(kind, c.Files)
	if err != nil {
		return nil, terminal.UsageError(err.Error())
	}
	return source, nil
}

// Run imports the feeds.
func (c *importCommand) Run(w *command.World) (err error) {
	if source, err := c.source(w); err != nil {
		return err
	} else if source != nil {
		return c.importSource(w, source)
	}
	files := c.Files
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, file := range files { // before a database is created for them
		if _, err := os.Stat(file); file != "-" && errors.Is(err, fs.ErrNotExist) {
			_, err = w.OpenFile(file)
			return show.Failure(file, err)
		}
	}
	store, err := c.Create(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.CloseAfter(err)) }()
	status, all := terminal.ExitOK, mirror.ImportReport{}
	for _, file := range files {
		into := importStore{store, &c.Location, map[string]map[string]bool{}}
		in, err := c.file(w, into, file)
		if err == nil {
			err = c.Failure(into.sayDropped(w))
		}
		if err != nil {
			return err
		}
		all.Feeds, all.Entries, all.Same = all.Feeds+in.Feeds, all.Entries+in.Entries, all.Same+in.Same
		if in.Marks > 0 {
			w.Say(inputName(file) + ": " + terminal.Count(in.Marks, "mark is", "marks are") + " left out: a mirror no longer keeps what was read or starred")
		}
		switch {
		case in.Ended:
		case in.Feeds+in.Same == 0:
			w.Say(inputName(file) + ": nothing was imported: there is no feed in it")
			status = terminal.ExitFailed
		default:
			status = terminal.WorseExit(status, warnUnended(w, file))
		}
	}
	if err := store.Index(w.Ctx); err != nil {
		return c.Failure(err)
	}
	what := terminal.Count(all.Feeds, "feed", "feeds") + " · " + terminal.Count(all.Entries, "entry", "entries") + " imported"
	p := terminal.NewPage(w.Asides())
	p.Para("", "", terminal.Counts(what, terminal.Part{N: all.Same, Says: "already there"}))
	if p.Err == nil && status != terminal.ExitOK {
		return terminal.StatusError(status)
	}
	return p.Err
}

// warnUnended says the lines of a file lack the record that ends them, and returns
// the exit status: a pipe may have been cut between two feeds.
func warnUnended(w *command.World, file string) int {
	w.Say(inputName(file) + ": the lines do not end with the record that ends those of --raw: an earlier version wrote them, or feeds at the end are missing")
	if w.IsStream(file) {
		return terminal.ExitPartial
	}
	return terminal.ExitOK
}

// inputName names a file, or standard input, for messages.
func inputName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// An importStore receives an import. It refuses feeds by their URLs, keeps the credentials of a
// feed that is replaced, and notes a private one before it has any of it.
type importStore struct {
	*database.Store
	place    *database.Location
	replaced map[string]map[string]bool // the ids of replaced feeds' former entries
}

// Commit implements mirror.Store.
func (s importStore) Commit(ctx context.Context, c *mirror.Commit) error {
	if c.Feed.Private && c.Feed.Commits == 0 {
		keys, err := s.place.Keyring()
		if err == nil {
			err = keys.Set(map[string]http.Header{c.Feed.URL: {}})
		}
		if err != nil {
			return err
		}
	}
	return s.Store.Commit(ctx, c)
}

// Feed implements mirror.Store.
func (s importStore) Feed(ctx context.Context, url string) (*mirror.Feed, error) {
	if err := checkFeed(url); err != nil {
		return nil, err
	}
	return s.Store.Feed(ctx, url)
}

// Remove implements mirror.Store.
func (s importStore) Remove(ctx context.Context, url string) error {
	ids := map[string]bool{}
	for r, err := range s.Entries(ctx, mirror.Query{Feed: url}) {
		if err != nil {
			return err
		}
		ids[r.ID] = true
	}
	s.replaced[url] = ids
	return s.Store.Store.Remove(ctx, url)
}

// sayDropped says which entries of replaced feeds were not among those imported.
func (s importStore) sayDropped(w *command.World) error {
	for _, url := range slices.Sorted(maps.Keys(s.replaced)) {
		ids := s.replaced[url]
		for r, err := range s.Entries(w.Ctx, mirror.Query{Feed: url}) {
			if err != nil {
				return err
			}
			delete(ids, r.ID)
		}
		if len(ids) == 0 {
			continue
		}
		dropped := slices.Sorted(maps.Keys(ids))
		text := strings.Join(dropped[:min(len(dropped), 3)], ", ")
		if len(dropped) > 3 {
			text += ", …"
		}
		w.Say(show.Address(url) + ": replaced; " + terminal.Count(len(dropped), "entry that it had is", "entries that it had are") + " not in the lines, and gone: " + text)
	}
	return nil
}

// file imports the lines of a file. The lines of a feed are in one file.
func (c *importCommand) file(w *command.World, store mirror.Store, name string) (mirror.ImportReport, error) {
	f, err := w.OpenFile(name)
	if err != nil {
		return mirror.ImportReport{}, show.Failure(name, err)
	}
	defer f.Close()
	in, err := mirror.Import(w.Ctx, store, f, c.Replace)
	return in, c.importFailure(name, err)
}

// importFailure names the file in which an import failed, or gives advice after an error
// of the database.
func (c *importCommand) importFailure(file string, err error) error {
	switch problem := c.Failure(err); {
	case err == nil:
		return nil
	case problem != err: // the database's, and not the line's
		return fmt.Errorf("%w; run the same import again to continue", problem)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w: --replace replaces it in %s", inputName(file), err, c.Place())
	}
	return fmt.Errorf("%s: %w", inputName(file), err)
}

// A sourceImport is a run of import from a source.
type sourceImport struct {
	*importCommand
	w        *command.World
	source   *readers.Source
	importer *readers.Importer
	place    string // the file that says where to continue; "" for none
	goesOn   bool   // an earlier import has taken the beginning
	errors   *terminal.Page
	damaged  int
}

// mostSkipped is the number of skipped rows that are named.
const mostSkipped = 100

// importSource imports the feeds named by the arguments from a source kept by others.
func (c *importCommand) importSource(w *command.World, source *readers.Source) (err error) {
	if !source.IsServer() {
		if _, err := os.Stat(source.Name); err != nil {
			return show.Failure(source.Name, err)
		}
	}
	store, clear, err := c.open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.CloseAfter(err), clear()) }()
	server, err := c.server(w, source)
	if err != nil {
		return err
	}
	m := &sourceImport{importCommand: c, w: w, source: source, errors: terminal.NewPage(w.Stderr)}
	m.importer = &readers.Importer{
		Recall:  &mirror.Recall{Mirror: &mirror.Mirror{Store: store, Quota: c.Limits()}, Name: source.Kind, DryRun: c.DryRun},
		Wanted:  source.Wants,
		Check:   checkFeed,
		Damaged: m.damage,
		Skipped: func(err error) { w.Tell("not imported: " + err.Error()) },
	}
	mark := ""
	if !c.DryRun {
		m.importer.Subscribe = func(ctx context.Context, feed readers.Outline) error {
			_, err := database.Subscribe(ctx, store, feed)
			return err
		}
		m.place = m.placeOf()
		if mark = m.read(); mark != "" && !isEmpty(w.Ctx, store) {
			w.Tell("continuing where the last import of this source ended")
			m.goesOn = true
		} else {
			mark = ""
		}
		m.importer.Stored = m.write
	}
	failed := m.run(server, mark)
	if failed == nil && m.place != "" {
		_ = os.Remove(m.place)
	}
	if !c.DryRun && w.Ctx.Err() == nil {
		failed = errors.Join(failed, c.Failure(store.Index(w.Ctx)))
	}
	if err := m.report(failed); err != nil {
		return err
	}
	if failed == nil && m.damaged > 0 {
		return terminal.StatusError(terminal.ExitPartial)
	}
	return failed
}

// open opens the database. A dry run only reads it; if there is none, it uses an empty one.
func (c *importCommand) open(w *command.World) (*database.Store, func() error, error) {
	if !c.DryRun {
		store, err := c.Create(w)
		return store, func() error { return nil }, err
	}
	if _, err := os.Stat(cmp.Or(c.DB, database.DefaultDB())); c.IsPostgres() || err == nil {
		store, err := c.Read(w)
		return store, func() error { return nil }, err
	}
	dir, err := os.MkdirTemp("", "feedhistory")
	if err != nil {
		return nil, nil, err
	}
	empty := database.Location{DB: filepath.Join(dir, "empty.db")}
	store, err := empty.Create(w)
	return store, func() error { return os.RemoveAll(dir) }, err
}

// isEmpty reports whether a database has no feeds: it was removed since the last import.
func isEmpty(ctx context.Context, store mirror.Store) bool {
	for _, err := range store.Feeds(ctx, mirror.FeedQuery{Limit: 1}) {
		return err != nil
	}
	return true
}

// checkFeed says why a feed cannot be mirrored.
func checkFeed(feed string) error {
	if err := terminal.CheckURL(feed); err != nil {
		return errors.New(err.Error()) // not a usageError: the command line is right
	}
	return nil
}

// server returns the server of a source, with the credentials that the flags give.
func (c *importCommand) server(w *command.World, source *readers.Source) (*readers.Server, error) {
	if !source.IsServer() {
		return nil, nil
	}
	if err := terminal.CheckURL(source.Name); err != nil {
		return nil, err
	}
	header, err := c.HeaderFor(source.Name)
	if err == nil && len(header) == 0 {
		err = terminal.UsageError("the reader needs a login: --token-env VARIABLE, or --user NAME with the password in FEEDHISTORY_PASSWORD, or --netrc")
	}
	return &readers.Server{
		URL: source.Name, Header: header, UserAgent: w.UserAgent,
		Transport: w.Transport(), // whoever names a reader means it, wherever it is
		Tries:     4, MaxWait: 5 * time.Minute, Login: "--user, --token-env, --header or --netrc",
	}, err
}

// run imports everything, with a bar.
func (m *sourceImport) run(server *readers.Server, mark string) error {
	bar := m.w.NewBar(0, "reading "+m.source.Kind)
	defer bar.End()
	err := m.importer.Run(m.w.Ctx, func(yield func(readers.Item) error) error {
		return m.source.Read(m.w.Ctx, server, mark, func(found readers.Item) error {
			bar.Describe(fmt.Sprintf("%s · %s", terminal.Count(len(m.importer.Feeds), "feed", "feeds"), terminal.Count(m.importer.Count, "entry", "entries")))
			return yield(found)
		})
	})
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	place := m.Location
	if e, ok := errors.AsType[*readers.SourceError](err); ok {
		if place, err = (database.Location{DB: m.source.Name}), e.Err; m.importer.Count == 0 {
			return place.Failure(err)
		}
	}
	if problem := place.Failure(err); problem != err {
		err = problem
	}
	return fmt.Errorf("%w; run the same import again to continue", err)
}

// damage names a row that is skipped.
func (m *sourceImport) damage(err error) {
	m.damaged++
	switch {
	case m.damaged < mostSkipped:
		m.errors.Para("", "  ", "skipped: "+err.Error())
	case m.damaged == mostSkipped:
		m.errors.Para("", "", "further rows that cannot be read are not named")
	}
}

// A jsonImported is the result of an import for a feed.
type jsonImported struct {
	Feed    string `json:"feed"`
	Title   string `json:"title,omitempty"`
	Added   int    `json:"added"`
	Changed int    `json:"changed"`
	Known   int    `json:"known"`
	Refused int    `json:"refused"`
	Closed  int    `json:"closed"`
}

// report prints the imported entries of each feed.
func (m *sourceImport) report(failed error) error {
	out, asides := terminal.NewPage(m.w.Stdout), terminal.NewPage(m.w.Asides())
	var sum readers.Counts
	for _, t := range m.importer.Feeds {
		sum.Add(t.Counts)
		if m.JSON {
			line := jsonImported{t.Feed, t.Title, t.Added, t.Changed, t.Same, t.Refused, t.Closed}
			if err := terminal.WriteJSON(m.w.Stdout, line); err != nil {
				return err
			}
			continue
		}
		out.Para("", "  ", show.Address(t.Feed)+": "+countsOf(t.Counts, m.DryRun))
	}
	switch {
	case len(m.importer.Feeds) > 0:
	case failed != nil:
		return nil
	case len(m.importer.Others) > 0 || len(m.source.Feeds) == 0 && !m.goesOn:
		return errors.New(terminal.WithoutUser(m.source.Name) + ": nothing was imported: there is no feed of the kind " + m.source.Kind + " in it" + m.others("; "))
	case len(m.source.Feeds) > 0:
		return errors.New(terminal.WithoutUser(m.source.Name) + " does not have " + strings.Join(m.source.Feeds, ", "))
	}
	text := terminal.Count(len(m.importer.Feeds), "feed", "feeds") + " · " + countsOf(sum, m.DryRun)
	if m.damaged > 0 {
		text += " · " + terminal.Count(m.damaged, "row", "rows") + " skipped"
	}
	text += m.others(" · ")
	asides.Para("", "", text)
	if sum.Refused > 0 {
		m.errors.Para("", "", "the quota of a feed has no room for "+terminal.Count(sum.Refused, "entry", "entries")+": raise --quota, or --quota-entries")
	}
	return errors.Join(out.Err, asides.Err, m.errors.Err)
}

// others names the first of the source's files that are no feed documents.
func (m *sourceImport) others(before string) string {
	if len(m.importer.Others) == 0 {
		return ""
	}
	var names []string
	for _, name := range m.importer.Others[:min(3, len(m.importer.Others))] {
		names = append(names, filepath.Base(name))
	}
	if len(names) < len(m.importer.Others) {
		names = append(names, "…")
	}
	return before + terminal.Count(len(m.importer.Others), "other file", "other files") + ": " + strings.Join(names, ", ")
}

// countsOf returns the numbers of a feed as text.
func countsOf(r readers.Counts, dry bool) string {
	added, changed := "added", "changed"
	if dry {
		added, changed = "to add", "to change"
	}
	text := terminal.Counts(fmt.Sprintf("%d %s", r.Added, added), terminal.Part{N: r.Changed, Says: changed},
		terminal.Part{N: r.Same, Says: "already there"}, terminal.Part{N: r.Refused, Says: "without room"})
	if r.Closed > 0 {
		text += " · " + terminal.Count(r.Closed, "gap", "gaps") + " closed"
	}
	return text
}

// placeOf returns the file for where to continue. Its name tells the source and the database,
// its content nothing.
func (m *sourceImport) placeOf() string {
	dir := marks()
	if dir == "" {
		return ""
	}
	name := m.source.Name
	state := ""
	if !m.source.IsServer() {
		if absolute, err := filepath.Abs(name); err == nil {
			name = absolute
		}
		if info, err := os.Stat(name); err == nil && m.source.Kind != "newsboat" { // a changed file is another one
			state = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		}
	}
	place, err := filepath.Abs(m.DB)
	if err != nil || m.IsPostgres() {
		place = m.DB
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{m.source.Kind, name, state, place}, m.source.Feeds...), "\n")))
	return filepath.Join(dir, hex.EncodeToString(sum[:16]))
}

// marks is the directory of the files that say where to continue; "" for none.
func marks() string {
	db := database.DefaultDB()
	if db == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(db), "imports")
}

// read returns the mark of an import that was cut short; "" if there was none.
func (m *sourceImport) read() string {
	if m.place == "" {
		return ""
	}
	text, err := os.ReadFile(m.place)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// write keeps a mark.
func (m *sourceImport) write(mark string) error {
	if m.place == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(m.place), 0o700); err != nil {
		return err
	}
	return os.WriteFile(m.place, []byte(mark+"\n"), 0o600)
}
