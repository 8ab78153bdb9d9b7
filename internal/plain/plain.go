// Package plain makes clients for requests of other things than feed documents.
package plain

import "github.com/feedhistory/feedhistory"

// Client returns a clone of a Client, whose settings may be changed; nil means
// one with default settings. When the clone is no longer needed, done closes
// its connections, unless they are shared with the caller's.
func Client(c *feedhistory.Client) (clone *feedhistory.Client, done func()) {
	if c == nil {
		clone = new(feedhistory.Client)
		return clone, clone.CloseIdle
	}
	return c.Clone(), func() {}
}
