// Package replication reads the data replication protocol: the header of a
// page, and its entities one after another. The consumer and the checks use it.
package replication

import (
	"cmp"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// Fetcher returns a fetcher with the settings of a Client, for pages of up to
// most bytes, because the limits of a Client are for documents. When it is no
// longer needed, done closes its connections.
func Fetcher(c *feedhistory.Client, most int64) (f *feedhistory.Client, done func()) {
	f, done = plain.Client(c)
	f.Limits.Bytes = most
	f.Timeouts.Body = cmp.Or(f.Timeouts.Body, time.Hour) // unless the connection is idle
	return f, done
}
