package terminal

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// PagerFlags are the flags of verbs that may show much text.
type PagerFlags struct {
	NoPager bool `help:"Do not use a pager, which is the program that PAGER names (default: less, if it is installed)."`
}

// A Pager shows the text written to it, page by page.
type Pager struct {
	io.Writer
	cmd  *exec.Cmd      // the pager program; nil if there is none
	pipe io.WriteCloser // the program's standard input
	gone bool           // the user has left the program
}

// Pager returns the user's pager if standard output is a terminal, else a mere writer to
// standard output.
func (f *PagerFlags) Pager(stdout io.Writer) *Pager {
	plain := &Pager{Writer: stdout}
	name, set := os.LookupEnv("PAGER")
	if !set {
		name = "less"
	}
	if out, ok := stdout.(*StdoutWriter); f.NoPager || strings.TrimSpace(name) == "" || name == "cat" || !ok || !IsTerminal(out) {
		return plain
	}
	words := strings.Fields(name)
	path, err := exec.LookPath(words[0])
	if err != nil {
		return plain
	}
	cmd := exec.Command(path, words[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	if _, ok := os.LookupEnv("LESS"); !ok {
		cmd.Env = append(cmd.Env, "LESS=FRX") // less ends at once if the text fits on the screen
	}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return plain
	}
	leaveInterrupts()
	if cmd.Start() != nil {
		signal.Reset(os.Interrupt)
		return plain
	}
	return &Pager{Writer: pipe, cmd: cmd, pipe: pipe}
}

// leaveInterrupts leaves interrupts to the pager: when that ends, the command ends. It comes
// before the pager's start, because the user may be quick. The pager does not inherit this:
// a signal that a program receives, unlike one it ignores, is reset in those it starts.
func leaveInterrupts() {
	signal.Ignore(os.Interrupt) // ends any other handling
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
}

// Write implements io.Writer. After the user has left the pager, it returns errPagerLeft,
// which ends the output; the command does not report this error.
func (p *Pager) Write(b []byte) (int, error) {
	if p.gone {
		return 0, errPagerLeft
	}
	n, err := p.Writer.Write(b)
	if p.cmd != nil && errors.Is(err, syscall.EPIPE) {
		p.gone = true
		return n, errPagerLeft
	}
	return n, err
}

// errPagerLeft is the error of writing to a pager after the user has left it.
var errPagerLeft = errors.New("the user has left the pager")

// Close waits until the user leaves the pager.
func (p *Pager) Close() error {
	if p.cmd == nil {
		return nil
	}
	_ = p.pipe.Close()
	_ = p.cmd.Wait() // the pager's exit status says nothing about the output
	return nil
}

// UnlessLeft returns an error unless it is errPagerLeft.
func UnlessLeft(err error) error {
	if errors.Is(err, errPagerLeft) {
		return nil
	}
	return err
}
