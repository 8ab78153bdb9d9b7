package suite

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

// mostTold is how much of a program's standard error a runError keeps, in bytes.
const mostTold = 2 << 10

// A runError is a program's run without a result.
type runError struct {
	Reason string // such as "exit status 1"
	Stderr string // the end of its standard error
	Exited bool   // it printed nothing and exited with a status other than 0, which is right where there is no feed
}

// Error returns the reason.
func (e *runError) Error() string { return e.Reason }

// Command returns a Reader that runs a program. In its arguments, {url} is replaced by
// the address of the feed, and {state} by a directory, the same for all polls of a
// case. The program prints a Result as JSON; its environment has
// CONFORMANCE_DUE, which is 0 if the program decides whether the feed is due, and
// otherwise 1. Its standard error is also written to stderr, unless stderr is nil. An
// error is a failed run.
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
		due := "CONFORMANCE_DUE=1"
		if !Due(ctx) {
			due = "CONFORMANCE_DUE=0"
		}
		cmd.Env = append(cmd.Env, due)
		printed, said := &limitedBuffer{left: mostPrinted}, new(tail)
		cmd.Stdout, cmd.Stderr = printed, said
		if stderr != nil {
			cmd.Stderr = io.MultiWriter(said, stderr)
		}
		err := cmd.Run()
		if ctx.Err() != nil {
			return nil, &runError{Reason: "did not finish in time", Stderr: said.String()}
		}
		var ended *exec.ExitError
		if exited := errors.As(err, &ended); err != nil && (!exited || ended.ExitCode() < 0) {
			return nil, &runError{Reason: err.Error(), Stderr: said.String()}
		}
		result, problem := readResult(&printed.Buffer)
		switch {
		case errors.Is(problem, errNothing) && err != nil:
			return nil, &runError{Reason: err.Error() + ", and " + problem.Error(), Stderr: said.String(), Exited: true}
		case problem != nil:
			return nil, &runError{Reason: problem.Error(), Stderr: said.String()}
		}
		return result, nil
	}
}

// Keeps reports whether a command's arguments contain {state}.
func Keeps(args []string) bool { return strings.Contains(strings.Join(args, " "), "{state}") }

// A limitedBuffer is a buffer with a maximum size. Write fails beyond it.
type limitedBuffer struct {
	bytes.Buffer
	left int
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, fmt.Errorf("the program printed more than %d bytes", mostPrinted)
	}
	return l.Buffer.Write(p)
}

// A tail keeps the end of the text written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - mostTold; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "\uFFFD")
}
