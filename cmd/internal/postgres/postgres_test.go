package postgres

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// No password is in what people are told.
func TestName(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://ann:s3cret@db.example:5433/feeds?password=s3cret": "postgres://db.example:5433/feeds",
		"postgresql://localhost/feeds":                                "postgresql://localhost/feeds",
		"postgres://ann:s3cret%zz@db/feeds":                           "the PostgreSQL database",
	} {
		require.True(t, IsURL(address))
		require.Equal(t, want, Name(address))
	}
	require.False(t, IsURL("feeds.db"))
}

func TestProblems(t *testing.T) {
	require.Contains(t, Problem("28P01", "password authentication failed"), "refuses the user or the password")
	require.Contains(t, Problem("53100", ""), "disk is full")
	require.Contains(t, Problem("3D000", ""), "no such database")
	require.Equal(t, "the user may not do this: permission denied", Problem("42501", "permission denied"))
	require.Equal(t, "odd", Problem("XX000", "odd"))
	require.Equal(t, "this is not the URL of a PostgreSQL database: no port", Malformed(fmt.Errorf("s3cret: %w", errors.New("no port"))))
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	require.Equal(t, "the server cannot be reached: connection refused; is it running, and is the address right?", Unreachable(fmt.Errorf("x: %w", refused)))
	require.Equal(t, "the server cannot be reached; is it running, and is the address right?", Unreachable(errors.New("x")))
}
