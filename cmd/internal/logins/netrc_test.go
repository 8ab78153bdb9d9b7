package logins

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNetrcEntry(t *testing.T) {
	const file = `
# a comment with machine words
machine a.example login ann password "x"
macdef init
machine trap.example login no password no

machine b.example
	account acc
	login machine password p#1
default login anonymous password me
`
	for host, want := range map[string][2]string{
		"a.example": {"ann", `"x"`}, "B.example": {"machine", "p#1"}, "trap.example": {"anonymous", "me"},
	} {
		login, password, ok := netrcEntry(file, host)
		require.True(t, ok)
		require.Equal(t, want, [2]string{login, password}, host)
	}
	_, _, ok := netrcEntry("machine a.example login x", "b.example")
	require.False(t, ok)
	_, _, ok = netrcEntry("machine", "")
	require.True(t, ok) // and has nothing
}
