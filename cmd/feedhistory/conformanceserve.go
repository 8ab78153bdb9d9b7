package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/httpserver"
	"github.com/feedhistory/feedhistory/conformance/suite"
)

// A conformanceServeCommand is the verb conformance serve.
type conformanceServeCommand struct {
	Listen argument.Listen `default:"127.0.0.1:5005" placeholder:"ADDRESS" help:"Where to listen (default: ${default}); port 0 means any free port."`

	caseFlags
}

// Help returns the text of --help before the flags.
func (c *conformanceServeCommand) Help() string {
	return "Each case is a website on its own port, always on the loopback interface. The first page lists the addresses of the cases; " +
		"/cases/NAME/requests lists the requests that a case has received, and /cases/NAME/judge judges the JSON that you send to it."
}

// Run serves until the context ends.
func (c *conformanceServeCommand) Run(w *command.World) error {
	cases, err := c.cases()
	if err != nil {
		return err
	}
	listener, err := httpserver.Listen(c.Listen)
	if err != nil {
		return err
	}
	server, err := suite.NewServer(cases)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer server.Close()
	w.Tell(fmt.Sprintf("%d cases at http://%s/", len(cases), address(listener)))
	return serveHTTP(w, listener, server, slog.New(slog.NewTextHandler(w.Stderr, nil)))
}
