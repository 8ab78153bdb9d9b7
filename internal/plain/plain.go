// Package plain makes Clients for packages whose callers need not set one.
package plain

import "github.com/feedhistory/feedhistory"

// Or returns c or, if c is nil, a new Client with default settings. Call done when the
// Client is no longer needed: it closes the connections of a new one.
func Or(c *feedhistory.Client) (client *feedhistory.Client, done func()) {
	if c != nil {
		return c, func() {}
	}
	c = new(feedhistory.Client)
	return c, c.CloseIdle
}

// Client is Or, but clones c, so you may change the settings.
func Client(c *feedhistory.Client) (clone *feedhistory.Client, done func()) {
	if c != nil {
		c = c.Clone()
	}
	return Or(c)
}
