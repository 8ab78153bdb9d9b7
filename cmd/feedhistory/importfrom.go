package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/memory"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/kinds"
	"github.com/feedhistory/feedhistory/cmd/internal/readerapi"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A memoryImport is a run of import for entries kept by others.
type memoryImport struct {
	*importCommand
	w        *command.World
	source   *kinds.Source
	importer *memory.Importer
	place    string // the file that says where to continue; "" for none
	errors   *terminal.Page
	damaged  int
}

// mostSkipped is the number of skipped rows that are named.
const mostSkipped = 100

// memory imports the feeds named by the arguments from a source kept by others.
func (c *importCommand) memory(w *command.World, source *kinds.Source) (err error) {
	if !source.IsServer() {
		if _, err := os.Stat(source.Name); err != nil {
			return explain.Failure(source.Name, err)
		}
	}
	store, clear, err := c.open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(), clear()) }()
	server, err := c.server(w, source)
	if err != nil {
		return err
	}
	m := &memoryImport{importCommand: c, w: w, source: source, errors: terminal.NewPage(w.Stderr)}
	m.importer = &memory.Importer{
		Recall:  &mirror.Recall{Mirror: &mirror.Mirror{Store: store, Quota: c.Limits()}, Name: source.Kind, DryRun: c.DryRun},
		Wanted:  source.Wants,
		Check:   checkFeed,
		Damaged: m.damage,
		Skipped: func(err error) { w.Tell("not imported: " + err.Error()) },
	}
	mark := ""
	if !c.DryRun {
		m.place = m.placeOf()
		if mark = m.read(); mark != "" && !isEmpty(w.Ctx, store) {
			w.Tell("continuing where the last import of this source ended")
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
		return exit.StatusError(exit.Partial)
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
	if err := argument.CheckURL(feed); err != nil {
		return errors.New(err.Error()) // not a usageError: the command line is right
	}
	return nil
}

// server returns the server of a source, with the credentials that the flags give.
func (c *importCommand) server(w *command.World, source *kinds.Source) (*readerapi.Server, error) {
	if !source.IsServer() {
		return nil, nil
	}
	if err := argument.CheckURL(source.Name); err != nil {
		return nil, err
	}
	credential, err := c.CredentialFor(source.Name)
	if err != nil {
		return nil, err
	}
	flags := *w.Flags
	flags.AllowPrivate = true // whoever names a reader means it, wherever it is
	transport, err := flags.Transport()
	if err != nil {
		return nil, err
	}
	s := &readerapi.Server{
		URL: source.Name, Header: http.Header{}, Transport: transport, UserAgent: w.UserAgent,
		Retry: feedhistory.Retry{Tries: 4, MaxWait: 5 * time.Minute}, Login: "--user, --token-env, --header or --netrc",
	}
	if credential == nil {
		return nil, exit.UsageError("the reader needs a login: --token-env VARIABLE, or --user NAME with the password in FEEDHISTORY_PASSWORD, or --netrc")
	}
	if credential.Header != nil {
		s.Header = credential.Header.Clone()
	}
	if credential.Authorization != "" {
		s.Header.Set("Authorization", credential.Authorization)
	}
	return s, nil
}

// run imports everything, with a bar.
func (m *memoryImport) run(server *readerapi.Server, mark string) error {
	bar := m.w.NewBar(0, "reading "+m.source.Kind)
	defer bar.End()
	source := m.source.Read(m.w.Ctx, server, mark)
	shown := func(yield func(memory.Found, error) bool) {
		for found, err := range source {
			if !yield(found, err) {
				return
			}
			bar.Describe(fmt.Sprintf("%s · %s", terminal.Count(len(m.importer.Feeds), "feed", "feeds"), terminal.Count(m.importer.Count, "entry", "entries")))
		}
	}
	err := m.importer.Run(m.w.Ctx, shown)
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	place := m.Location
	if e, ok := errors.AsType[*memory.SourceError](err); ok {
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
func (m *memoryImport) damage(err error) {
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
func (m *memoryImport) report(failed error) error {
	out, asides := terminal.NewPage(m.w.Stdout), terminal.NewPage(m.w.Asides())
	var sum mirror.RecallReport
	for _, t := range m.importer.Feeds {
		sum.Add(t.RecallReport)
		if m.JSON {
			line := jsonImported{t.Feed, t.Title, t.Added, t.Changed, t.Same, t.Refused, t.Closed}
			if err := terminal.WriteJSON(m.w.Stdout, line); err != nil {
				return err
			}
			continue
		}
		out.Para("", "  ", argument.WithoutUser(t.Feed)+": "+countsOf(t.RecallReport, m.DryRun))
	}
	switch {
	case len(m.importer.Feeds) > 0:
	case failed != nil:
		return nil
	case len(m.source.Feeds) > 0:
		return errors.New(argument.WithoutUser(m.source.Name) + " does not have " + strings.Join(m.source.Feeds, ", "))
	}
	text := terminal.Count(len(m.importer.Feeds), "feed", "feeds") + " · " + countsOf(sum, m.DryRun)
	if m.damaged > 0 {
		text += " · " + terminal.Count(m.damaged, "row", "rows") + " skipped"
	}
	asides.Para("", "", text)
	if sum.Refused > 0 {
		m.errors.Para("", "", "the quota of a feed has no room for "+terminal.Count(sum.Refused, "entry", "entries")+": raise --quota, or --quota-entries")
	}
	return errors.Join(out.Err, asides.Err, m.errors.Err)
}

// countsOf returns the numbers of a feed as text.
func countsOf(r mirror.RecallReport, dry bool) string {
	added, changed := "added", "changed"
	if dry {
		added, changed = "to add", "to change"
	}
	text := fmt.Sprintf("%d %s", r.Added, added)
	for _, part := range []struct {
		n    int
		text string
	}{{r.Changed, changed}, {r.Same, "already there"}, {r.Refused, "without room"}} {
		if part.n > 0 {
			text += fmt.Sprintf(" · %d %s", part.n, part.text)
		}
	}
	if r.Closed > 0 {
		text += " · " + terminal.Count(r.Closed, "gap", "gaps") + " closed"
	}
	return text
}

// placeOf returns the file for where to continue. Its name tells the source and the database,
// its content nothing.
func (m *memoryImport) placeOf() string {
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
		if info, err := os.Stat(name); err == nil && m.source.Kind != "newsboat" { // a changed takeout is another one
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
func (m *memoryImport) read() string {
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
func (m *memoryImport) write(mark string) error {
	if m.place == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(m.place), 0o700); err != nil {
		return err
	}
	return os.WriteFile(m.place, []byte(mark+"\n"), 0o600)
}
