package main

import (
	"github.com/feedhistory/feedhistory/cmd/internal/command"
)

// A commandLine has the verbs and their flags.
type commandLine struct {
	command.Globals

	Inspect  inspectCommand  `cmd:"" help:"Show one feed document."`
	Fetch    fetchCommand    `cmd:"" help:"Fetch a feed's whole history."`
	Check    checkCommand    `cmd:"" help:"Check a feed's history for faults."`
	Publish  publishCommand  `cmd:"" help:"Publish entries as a feed with its whole history."`
	Harvest  harvestCommand  `cmd:"" help:"Print the changes in a collection since the last harvest."`
	Produce  produceCommand  `cmd:"" help:"Publish records, entities or entries for others to harvest."`
	Serve    serveCommand    `cmd:"" help:"Serve published feeds, or the history server, over HTTP."`
	Demo     demoCommand     `cmd:"" help:"Show all this on a small website of its own, without a network."`
	Sync     syncCommand     `cmd:"" help:"Mirror feeds: poll them, and keep everything they publish."`
	List     listCommand     `cmd:"" help:"List the mirrored feeds, with a verdict on each."`
	Entries  entriesCommand  `cmd:"" help:"Show the entries in the mirror."`
	Entry    entryCommand    `cmd:"" help:"Show one entry as text."`
	Download downloadCommand `cmd:"" help:"Download the files of mirrored entries, such as episodes."`
	Export   exportCommand   `cmd:"" help:"Write mirrored feeds as JSON Lines, Atom, OPML or in other formats."`
	Import   importCommand   `cmd:"" help:"Import the output of export --raw, or the archives of feed readers and others."`
	Move     moveCommand     `cmd:"" help:"Give a mirrored feed another address."`
	Rm       rmCommand       `cmd:"" help:"Remove feeds from the mirror."`
	Erase    eraseCommand    `cmd:"" help:"Remove entries for good, from a mirror and from published feeds."`
	DB       dbCommand       `cmd:"" name:"db" help:"Check, describe, copy or rewrite the database of the mirrored feeds."`

	Handover handoverCommand `cmd:"" help:"Hand the mirrored history over to a feed reader."`

	Completion completionCommand `cmd:"" help:"Print a script that completes verbs and flags in a shell."`
	Help       helpCommand       `cmd:"" help:"Show how to use a verb."`
	Ver        versionCommand    `cmd:"" name:"version" help:"Print the version."`
	Man        manCommand        `cmd:"" hidden:""`

	Conformance conformanceCommand `cmd:"" help:"Test readers and publishers, in any language, against RFC 5005."`
}

// The verbs help and version do the same as the flags --help and --version; see usage.AsFlags.
type (
	helpCommand struct {
		Verb []string `arg:"" optional:"" name:"VERB" help:"The verb (default: list all verbs)."`
	}
	versionCommand struct{}
)
