package feedhistory

import (
	"encoding/base64"
	"fmt"
)

// checkNumbers returns an error if a number of the settings is negative but may not be.
func (c *Client) checkNumbers() error {
	t, l, b := c.Timeouts, c.Limits, c.Budget
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Pace", int64(c.Pace)}, {"Policy.PerHost", int64(c.Policy.PerHost)},
		{"Timeouts.Connect", int64(t.Connect)}, {"Timeouts.TLS", int64(t.TLS)}, {"Timeouts.Headers", int64(t.Headers)},
		{"Timeouts.Body", int64(t.Body)}, {"Timeouts.Idle", int64(t.Idle)},
		{"Retry.Tries", int64(c.Retry.Tries)}, {"Retry.Base", int64(c.Retry.Base)},
		{"Budget.Documents", int64(b.Documents)}, {"Budget.Bytes", b.Bytes},
		{"Budget.Barren", int64(b.Barren)}, {"Budget.Empty", int64(b.Empty)},
		{"Limits.Bytes", l.Bytes}, {"Limits.Ratio", int64(l.Ratio)}, {"Limits.Depth", int64(l.Depth)},
		{"Limits.Attributes", int64(l.Attributes)}, {"Limits.Namespaces", int64(l.Namespaces)},
		{"Limits.Elements", int64(l.Elements)}, {"Limits.Entries", int64(l.Entries)},
		{"Limits.HeadLinks", int64(l.HeadLinks)}, {"Limits.ID", int64(l.ID)}, {"Limits.URL", int64(l.URL)},
	} {
		if f.value < 0 {
			return fmt.Errorf("feedhistory: Client.%s is negative", f.name)
		}
	}
	return nil
}

// authorization returns the value of the Authorization header; "" if there is none.
func (c Credential) authorization() string {
	if c.User == "" && c.Password == "" {
		return c.Authorization
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
}
