package main

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The verb harvest. What a protocol makes of the flags is in a file of its own.
type harvestCommand struct {
	URL         string         `arg:"" name:"URL" help:"The collection's address."`
	Protocol    string         `required:"" enum:"atom-pmh,datareplication,modified-range" placeholder:"PROTOCOL" help:"How to ask: atom-pmh, datareplication or modified-range."`
	State       string         `aliases:"mark,cursor" placeholder:"FILE" help:"Begin where the last harvest ended, and note there where this one did; also --mark or --cursor."`
	Accept      []string       `sep:"none" placeholder:"TYPE" help:"Of atom-pmh: a media type that records are wanted in, the best first (repeatable)."`
	Snapshot    string         `placeholder:"URL" help:"Of datareplication: begin with a snapshot, whose index is at the address."`
	MaxEntity   size           `default:"64MiB" placeholder:"SIZE" help:"Of datareplication: the size of an entity at most (default: ${default})."`
	Lenient     bool           `help:"Of datareplication: take entities that have no Content-ID, or that of another, or an unknown operation."`
	Dialect     string         `default:"auto" enum:"auto,modified-range,range,gdata" placeholder:"DIALECT" help:"Of modified-range: modified-range, range, gdata, or auto: whichever the server heeds (the default)."`
	Overlap     *time.Duration `placeholder:"TIME" help:"Of modified-range and atom-pmh: by how much the next harvest reaches back (default: 1m, and nothing for atom-pmh)."`
	Fetch       bool           `help:"Of atom-pmh: print the records themselves as well. What fails is noted with the state, and fetched by the next harvest."`
	DB          string         `name:"db" placeholder:"FILE|URL" help:"Harvest into a mirror, as sync does: a file, or the postgres:// URL of a database."`
	Key         string         `placeholder:"FIELD" help:"Of datareplication into a mirror: the header field of an entity that names its resource. Without one the mirror has a log."`
	MaxRequests int            `default:"10000" placeholder:"N" help:"Requests to make at most (default: ${default})."`
	Format      string         `default:"jsonl" enum:"jsonl,json" placeholder:"FORMAT" help:"jsonl: one change a line (the default); json: one object with all of them and the verdict."`
	JSON        bool           `name:"json" help:"Print JSON Lines (one object a line): each change, which is the default; with --db, the collection."`

	credentials

	networkFlags
}

// Help is what --help says beyond the flags.
func (c *harvestCommand) Help() string {
	return "What was modified or deleted since the last harvest goes to standard output, a report to standard error. " +
		"The state is noted only if nothing is missing, after everything has been printed; else the exit status is 3, " +
		"and the next harvest begins where this one did. Only datareplication can go on in the midst: " +
		"there the state is always how far everything has been printed.\n\n" +
		"With --db entries and deletions go to a mirror instead, which list, entries, export and serve can show, " +
		"and how far the harvest has come is noted there."
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
		return errors.New("--db: a mirror knows itself how far it has come, and has no place for what --fetch brings")
	case c.Format == "json" && (c.DB != "" || c.JSON):
		return errors.New("--format json excludes --json and --db")
	case c.Key != "" && c.DB == "":
		return errors.New("--key: only a mirror needs it (--db)")
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
			return fmt.Errorf("%s: %s does not know it", flag.name, c.Protocol)
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

// Run harvests the collection, prints what came and notes the state.
func (c *harvestCommand) Run(w *world) error {
	if err := checkURL(c.URL); err != nil {
		return err
	}
	if c.Snapshot != "" {
		if err := checkURL(c.Snapshot); err != nil {
			return err
		}
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
