package main

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/feedhistory/feedhistory"
)

// The flags of the verbs that make requests.
type networkFlags struct {
	AllowPrivate bool          `help:"Let loopback and private addresses through."`
	UserAgent    string        `placeholder:"NAME" help:"Name given to servers (default: ${agent})."`
	Pace         time.Duration `default:"0s" placeholder:"TIME" help:"Least time between requests to one host, such as 500ms."`
	Verbose      bool          `short:"v" help:"Tell of each request on standard error."`

	MaxDocumentBytes size `default:"16MiB" placeholder:"SIZE" help:"Bytes of one document at most, decompressed (default: ${default})."`
}

// network returns the flags, of the verb that has them.
func (f *networkFlags) network() *networkFlags { return f }

// checkNetwork refuses what no client can be made of.
func (f *networkFlags) checkNetwork() error {
	switch {
	case f.Pace < 0:
		return errors.New("--pace: a time cannot be negative")
	case f.MaxDocumentBytes < 1:
		return errors.New("--max-document-bytes: at least 1")
	}
	return nil
}

// client returns the Client that the flags ask for.
func (f *networkFlags) client(stderr io.Writer) *feedhistory.Client {
	c := &feedhistory.Client{
		UserAgent: f.UserAgent,
		Pace:      f.Pace,
		Policy:    feedhistory.Policy{AllowPrivate: f.AllowPrivate},
		Limits:    feedhistory.Limits{Bytes: int64(f.MaxDocumentBytes)},
	}
	if f.Verbose {
		c.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return c
}
