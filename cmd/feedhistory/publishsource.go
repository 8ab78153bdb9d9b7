package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// This file refuses sources that were cut short: archives are permanent, so entries
// published too late stay in the wrong place, and deletions reach every reader.

// checkSource refuses a source of which a part may be missing.
func (c *publishCommand) checkSource(w *command.World, in *input) error {
	if in.about.Private && !c.IncludePrivate {
		return errors.New("the entries come from a private feed, and everybody can read what you publish; nothing is published: give --include-private if you mean it")
	}
	if in.cut != nil && !c.Force {
		explain.Gap(terminal.NewPage(w.Stderr), in.cut)
		return errors.New("the history was not read to its end; " + c.unread())
	}
	raw := in.about.HasVerdicts()
	if raw && in.piped && !in.about.Ended {
		return errors.New("the lines break off: those of --raw end with a record of the type end; nothing is published. " +
			"Run the command that writes them again; lines of an earlier version must be in a file")
	}
	if !c.DeleteMissing {
		return nil
	}
	switch {
	case !in.whole:
		return errors.New("--delete-missing: the source may have more entries than were read, so none is deleted")
	case c.MaxDeletions.IsSet():
	case raw && !in.about.Ended:
		return errors.New("--delete-missing: the lines do not end with the record that ends those of --raw, so they may have been cut short, " +
			"and none is deleted; write them again, or give --max-deletions")
	case in.piped && !raw:
		return errors.New("--delete-missing: lines from a pipe may have been cut short, so none is deleted; " +
			"give a file or --max-deletions, or pipe the lines of --raw")
	}
	return nil
}

// unread says why nothing is published before a history has been read, and how to read a
// long one.
func (c *publishCommand) unread() string {
	text := "nothing is published, because older entries would come after newer ones: "
	if !argument.IsURL(c.From) {
		return text + "read on with sync, or fetch it again"
	}
	db := c.DB
	if db == "" {
		db = database.DefaultDB()
	}
	from := argument.WithoutUser(c.From)
	return text + fmt.Sprintf("try again, or mirror a long history first: feedhistory sync %s continues where it was cut short; "+
		"when it has read everything, feedhistory publish --from %s --db %s", from, from, db)
}

// loadMirror reads a feed from a mirror, as export --raw writes it.
func (c *publishCommand) loadMirror(w *command.World) (in *input, err error) {
	location := &database.Location{DB: c.DB}
	store, err := location.Read(w)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	export := &exportCommand{Location: *location, URLs: []string{c.From}}
	feeds, err := export.feeds(w, store)
	if err != nil {
		return nil, err
	}
	lines, out := io.Pipe()
	go func() { out.CloseWithError(export.exportRaw(w.Ctx, out, store, feeds)) }()
	defer lines.Close()
	if in, err = c.loadLines(lines, false); err != nil {
		return nil, location.Failure(err)
	}
	feed, err := store.Feed(w.Ctx, argument.FeedName(c.From))
	if err != nil {
		return nil, location.Unknown(c.From, err)
	}
	if in.about.Private || c.IncludePrivate {
		feed.Private = true
	}
	in.head, err = c.mirroredHead(feed, in)
	return in, err
}

// mirroredHead returns the description of a feed from its mirror.
func (c *publishCommand) mirroredHead(feed *mirror.Feed, in *input) (*feedhistory.Document, error) {
	head, err := feed.Redacted().Document()
	if err != nil {
		return nil, fmt.Errorf("%s: the feed could not be read yet: %s", argument.WithoutUser(c.From), feed.Error)
	}
	head.Coverage = nil
	if in.head != nil {
		head.Coverage = in.head.Coverage
	}
	if feed.Private {
		head = anonymous(head)
	}
	return head, nil
}

// redact removes the address of a private feed.
func (in *input) redact() error {
	feed, entries := in.head.URL, in.entries
	in.head, in.entries = anonymous(in.head), nil
	for _, e := range entries {
		r := publish.NewLine(e)
		r.Feed = feed
		r.Redact()
		if err := in.add(r); err != nil {
			return err
		}
	}
	return nil
}

// anonymous returns a feed's description without any address of the feed.
func anonymous(head *feedhistory.Document) *feedhistory.Document {
	h := *head
	h.URL, h.ID, h.Links = "", "", nil
	if c := head.Coverage; c != nil {
		h.Coverage = &feedhistory.Coverage{Kind: c.Kind, Verdict: c.Verdict}
	}
	return &h
}
