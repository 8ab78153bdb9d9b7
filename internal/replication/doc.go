// Package replication reads what the data replication protocol puts on the
// wire: the header of a page, and its entities, one after another. Both the
// consumer and the checks stand on it.
package replication

import (
	"cmp"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// Fetcher returns a fetcher with the settings of a Client, for pages of up to
// so many bytes: those that a Client allows for are documents. Once it is no
// longer needed, done closes its connections.
func Fetcher(c *feedhistory.Client, most int64) (f *fetch.Client, done func()) {
	f = plain.Fetcher(c)
	f.Limits.Bytes = most
	f.Timeouts.Body = cmp.Or(f.Timeouts.Body, time.Hour) // as long as it is not idle
	if f.HTTP != nil && f.HTTP.Transport != nil {
		return f, func() {} // the connections are the caller's
	}
	return f, f.CloseIdle
}
