// Package collection harvests collections by the sibling protocols of RFC 5005, and produces
// them: the work of the verbs harvest and produce, for each protocol in a file of its own.
package collection

import (
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/syncing"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// A Source is a collection to harvest, and how.
type Source struct {
	URL         string         `arg:"" name:"URL" help:"The collection's address."`
	Protocol    string         `required:"" enum:"atom-pmh,datareplication,modified-range" placeholder:"PROTOCOL" help:"The protocol: atom-pmh, datareplication or modified-range."`
	State       string         `aliases:"mark,cursor" placeholder:"FILE" help:"File that records where a harvest ended: begin where the last one ended, and record where this one ends; also --mark or --cursor."`
	Accept      []string       `sep:"none" placeholder:"TYPE" help:"With atom-pmh: media type in which to request records (repeatable; the preferred one first)."`
	Snapshot    string         `placeholder:"URL" help:"With datareplication: address of the index of a snapshot to begin with."`
	MaxEntity   argument.Size  `default:"64MiB" placeholder:"SIZE" help:"With datareplication: maximum size of an entity (default: ${default})."`
	Lenient     bool           `help:"With datareplication: accept entities without a Content-ID, with the Content-ID of another entity, or with an unknown operation."`
	Dialect     string         `default:"auto" enum:"auto,modified-range,range,gdata" placeholder:"DIALECT" help:"With modified-range: modified-range, range, gdata, or auto (the default), which is the first that the server understands."`
	Overlap     *time.Duration `placeholder:"TIME" help:"With modified-range and atom-pmh: how far the next harvest reaches back (default: 1m, with atom-pmh 0s)."`
	Historical  bool           `help:"With atom-pmh: also print the entries of records' earlier states, as far as the producer keeps them. A mirror has them anyway."`
	WholeChain  bool           `help:"With atom-pmh: read the whole chain, however little has changed, to find changes that were published late in old archives."`
	Fetch       bool           `help:"With atom-pmh: also request and print the records themselves. The state lists the records that could not be fetched, for the next harvest."`
	DB          string         `name:"db" placeholder:"FILE|URL" help:"Harvest into a mirror: a file, or the postgres:// URL of a database."`
	Key         string         `placeholder:"FIELD" help:"With datareplication and --db: header field of an entity that names its resource. Without this flag, the mirror has an entry for each entity, as a log does."`
	MaxRequests int            `default:"10000" placeholder:"N" help:"Make at most N requests (default: ${default}). Where a limit ends a harvest, the next one continues, except with atom-pmh and without --db."`
	MaxBytes    argument.Size  `default:"1GiB" placeholder:"SIZE" help:"With atom-pmh and modified-range: read at most SIZE, decompressed (default: ${default})."`
	MaxItems    int            `default:"1000000" placeholder:"N" help:"With modified-range: receive at most N items (default: ${default})."`
	Format      string         `default:"jsonl" enum:"jsonl,json" placeholder:"FORMAT" help:"jsonl: one change a line (the default); json: one object with all of them and the verdict."`

	terminal.JSONFlag `set:"record=each change, which is the default; with --db, the result for the collection"`

	syncing.Quotas

	logins.Login

	network.Flags
}

// inOne reports whether to print the whole harvest as one object.
func (c *Source) inOne() bool { return c.Format == "json" }

// These are the protocols, as the flag --protocol names them.
const (
	AtomPMH         = "atom-pmh"
	DataReplication = "datareplication"
	ModifiedRange   = "modified-range"
)

// LogIn takes the credentials for the collection from the flags, the environment and the
// files the flags name.
func (c *Source) LogIn() error {
	credential, err := c.CredentialFor(c.URL)
	if err != nil || credential == nil {
		return err
	}
	c.Fields = credential.Header
	if credential.Authorization != "" {
		c.Fields.Set("Authorization", credential.Authorization)
	}
	return nil
}
