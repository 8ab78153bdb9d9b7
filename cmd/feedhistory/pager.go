package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// pagerFlags are the flags of verbs that may show much text.
type pagerFlags struct {
	NoPager bool `help:"Do not use a pager, which is the program that PAGER names (default: less, if it is installed)."`
}

// A pager shows what is written to it, page by page.
type pager struct {
	io.Writer
	cmd  *exec.Cmd      // the pager program; nil if there is none
	pipe io.WriteCloser // the program's standard input
	gone bool           // the user has left the program
}

// pager returns the user's pager if standard output is a terminal, else a pager that only
// writes to standard output.
func (f *pagerFlags) pager(w *world) *pager {
	plain := &pager{Writer: w.stdout}
	name, set := os.LookupEnv("PAGER")
	if !set {
		name = "less"
	}
	if out, ok := w.stdout.(*stdoutWriter); f.NoPager || strings.TrimSpace(name) == "" || name == "cat" || !ok || !isTerminal(out) {
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
	if err != nil || cmd.Start() != nil {
		return plain
	}
	signal.Ignore(os.Interrupt) // only the pager gets interrupts; when it ends, the command ends
	return &pager{Writer: pipe, cmd: cmd, pipe: pipe}
}

// Write implements io.Writer. After the user has left the pager, it returns errPagerLeft,
// which ends the output; the command does not report this error.
func (p *pager) Write(b []byte) (int, error) {
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

// errPagerLeft is the error of writing to a pager that the user has left.
var errPagerLeft = errors.New("the user has left the pager")

// Close waits until the user leaves the pager.
func (p *pager) Close() error {
	if p.cmd == nil {
		return nil
	}
	_ = p.pipe.Close()
	_ = p.cmd.Wait() // the pager's exit status says nothing about the output
	return nil
}

// unlessLeft returns an error unless it is errPagerLeft.
func unlessLeft(err error) error {
	if errors.Is(err, errPagerLeft) {
		return nil
	}
	return err
}
