package main

import (
	"github.com/alecthomas/kong"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/manpage"
	"github.com/feedhistory/feedhistory/cmd/internal/settings"
)

// A manCommand is the verb man, which prints the manual page for packages.
type manCommand struct{}

// Run prints the page.
func (c *manCommand) Run(w *command.World, call *kong.Context) error {
	p := manpage.Page{
		Name: "feedhistory", Title: "everything that a feed ever published", Version: feedhistory.Version,
		Description: description, Settings: settings.Help, DB: database.DefaultDB(),
	}
	return p.Write(w.Stdout, call.Model)
}
