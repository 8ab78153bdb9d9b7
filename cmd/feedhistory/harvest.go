package main

import (
	"errors"
	"fmt"
	"time"
)

// The verb harvest. What a protocol makes of the flags is in a file of its own.
type harvestCommand struct {
	URL         string        `arg:"" name:"URL" help:"The collection's address."`
	Protocol    string        `required:"" enum:"atom-pmh,datareplication,modified-range" placeholder:"PROTOCOL" help:"How to ask: atom-pmh, datareplication or modified-range."`
	State       string        `aliases:"mark,cursor" placeholder:"FILE" help:"Begin where the last harvest ended, and note there where this one did; also --mark or --cursor."`
	Accept      []string      `sep:"none" placeholder:"TYPE" help:"Of atom-pmh: a media type that records are wanted in, the best first (repeatable)."`
	Snapshot    string        `placeholder:"URL" help:"Of datareplication: begin with a snapshot, whose index is at the address."`
	MaxEntity   size          `default:"64MiB" placeholder:"SIZE" help:"Of datareplication: the size of an entity at most (default: ${default})."`
	Lenient     bool          `help:"Of datareplication: take entities that have no Content-ID, or that of another, or an unknown operation."`
	Dialect     string        `default:"auto" enum:"auto,modified-range,range,gdata" placeholder:"DIALECT" help:"Of modified-range: modified-range, range, gdata, or auto: whichever the server heeds (the default)."`
	Overlap     time.Duration `default:"1m" placeholder:"TIME" help:"Of modified-range: by how much the next harvest reaches back (default: ${default})."`
	MaxRequests int           `default:"10000" placeholder:"N" help:"Requests to make at most (default: ${default})."`
	JSON        bool          `name:"json" help:"Print one JSON object with the verdict, rather than a line for each change."`
}

// Help is what --help says beyond the flags.
func (c *harvestCommand) Help() string {
	return "What was modified or deleted since the last harvest goes to standard output, a report to standard error. " +
		"The state is noted only if nothing is missing, after everything has been printed; else the exit status is 3, " +
		"and the next harvest begins where this one did. Only datareplication can go on in the midst: " +
		"there the state is always how far everything has been printed."
}

// Validate refuses limits that allow for nothing, and flags that would be
// disregarded.
func (c *harvestCommand) Validate() error {
	switch {
	case c.MaxRequests < 1:
		return errors.New("--max-requests: at least 1")
	case c.MaxEntity < 1:
		return errors.New("--max-entity: at least 1")
	case c.Overlap < 0:
		return errors.New("--overlap: a time cannot be negative")
	case len(c.Accept) > 0 && c.Protocol != atomPMH:
		return fmt.Errorf("--accept: %s does not know it", c.Protocol)
	case c.Snapshot != "" && c.Protocol != dataReplication:
		return fmt.Errorf("--snapshot: %s does not know it", c.Protocol)
	case c.Lenient && c.Protocol != dataReplication:
		return fmt.Errorf("--lenient: %s does not know it", c.Protocol)
	case c.Dialect != "auto" && c.Protocol != modifiedRange:
		return fmt.Errorf("--dialect: %s does not know it", c.Protocol)
	}
	return nil
}

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
	switch c.Protocol {
	case atomPMH:
		return c.atomPMH(w)
	case dataReplication:
		return c.dataReplication(w)
	default:
		return c.modifiedRange(w)
	}
}
