//go:build !unix

package pgtest

import "os/exec"

// A user is who runs the server: nobody, here.
type user struct{}

func newUser() (user, error)  { return user{}, ErrMissing }
func (user) own(string) error { return nil }
func (user) run(*exec.Cmd)    {}
