package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The figures stay within their bounds.
func TestBounds(t *testing.T) {
	h, err := count("../..")
	require.NoError(t, err)
	require.Greater(t, h.code, 10_000)
	ways, err := h.ways()
	require.NoError(t, err)
	most := bounds()
	for _, f := range h.figures(ways) {
		if bound, ok := most[f.name]; ok && f.n > bound {
			t.Errorf("%s: %g %s (at most %g)", f.name, f.n, f.where, bound)
		}
		delete(most, f.name)
	}
	require.Empty(t, most, "bounds of nothing")
	for name, list := range map[string][]string{
		"imports across the walls of modules": h.breaches, "named by a participle": h.participles,
		"more than three bools": h.bools, "exported without a comment": h.undocumented,
	} {
		t.Logf("%s: %q", name, list)
	}
}
