//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	osuser "os/user"
	"strconv"
	"syscall"
)

// A user is the user who runs the server, which refuses to run as root.
type user struct{ credential *syscall.Credential }

// newUser returns the present user or, instead of root, Debian's user for the
// server, or else nobody.
func newUser() (user, error) {
	if os.Getuid() != 0 {
		return user{}, nil
	}
	u, err := osuser.Lookup("postgres")
	if err != nil {
		u, err = osuser.Lookup("nobody")
	}
	if err != nil {
		return user{}, fmt.Errorf("no user to run PostgreSQL as, in place of root: %w", err)
	}
	uid, errA := strconv.ParseUint(u.Uid, 10, 32)
	gid, errB := strconv.ParseUint(u.Gid, 10, 32)
	if errA != nil || errB != nil {
		return user{}, fmt.Errorf("user %s has the numbers %s, %s", u.Username, u.Uid, u.Gid)
	}
	return user{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// own gives a directory to the user.
func (u user) own(directory string) error {
	if u.credential == nil {
		return nil
	}
	return os.Chown(directory, int(u.credential.Uid), int(u.credential.Gid))
}

// run makes a command run as the user, in a separate process group: an
// interrupt at the terminal is for the tests, which then stop it.
func (u user) run(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Credential: u.credential, Setpgid: true}
}
