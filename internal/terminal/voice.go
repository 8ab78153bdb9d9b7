package terminal

import (
	"fmt"
	"io"
)

// A Voice says what a command has to say to people, on standard error.
type Voice struct {
	Command string
	Stderr  io.Writer
	Silent  *bool // Silent is whether only errors, and what is missing, are said.
}

// Asides is where information goes: nowhere with Silent. Errors, and what is missing,
// go to Stderr in any case.
func (v *Voice) Asides() io.Writer {
	if *v.Silent {
		return io.Discard
	}
	return v.Stderr
}

// Tell says information, but not with Silent.
func (v *Voice) Tell(message string) {
	if !*v.Silent {
		v.Say(message)
	}
}

// Say says a message in any case.
func (v *Voice) Say(message string) {
	fmt.Fprintln(v.Stderr, v.Command+":", Clean(message))
}
