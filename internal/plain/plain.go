// Package plain requests what is no feed document, by the rules and with the
// settings of a feedhistory.Client.
package plain

import (
	"cmp"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
)

// Fetcher returns a fetcher with the settings of a Client; nil stands for one
// with the default settings. It counts pace and requests to a host by itself.
func Fetcher(c *feedhistory.Client) *fetch.Client {
	if c == nil {
		c = new(feedhistory.Client)
	}
	return &fetch.Client{
		HTTP: c.HTTP, Pace: c.Pace, PerHost: c.Policy.PerHost,
		UserAgent:    cmp.Or(c.UserAgent, "feedhistory/"+feedhistory.Version+" (+https://github.com/feedhistory/feedhistory)"),
		AllowPrivate: c.Policy.AllowPrivate, Credentials: c.Policy.Credentials,
		Limits:   fetch.Limits{Bytes: c.Limits.Bytes, Ratio: c.Limits.Ratio, URL: c.Limits.URL},
		Timeouts: c.Timeouts, Retry: c.Retry, Logger: c.Logger,
	}
}
