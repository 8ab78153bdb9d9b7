package main

import (
	"errors"

	"github.com/alecthomas/kong"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/protocols"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// A harvestCommand is the verb harvest. Each protocol has its own file.
type harvestCommand struct{ protocols.Source }

// Help returns the text of --help before the flags.
func (c *harvestCommand) Help() string {
	return "harvest prints the changes and deletions since the last harvest, and reports on standard error. " +
		"It records the state after it has printed everything, and only if nothing is missing; otherwise the exit status is 3, " +
		"and the next harvest begins where this one began. datareplication and modified-range continue in the middle: " +
		"their state says up to where everything has been printed. atom-pmh prints the changes oldest first, once it has read all documents; until then they are in a temporary file. " +
		"modified-range prints the most recent changes first; of two lines with the same id, the later time counts.\n\n" +
		"With --db, entries and deletions go into a mirror instead, which list, entries, export and serve can show. " +
		"The mirror also records how far the harvest has come, document by document, so a harvest by any protocol continues where it was cut short."
}

// Validate refuses a negative overlap, incompatible flags, and flags of another protocol.
func (c *harvestCommand) Validate(call *kong.Context) error {
	switch {
	case c.Overlap != nil && *c.Overlap < 0:
		return errors.New("--overlap: a time cannot be negative")
	case c.Format == "json" && (c.DB != "" || c.JSON):
		return errors.New("--format json excludes --json and --db")
	case c.Key != "" && c.DB == "":
		return errors.New("--key is for --db")
	}
	return terminal.CheckProtocol(call, c.Protocol)
}

// Run harvests the collection, prints the changes and records the state.
func (c *harvestCommand) Run(w *command.World) error {
	for _, url := range []*string{&c.URL, &c.Snapshot} {
		if *url == "" && url == &c.Snapshot {
			continue
		}
		if err := terminal.CheckURL(*url); err != nil {
			return err
		}
		*url = terminal.WebAddress(*url)
	}
	if err := c.LogIn(); err != nil {
		return err
	}
	if c.DB != "" {
		return c.Keep(w)
	}
	return c.Harvest(w)
}
