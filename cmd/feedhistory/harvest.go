package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
)

// A harvestCommand is the verb harvest. Each protocol has its own file.
type harvestCommand struct {
	URL         string         `arg:"" name:"URL" help:"The collection's address."`
	Protocol    string         `required:"" enum:"atom-pmh,datareplication,modified-range" placeholder:"PROTOCOL" help:"The protocol: atom-pmh, datareplication or modified-range."`
	State       string         `aliases:"mark,cursor" placeholder:"FILE" help:"File that records where a harvest ended: begin where the last one ended, and record where this one ends; also --mark or --cursor."`
	Accept      []string       `sep:"none" placeholder:"TYPE" help:"With atom-pmh: media type in which to request records (repeatable; the preferred one first)."`
	Snapshot    string         `placeholder:"URL" help:"With datareplication: address of the index of a snapshot to begin with."`
	MaxEntity   argument.Size  `default:"64MiB" placeholder:"SIZE" help:"With datareplication: maximum size of an entity (default: ${default})."`
	Lenient     bool           `help:"With datareplication: accept entities without a Content-ID, with the Content-ID of another entity, or with an unknown operation."`
	Dialect     string         `default:"auto" enum:"auto,modified-range,range,gdata" placeholder:"DIALECT" help:"With modified-range: modified-range, range, gdata, or auto (the default), which is the first that the server understands."`
	Overlap     *time.Duration `placeholder:"TIME" help:"With modified-range and atom-pmh: how far the next harvest reaches back (default: 1m, with atom-pmh 0s)."`
	Fetch       bool           `help:"With atom-pmh: also request and print the records themselves. The state lists the records that could not be fetched, for the next harvest."`
	DB          string         `name:"db" placeholder:"FILE|URL" help:"Harvest into a mirror: a file, or the postgres:// URL of a database."`
	Key         string         `placeholder:"FIELD" help:"With datareplication and --db: header field of an entity that names its resource. Without this flag, the mirror has an entry for each entity, as a log does."`
	MaxRequests int            `default:"10000" placeholder:"N" help:"Make at most N requests (default: ${default})."`
	Format      string         `default:"jsonl" enum:"jsonl,json" placeholder:"FORMAT" help:"jsonl: one change a line (the default); json: one object with all of them and the verdict."`
	JSON        bool           `name:"json" help:"Print JSON Lines (one object a line): each change, which is the default; with --db, the result for the collection."`

	logins.Credentials

	network.Flags
}

// Help returns the text of --help that precedes the flags.
func (c *harvestCommand) Help() string {
	return "harvest prints what was modified or deleted since the last harvest, and reports on standard error. " +
		"It records the state after it has printed everything, and only if nothing is missing; otherwise the exit status is 3, " +
		"and the next harvest begins where this one began. Only datareplication can continue in the middle: " +
		"its state always says up to where everything has been printed.\n\n" +
		"With --db, entries and deletions go into a mirror instead, which list, entries, export and serve can show; " +
		"the mirror also records where the harvest ended."
}

// Validate refuses limits of zero, flags that exclude each other, and flags that have no
// effect with the protocol.
func (c *harvestCommand) Validate() error {
	switch {
	case c.MaxRequests < 1:
		return errors.New("--max-requests: at least 1")
	case c.MaxEntity < 1:
		return errors.New("--max-entity: at least 1")
	case c.Overlap != nil && *c.Overlap < 0:
		return errors.New("--overlap: a time cannot be negative")
	case c.DB != "" && (c.State != "" || c.Fetch):
		return errors.New("--db excludes --state, because a mirror records its own state, and --fetch, because it stores no records")
	case c.Format == "json" && (c.DB != "" || c.JSON):
		return errors.New("--format json excludes --json and --db")
	case c.Key != "" && c.DB == "":
		return errors.New("--key is for --db")
	}
	for _, flag := range []struct {
		name string
		set  bool
		of   []string
	}{
		{"--accept", len(c.Accept) > 0, []string{atomPMH}},
		{"--fetch", c.Fetch, []string{atomPMH}},
		{"--snapshot", c.Snapshot != "", []string{dataReplication}},
		{"--key", c.Key != "", []string{dataReplication}},
		{"--lenient", c.Lenient, []string{dataReplication}},
		{"--dialect", c.Dialect != "auto", []string{modifiedRange}},
		{"--overlap", c.Overlap != nil, []string{modifiedRange, atomPMH}},
	} {
		if flag.set && !slices.Contains(flag.of, c.Protocol) {
			return fmt.Errorf("%s: %s has no such flag", flag.name, c.Protocol)
		}
	}
	return c.Credentials.Check()
}

// inOne reports whether to print the whole harvest as one object.
func (c *harvestCommand) inOne() bool { return c.Format == "json" }

// These are the protocols, as the flag --protocol names them.
const (
	atomPMH         = "atom-pmh"
	dataReplication = "datareplication"
	modifiedRange   = "modified-range"
)

// Run harvests the collection, prints the changes and records the state.
func (c *harvestCommand) Run(w *command.World) error {
	for _, url := range []*string{&c.URL, &c.Snapshot} {
		if *url == "" && url == &c.Snapshot {
			continue
		}
		if err := argument.CheckURL(*url); err != nil {
			return err
		}
		*url = argument.WebAddress(*url)
	}
	if err := c.Credentials.Load(); err != nil {
		return err
	}
	if c.DB != "" {
		return c.keep(w)
	}
	switch c.Protocol {
	case atomPMH:
		return c.atomPMH(w)
	case dataReplication:
		return c.dataReplication(w)
	default:
		return c.modifiedRange(w)
	}
}
