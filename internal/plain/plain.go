// Package plain makes clients for packages that are given one, or none.
package plain

import "github.com/feedhistory/feedhistory"

// Or returns a Client, or one with default settings if it is nil. Call done when it is
// no longer needed: it closes the connections of the latter.
func Or(c *feedhistory.Client) (client *feedhistory.Client, done func()) {
	if c != nil {
		return c, func() {}
	}
	c = new(feedhistory.Client)
	return c, c.CloseIdle
}

// Client is Or, but it clones a Client that is given, so that the settings may be
// changed.
func Client(c *feedhistory.Client) (clone *feedhistory.Client, done func()) {
	if c != nil {
		c = c.Clone()
	}
	return Or(c)
}
