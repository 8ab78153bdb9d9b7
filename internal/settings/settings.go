// Package settings checks settings, and has the Client of callers that set none.
package settings

import (
	"fmt"

	"github.com/feedhistory/feedhistory"
)

// A Number is a setting that may not be negative.
type Number struct {
	Name  string // Name is the field, with its type, such as "Handler.Size".
	Value int64
}

// Check returns an error naming the first negative number of a package's settings.
func Check(pkg string, numbers ...Number) error {
	for _, n := range numbers {
		if n.Value < 0 {
			return fmt.Errorf("%s: %s is negative", pkg, n.Name)
		}
	}
	return nil
}

// Shared returns c or, if c is nil, a new Client with default settings. Call done when the
// Client is no longer needed: it closes the connections of a new one.
func Shared(c *feedhistory.Client) (client *feedhistory.Client, done func()) {
	if c != nil {
		return c, func() {}
	}
	c = new(feedhistory.Client)
	return c, c.CloseIdle
}

// Cloned is Shared, but clones c, so its settings may be changed.
func Cloned(c *feedhistory.Client) (clone *feedhistory.Client, done func()) {
	if c != nil {
		c = c.Clone()
	}
	return Shared(c)
}
