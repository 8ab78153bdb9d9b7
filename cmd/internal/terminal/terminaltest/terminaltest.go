// Package terminaltest tests how commands refuse wrong values of flags.
package terminaltest

import (
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// WrongValues returns values wrong for each flag of f's type; none if the type has none.
func WrongValues(f *kong.Flag) []string {
	switch f.Target.Interface().(type) {
	case bool:
		return []string{"maybe"}
	case int, int64, terminal.Size, terminal.Maximum:
		return []string{"x", "-1", "99999999999999999999"}
	case time.Duration, *time.Duration:
		return []string{"5", "-1s"}
	case terminal.Moment:
		return []string{"the day before"}
	case terminal.Listen:
		return []string{"x y", "8005"}
	}
	return nil
}

// RequireRefused requires the answer to a wrong value: one line that names the flag, in our
// words, with the way to the verb's help, and nothing on standard output.
func RequireRefused(t *testing.T, program, verb, flag, stdout, stderr string, args []string) {
	t.Helper()
	require.Regexp(t, "^"+program+": [^\n]*--"+flag+"\\b[^\n]*\n"+program+": see "+program+" "+verb+" --help\n$", stderr, "%q", args)
	require.NotRegexp(t, `expected|must be one of|invalid|EOL`, stderr, "%q", args)
	require.Empty(t, stdout, "%q", args)
}
