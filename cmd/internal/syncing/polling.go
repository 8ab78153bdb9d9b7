package syncing

import (
	"errors"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/mirror"
)

// Polling are the flags for how feeds are polled, and how much of each is stored.
type Polling struct {
	Interval   time.Duration `default:"1h" placeholder:"TIME" help:"Time between two polls of a feed, unless the feed asks for a longer one (default: ${default})."`
	Parallel   int           `default:"8" placeholder:"N" help:"Poll N feeds at the same time, each on another host (default: ${default})."`
	Revalidate bool          `help:"Request every archive document again, to see whether it has changed."`
	Quotas
}

// Quotas are the flags for how much of each feed is stored. Zero means a mirror's default.
type Quotas struct {
	Quota        argument.Size `default:"2GiB" placeholder:"SIZE" help:"Store at most this much of a feed, including earlier versions (default: ${default})."`
	QuotaEntries int64         `default:"5000000" placeholder:"N" help:"Store at most N entries of a feed (default: ${default})."`
}

// Check refuses quotas of zero.
func (q *Quotas) Check() error {
	switch {
	case q.Quota < 1:
		return errors.New("--quota: at least 1")
	case q.QuotaEntries < 1:
		return errors.New("--quota-entries: at least 1")
	}
	return nil
}

// Limits returns the quota of a mirror.
func (q *Quotas) Limits() mirror.Quota {
	return mirror.Quota{Bytes: int64(q.Quota), Entries: q.QuotaEntries}
}

// Check refuses limits of zero.
func (f *Polling) Check() error {
	switch {
	case f.Interval < time.Second:
		return errors.New("--interval: at least 1s")
	case f.Parallel < 1:
		return errors.New("--parallel: at least 1")
	}
	return f.Quotas.Check()
}

// Poller returns a poller with the settings of the flags.
func (f *Polling) Poller(store mirror.Store, client *feedhistory.Client) *mirror.Poller {
	return &mirror.Poller{
		Mirror: &mirror.Mirror{
			Store: store, Client: client, Every: f.Interval, Revalidate: f.Revalidate, Quota: f.Limits(),
		},
		Parallel: f.Parallel,
	}
}
