package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// A demoCommand is the verb demo.
type demoCommand struct {
	Listen terminal.Listen `default:"127.0.0.1:8005" placeholder:"ADDRESS" help:"Where the history server listens (default: ${default}); port 0 means any free port."`
}

// Help returns the text of --help before the flags.
func (c *demoCommand) Help() string {
	return "The demo needs no network. It serves a small website with an archived, a paged and a complete feed on this machine, " +
		"mirrors the three in a temporary database, and runs the history server on them until it is interrupted. Then it removes everything."
}

// Run serves the website and the history server until the context ends.
func (c *demoCommand) Run(w *command.World) error {
	listener, err := terminal.ListenAt(c.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	dir, err := os.MkdirTemp("", "feedhistory-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	site, end, err := serveDemoSite(w.Ctx)
	if err != nil {
		return err
	}
	defer end()
	w.NetworkFlags = &command.NetworkFlags{AllowPrivate: true, MaxDocumentBytes: 1 << 20, Proxy: "none"} // the site is on this machine
	if err := w.Prepare(); err != nil {
		return err
	}
	w.Tell("a small website with three feeds is at " + site + "/")
	location := database.Location{DB: filepath.Join(dir, "feeds.db")}
	if err := mirrorDemo(w, &location, site); err != nil {
		return err
	}
	w.Tell("other commands can read the feeds, too: feedhistory fetch --allow-private " + site + demoArchived)
	w.Tell("Ctrl-C ends the demo and removes its database")
	server := serveCommand{Location: location}
	store, reads, err := server.openStore(w)
	if err != nil {
		return err
	}
	defer store.Close()
	return server.serveStore(w, listener, store, reads)
}

// serveDemoSite serves the website on a free port of the loopback interface until end is
// called.
func serveDemoSite(ctx context.Context) (site string, end func(), err error) {
	listener, err := terminal.ListenAt("127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	site = "http://" + listener.Addr().String()
	handler, err := newDemoSite(ctx, site)
	if err != nil {
		listener.Close()
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	var serving sync.WaitGroup
	serving.Go(func() { _ = terminal.Serve(ctx, server, listener, func() {}) }) // only a closed listener ends it
	return site, func() { cancel(); serving.Wait() }, nil
}

// mirrorDemo mirrors the feeds of the website in a new database, and says how complete
// each is.
func mirrorDemo(w *command.World, location *database.Location, site string) error {
	store, err := location.Create(w)
	if err != nil {
		return err
	}
	defer store.Close()
	m := &mirror.Mirror{Store: store, Client: w.Client(w.Stderr)}
	for _, path := range demoFeeds {
		changes, err := m.Update(w.Ctx, site+path)
		if err == nil {
			err = changes.Failure
		}
		if err != nil {
			return show.Failure(site+path, err)
		}
		feed, err := store.Feed(w.Ctx, site+path)
		if err != nil {
			return location.Failure(err)
		}
		fmt.Fprintf(w.Stdout, "%s%s: %s feed · %s · %s · %s\n", site, path, feed.Kind,
			terminal.Count(changes.Documents, "document", "documents"), terminal.Count(changes.Added, "entry", "entries"), changes.Feed.Verdict)
	}
	return nil
}

// The feeds, as paths on the site.
const (
	demoArchived = "/fables.atom"   // 40 entries: a subscription document and archives of ten
	demoPaged    = "/elements.atom" // 30 entries, ten a page
	demoComplete = "/planets.rss"   // 8 entries, all in one document
)

// demoFeeds are the paths of all feeds.
var demoFeeds = []string{demoArchived, demoPaged, demoComplete}

var (
	//go:embed demo/fables.txt
	fables string
	//go:embed demo/elements.txt
	elements string
	//go:embed demo/planets.txt
	planets string
)

// demoStart is the time of the first entry of each feed; another follows each week.
var demoStart = time.Date(2025, 1, 5, 9, 0, 0, 0, time.UTC)

// newDemoSite returns the site. Base is the URL under which it is served, without a slash at its
// end: the documents link to one another by it.
func newDemoSite(ctx context.Context, base string) (http.Handler, error) {
	output := new(publish.MemoryOutput)
	head, entries, err := demoFeed(base+demoArchived, "Aesop’s fables, one a week", fables)
	if err != nil {
		return nil, err
	}
	p := &publish.Publisher{
		Output: output, Base: base + "/", Head: head, Name: strings.TrimPrefix(demoArchived, "/"), Split: compose.Split{Size: 10},
	}
	if _, err := p.Publish(ctx, publish.Batch{Entries: entries, Now: entries[0].Updated}); err != nil {
		return nil, err
	}
	put := func(url string, format feedhistory.Format, doc *feedhistory.Document) {
		var b bytes.Buffer
		err = errors.Join(err, compose.NewWriter(&b, format, doc).Close(), output.Put(ctx, strings.TrimPrefix(url, base+"/"), b.Bytes()))
	}
	if head, entries, err = demoFeed(base+demoPaged, "The first thirty elements", elements); err != nil {
		return nil, err
	}
	pageURL := func(n int) string {
		if n == 1 {
			return base + demoPaged
		}
		return fmt.Sprintf("%s/elements-%d.atom", base, n)
	}
	for i, page := range compose.Pages(head, entries, 10, pageURL) {
		put(pageURL(i+1), feedhistory.FormatAtom, page)
	}
	if err != nil {
		return nil, err
	}
	if head, entries, err = demoFeed(base+demoComplete, "The planets", planets); err != nil {
		return nil, err
	}
	put(base+demoComplete, feedhistory.FormatRSS, compose.Complete(head, entries, base+demoComplete))
	return &publish.Handler{FS: output}, err
}

// demoFeed returns the head and the entries, newest first, of a text with an entry a line:
// title | text, or title | text | moral.
func demoFeed(url, title, text string) (*feedhistory.Document, []*feedhistory.Entry, error) {
	head := &feedhistory.Document{ID: url, Title: title, Authors: []feedhistory.Person{{Name: "feedhistory’s demo"}}}
	var entries []*feedhistory.Entry
	for line := range strings.Lines(text) {
		title, rest, _ := strings.Cut(strings.TrimSpace(line), " | ")
		body, moral, hasMoral := strings.Cut(rest, " | ")
		html := "<p>" + body + "</p>"
		if hasMoral {
			html += "<p><em>" + moral + "</em></p>"
		}
		at := demoStart.AddDate(0, 0, 7*len(entries))
		entry, err := compose.Draft{
			ID: fmt.Sprintf("%s#%d", url, len(entries)+1), Title: feedhistory.Text{Body: title}, Published: at, Updated: at,
			Content: feedhistory.Text{Type: "html", Body: html},
		}.Entry()
		if err != nil {
			return nil, nil, err
		}
		entries = append([]*feedhistory.Entry{entry}, entries...)
	}
	head.Updated = entries[0].Updated
	return head, entries, nil
}
