package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each exported type, constant, variable and function is used in another package or in an
// example; so are the packages for tests in their own tests.
func TestUsed(t *testing.T) {
	c, err := takeCensus("../..")
	require.NoError(t, err)
	require.Greater(t, len(c.exported), 1000)
	for _, line := range c.unused() {
		if kind, name, _ := strings.Cut(line, "\t"); kind != "field" && kind != "method" {
			t.Errorf("%s %s is used nowhere outside its package and in no example: unexport it, delete it, or give an example", kind, name)
		}
	}
}
