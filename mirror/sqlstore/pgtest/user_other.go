//go:build !unix

package pgtest

import "os/exec"

// A user is the user who runs the server: here always the present one.
type user struct{}

func newUser() (user, error)  { return user{}, errAbsent }
func (user) own(string) error { return nil }
func (user) run(*exec.Cmd)    {}
