// Package replication reads what the data replication protocol puts on the
// wire: the header of a page, and its entities, one after another. Both the
// consumer and the checks stand on it.
package replication

import (
	"cmp"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// Fetcher returns a fetcher with the settings of a Client, for pages of up to
// so many bytes: those that a Client allows for are documents. Once it is no
// longer needed, done closes its connections.
func Fetcher(c *feedhistory.Client, most int64) (f *feedhistory.Client, done func()) {
	f, done = plain.Client(c)
	f.Limits.Bytes = most
	f.Timeouts.Body = cmp.Or(f.Timeouts.Body, time.Hour) // as long as it is not idle
	return f, done
}
