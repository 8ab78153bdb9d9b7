package terminal

import (
	"fmt"
	"io"
)

// A Voice prints a command's messages to people on standard error.
type Voice struct {
	Command string
	Stderr  io.Writer
	Silent  *bool // Silent is whether to print only errors and gaps.
}

// Asides returns where information goes: nowhere if Silent is set. Errors and gaps
// always go to Stderr.
func (v *Voice) Asides() io.Writer {
	if *v.Silent {
		return io.Discard
	}
	return v.Stderr
}

// Tell prints information, unless Silent is set.
func (v *Voice) Tell(message string) {
	if !*v.Silent {
		v.Say(message)
	}
}

// Say prints a message, even if Silent is set.
func (v *Voice) Say(message string) {
	fmt.Fprintln(v.Stderr, v.Command+":", Clean(message))
}
