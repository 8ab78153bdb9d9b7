package argument

import (
	"fmt"
	"strconv"

	"github.com/alecthomas/kong"
)

// A Maximum is a number of things, or "all". The zero value is not set.
type Maximum struct {
	N int // negative for "all"
}

// IsSet reports whether the command line gives the maximum.
func (m Maximum) IsSet() bool { return m.N != 0 }

// Decode reads a maximum from the command line.
func (m *Maximum) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("number", &text); err != nil {
		return err
	}
	n, err := strconv.Atoi(text)
	switch {
	case text == "all":
		n = -1
	case err != nil || n < 1:
		return fmt.Errorf("%q is neither a number from 1 on nor all", text)
	}
	m.N = n
	return nil
}
