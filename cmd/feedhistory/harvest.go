package main

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A harvestCommand is the verb harvest. Each protocol has its own file.
type harvestCommand struct {
	URL         string         `arg:"" name:"URL" help:"The collection's address."`
	Protocol    string         `required:"" enum:"atom-pmh,datareplication,modified-range" placeholder:"PROTOCOL" help:"The protocol: atom-pmh, datareplication or modified-range."`
	State       string         `aliases:"mark,cursor" placeholder:"FILE" help:"File that records where the last harvest ended: begin there, and record where this one ends; also --mark or --cursor."`
	Accept      []string       `sep:"none" placeholder:"TYPE" help:"With atom-pmh: a media type to request records in, the best first (repeatable)."`
	Snapshot    string         `placeholder:"URL" help:"With datareplication: begin with the snapshot whose index is at this address."`
	MaxEntity   size           `default:"64MiB" placeholder:"SIZE" help:"With datareplication: the largest size of an entity (default: ${default})."`
	Lenient     bool           `help:"With datareplication: accept entities without a Content-ID, with that of another, or with an unknown operation."`
	Dialect     string         `default:"auto" enum:"auto,modified-range,range,gdata" placeholder:"DIALECT" help:"With modified-range: modified-range, range, gdata, or auto, the first that the server heeds (the default)."`
	Overlap     *time.Duration `placeholder:"TIME" help:"With modified-range and atom-pmh: how far the next harvest reaches back (default: 1m, with atom-pmh 0s)."`
	Fetch       bool           `help:"With atom-pmh: also print the records themselves. Those that fail are recorded with the state, for the next harvest."`
	DB          string         `name:"db" placeholder:"FILE|URL" help:"Harvest into a mirror: a file, or the postgres:// URL of a database."`
	Key         string         `placeholder:"FIELD" help:"With datareplication and --db: the header field of an entity that names its resource. Without it, the mirror is a log."`
	MaxRequests int            `default:"10000" placeholder:"N" help:"Make at most N requests (default: ${default})."`
	Format      string         `default:"jsonl" enum:"jsonl,json" placeholder:"FORMAT" help:"jsonl: one change a line (the default); json: one object with all of them and the verdict."`
	JSON        bool           `name:"json" help:"Print JSON Lines (one object a line): each change, which is the default; with --db, the collection."`

	credentials

	networkFlags
}

// Help returns the text of --help that precedes the flags.
func (c *harvestCommand) Help() string {
	return "What was modified or deleted since the last harvest goes to standard output, a report to standard error. " +
		"The state is recorded after everything has been printed, and only if nothing is missing; otherwise the exit status is 3, " +
		"and the next harvest begins where this one did. Only datareplication can continue in the middle: " +
		"its state always says how far everything has been printed.\n\n" +
		"With --db, entries and deletions go into a mirror instead, which list, entries, export and serve can show; " +
		"the mirror also records how far the harvest has come."
}

// Validate refuses limits that allow for nothing, and flags that would be
// disregarded.
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
	return c.credentials.check()
}

// inOne reports whether all that came is to be one object.
func (c *harvestCommand) inOne() bool { return c.Format == "json" }

// The protocols, as the flag names them.
const (
	atomPMH         = "atom-pmh"
	dataReplication = "datareplication"
	modifiedRange   = "modified-range"
)

// Run harvests the collection, prints what it brought and records the state.
func (c *harvestCommand) Run(w *world) error {
	for _, url := range []*string{&c.URL, &c.Snapshot} {
		if *url == "" && url == &c.Snapshot {
			continue
		}
		if err := checkURL(*url); err != nil {
			return err
		}
		*url = webAddress(*url)
	}
	if err := c.credentials.read(); err != nil {
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
