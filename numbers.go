package feedhistory

import (
	"encoding/base64"
	"fmt"
)

// A number is a setting, with its name.
type number struct {
	name  string
	value int64
}

// checkNumbers returns an error if a number of the settings is negative.
func checkNumbers(of string, numbers []number) error {
	for _, n := range numbers {
		if n.value < 0 {
			return fmt.Errorf("feedhistory: %s.%s is negative", of, n.name)
		}
	}
	return nil
}

// numbers returns the numbers that must not be negative.
func (c *Client) numbers() []number {
	t, b := c.Timeouts, c.Budget
	return append([]number{
		{"Pace", int64(c.Pace)}, {"Policy.PerHost", int64(c.Policy.PerHost)},
		{"Timeouts.Connect", int64(t.Connect)}, {"Timeouts.TLS", int64(t.TLS)}, {"Timeouts.Headers", int64(t.Headers)},
		{"Timeouts.Body", int64(t.Body)}, {"Timeouts.Idle", int64(t.Idle)},
		{"Retry.Tries", int64(c.Retry.Tries)}, {"Retry.Base", int64(c.Retry.Base)},
		{"Budget.Documents", int64(b.Documents)}, {"Budget.Bytes", b.Bytes},
		{"Budget.Barren", int64(b.Barren)}, {"Budget.Empty", int64(b.Empty)},
	}, c.Limits.numbers()...)
}

func (l Limits) numbers() []number {
	return []number{
		{"Limits.Bytes", l.Bytes}, {"Limits.Ratio", int64(l.Ratio)}, {"Limits.Depth", int64(l.Depth)},
		{"Limits.Attributes", int64(l.Attributes)}, {"Limits.Namespaces", int64(l.Namespaces)},
		{"Limits.Elements", int64(l.Elements)}, {"Limits.Entries", int64(l.Entries)},
		{"Limits.HeadLinks", int64(l.HeadLinks)}, {"Limits.ID", int64(l.ID)}, {"Limits.URL", int64(l.URL)},
	}
}

// authorization returns the value of the Authorization header; "" if there is none.
func (c Credential) authorization() string {
	if c.User == "" && c.Password == "" {
		return c.Authorization
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
}
