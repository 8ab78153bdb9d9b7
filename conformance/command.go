package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// mostPrinted is the maximum size of a program's output in bytes.
const mostPrinted = 64 << 20

// Command returns a Reader that runs a program. In its arguments, {url} is
// replaced by the address of the feed, and {state} by a directory that is the
// same for all polls of a case. The program prints what [ReadResult] reads. If
// it prints nothing and exits with a status other than 0, that means that there
// is no feed. Its standard error is written to stderr, unless that is nil.
func Command(stderr io.Writer, args ...string) Reader {
	return func(ctx context.Context, url, state string) (*Result, error) {
		if len(args) == 0 {
			return nil, errors.New("there is no command")
		}
		words := make([]string, len(args))
		for i, arg := range args {
			words[i] = strings.NewReplacer("{url}", url, "{state}", state).Replace(arg)
		}
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.WaitDelay = time.Second
		cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
		printed := &limited{left: mostPrinted}
		cmd.Stdout, cmd.Stderr = printed, stderr
		err := cmd.Run()
		var ended *exec.ExitError
		switch exited := errors.As(err, &ended); {
		case err != nil && !exited:
			return nil, err
		case exited && ended.ExitCode() < 0:
			return nil, fmt.Errorf("the program was stopped: %w", err)
		}
		result, problem := ReadResult(&printed.Buffer)
		if errors.Is(problem, errNothing) && err != nil {
			return &Result{Failed: true}, nil
		}
		return result, problem
	}
}

// Keeps reports whether a command's arguments contain {state}.
func Keeps(args []string) bool { return strings.Contains(strings.Join(args, " "), "{state}") }

// limited is a buffer of limited size.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, fmt.Errorf("the program printed more than %d bytes", mostPrinted)
	}
	return l.Buffer.Write(p)
}
