package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/markdown"
	"github.com/feedhistory/feedhistory/cmd/internal/provenance"
	"github.com/feedhistory/feedhistory/publish"
)

// An input is the content of a source.
type input struct {
	entries []*feedhistory.Entry
	deleted []feedhistory.Tombstone
	head    *feedhistory.Document // describes the feed; nil if the source does not
	about   provenance.Provenance // of lines
	cut     *feedhistory.Gap      // where the reading was cut short; nil if it was not
	whole   bool                  // the source has no other entries
	shown   int                   // number of entries the source's own document shows; zero if unknown
	partial bool                  // something is known to be missing
	piped   bool                  // the source is lines from a pipe, which may have been cut
	left    map[string]int        // articles left out, by reason
}

// load reads the source named by --from.
func (c *publishCommand) load(w *command.World) (*input, error) {
	if info, err := os.Stat(c.From); err == nil && info.IsDir() {
		return c.loadMarkdown()
	}
	if c.Link != "" || c.EntryID != "" {
		return nil, exit.UsageError("--link and --entry-id are for a directory of Markdown, with --from")
	}
	switch {
	case c.DB != "":
		return c.loadMirror(w)
	case argument.IsURL(c.From):
		return c.loadHistory(w)
	}
	in, err := w.Open(c.From)
	if err != nil {
		return nil, explain.Failure(c.From, err)
	}
	defer in.Close()
	text := bufio.NewReaderSize(in, 64<<10)
	if isFeed(text) {
		return c.loadFeed(text)
	}
	return c.loadLines(text, w.IsStream(c.From))
}

// loadLines reads lines of JSON, with the records about the feeds they come from.
func (c *publishCommand) loadLines(text io.Reader, piped bool) (*input, error) {
	loaded := &input{piped: piped}
	about := &loaded.about
	for r, err := range publish.Lines(io.TeeReader(text, about)) {
		if err != nil {
			return nil, explain.Failure(c.From, err)
		}
		if r.Feed != "" {
			about.Feed(r.Feed)
		}
		if about.Private = about.Private || r.Private; about.Private || c.IncludePrivate {
			r.Redact()
		}
		if !r.Deleted.Deleted {
			if err := loaded.add(r); err != nil {
				return nil, explain.Failure(c.From, err)
			}
		}
		if r.Deleted.Deleted {
			loaded.deleted = append(loaded.deleted, feedhistory.Tombstone{Ref: r.ID, When: r.Deleted.When})
		}
	}
	if err := about.Close(); err != nil {
		return nil, err
	}
	loaded.whole, loaded.cut = about.IsWhole(), about.CutShort()
	if own := c.publisher().URL(); len(about.Feeds) > 0 {
		loaded.head = &feedhistory.Document{Coverage: about.Coverage(own)}
		loaded.partial = loaded.head.Coverage != nil && exit.Of(loaded.head.Coverage.Verdict) != exit.OK
	}
	return loaded, nil
}

// add adds the entry described by a record.
func (in *input) add(r *publish.Line) error {
	e, err := r.Entry()
	if err != nil {
		return fmt.Errorf("the entry %s: %w", r.ID, err)
	}
	in.entries = append(in.entries, e)
	return nil
}

// isFeed reports whether an input is a feed document rather than lines of JSON: XML, or an
// object over several lines or with the version of JSON Feed.
func isFeed(in *bufio.Reader) bool {
	start, _ := in.Peek(4096)
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\ufeff")), " \t\r\n")
	line, _, _ := bytes.Cut(start, []byte("\n"))
	return bytes.HasPrefix(start, []byte("<")) || bytes.Equal(bytes.TrimSpace(line), []byte("{")) ||
		bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line, []byte("jsonfeed.org/version/"))
}

// loadMarkdown reads a directory of articles.
func (c *publishCommand) loadMarkdown() (*input, error) {
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return nil, err
	}
	site := &markdown.Site{Files: os.DirFS(c.From), Base: c.Base, Link: c.Link, ID: c.EntryID, Now: now(), Zone: zone}
	records, err := site.Records()
	in := &input{whole: true, left: site.Left}
	for _, r := range records {
		err = errors.Join(err, in.add(r))
	}
	if err != nil {
		return nil, explain.Failure(c.From, err)
	}
	return in, nil
}

// loadFeed reads a feed document. Its references resolve against its own URL if it
// names one, or else against the new feed's.
func (c *publishCommand) loadFeed(r io.Reader) (*input, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	base := c.publisher().URL()
	parser := feedhistory.Parser{Strict: true} // publish no part of a damaged document
	doc, err := parser.Parse(bytes.NewReader(text), base)
	if err != nil {
		return nil, explain.Failure(c.From, err)
	}
	if self, ok := doc.Links.Rel(feedhistory.RelSelf); ok && self.Href != base {
		if doc, err = parser.Parse(bytes.NewReader(text), self.Href); err != nil {
			return nil, explain.Failure(c.From, err)
		}
	}
	older, more := doc.Older()
	h, err := feedhistory.Merge(func(yield func(*feedhistory.Document, error) bool) { yield(doc, nil) })
	if err != nil {
		return nil, err
	}
	if more {
		return nil, explain.Failure(c.From, errors.New("the feed has older documents; give the feed's address instead, so that publish reads them: "+older.Href))
	}
	return fromHistory(h), nil
}

// loadHistory fetches a feed's whole history.
func (c *publishCommand) loadHistory(w *command.World) (*input, error) {
	if err := argument.CheckURL(c.From); err != nil {
		return nil, err
	}
	f := &feedFetch{fetchCommand: &fetchCommand{Format: "json"}, World: w, client: w.Client(w.Stderr)}
	f.client.Budget = c.Limits()
	var r *backfill.Recovery
	from, err := w.Resolve(f.client, argument.WebAddress(c.From), func(address string) (err error) {
		r, err = f.history(address)
		return err
	})
	if w.Ctx.Err() != nil {
		return nil, exit.InterruptedError{Err: errors.New("interrupted; " + c.unread())}
	}
	if err != nil {
		return nil, explain.Failure(from, err)
	}
	reportHistory(w, r.History, r.Verdict(), explain.VerdictText(r.Verdict()))
	in := fromHistory(r.History)
	in.about.Private = f.isPrivate(from) || f.isPrivate(in.head.URL)
	in.cut = provenance.CutShort(r.History.Gaps, false)
	if in.head.Coverage == nil && !in.whole && argument.SiteName(in.head.URL) != argument.SiteName(c.Base) {
		// The feed of the same site may have everything without declaring it. The feed of
		// another site has only the history it declares.
		in.head.Coverage = &feedhistory.Coverage{Of: in.head.URL, Kind: r.History.Kind, Verdict: r.Verdict()}
	}
	if c.IncludePrivate {
		err = in.redact()
	}
	return in, err
}

// fromHistory returns a history as an input. The head declares the known gaps.
func fromHistory(h *feedhistory.History) *input {
	head := *h.Head
	head.Coverage = h.Coverage()
	return &input{
		entries: h.Entries, deleted: h.Deleted, head: &head, shown: publish.ShownIn(h),
		whole:   h.Verdict() == feedhistory.Whole,
		partial: exit.Of(h.Verdict()) != exit.OK,
	}
}

// publishedHead returns the published subscription document with a name; nil if there is
// none yet.
func publishedHead(files fs.FS, name string) (*feedhistory.Document, error) {
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return feedhistory.Parse(f, "")
}
