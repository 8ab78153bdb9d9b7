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
	for _, f := range h.figures() {
		if f.most > 0 && f.n > f.most {
			t.Errorf("%s: %s %s", f.name, f.value, f.bound())
		}
	}
	for name, list := range map[string][]string{
		"imports across the walls of modules": h.breaches, "named by a participle": h.participles,
		"more than three bools": h.bools, "exported without a comment": h.undocumented,
		"against the layers": h.climbs(),
	} {
		t.Logf("%s: %q", name, list)
	}
}
