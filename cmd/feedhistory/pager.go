package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// The flag of the verbs that show much text.
type pagerFlags struct {
	NoPager bool `help:"Do not show the text in a pager, which is the program that PAGER names (default: less, if it is there)."`
}

// A pager shows what is written to it, page by page.
type pager struct {
	io.Writer
	cmd  *exec.Cmd // nil: there is none
	pipe io.WriteCloser
	gone bool // somebody has seen enough
}

// pager returns the user's pager where standard output is a terminal, else
// standard output.
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
		cmd.Env = append(cmd.Env, "LESS=FRX") // what fits on the screen is not held there
	}
	pipe, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return plain
	}
	return &pager{Writer: pipe, cmd: cmd, pipe: pipe}
}

// Write implements io.Writer. When the pager has been left there is nobody to
// write for, which is no error of this program.
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

// errPagerLeft ends what writes to a pager that has been left.
var errPagerLeft = errors.New("the pager has been left")

// Close waits until the pager is left.
func (p *pager) Close() error {
	if p.cmd == nil {
		return nil
	}
	_ = p.pipe.Close()
	_ = p.cmd.Wait() // its status says nothing of ours
	return nil
}

// unlessLeft is an error, but for that of a pager that has been left.
func unlessLeft(err error) error {
	if errors.Is(err, errPagerLeft) {
		return nil
	}
	return err
}
