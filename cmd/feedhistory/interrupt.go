package main

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// grace is the time that a verb has to end properly after an interrupt. Polls and servers
// need less.
const grace = 30 * time.Second

// A stdinReader reads standard input until the context ends, so that one interrupt is
// enough to end a command that waits for input.
type stdinReader struct {
	ctx   context.Context
	in    io.Reader
	waits func() // called before the first read from a terminal

	once   sync.Once
	chunks chan chunk
	rest   []byte
	err    error
}

type chunk struct {
	data []byte
	err  error
}

// Read implements io.Reader. After the context has ended, it returns the context's error.
func (r *stdinReader) Read(p []byte) (int, error) {
	r.once.Do(r.begin)
	if len(r.rest) == 0 && r.err == nil {
		select {
		case c := <-r.chunks:
			r.rest, r.err = c.data, c.err
		case <-r.ctx.Done():
			r.err = r.ctx.Err()
		}
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// begin starts a goroutine that reads. A read that waits for input cannot be interrupted,
// so the goroutine may last until the process ends.
func (r *stdinReader) begin() {
	if f, ok := r.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		r.waits()
	}
	r.chunks = make(chan chunk)
	go func() {
		for {
			data := make([]byte, 64<<10)
			n, err := r.in.Read(data)
			select {
			case r.chunks <- chunk{data[:n], err}:
			case <-r.ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
}

// A stdoutWriter writes to standard output, and records whether anything was written.
type stdoutWriter struct {
	io.Writer
	written atomic.Bool
	failed  atomic.Pointer[error] // the error of the last write that failed; nil if none did
}

// Write implements io.Writer.
func (w *stdoutWriter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		w.written.Store(true)
	}
	n, err := w.Writer.Write(p)
	if err != nil {
		w.failed.Store(&err)
	}
	return n, err
}

// interrupted returns the exit status of a verb that an interrupt ended early. The status
// depends on whether the verb had printed anything.
func (w *world) interrupted() int {
	if out, ok := w.stdout.(*stdoutWriter); ok && out.written.Load() {
		return exitPartial
	}
	return exitInterrupted
}

// errInterrupted replaces the error of a context that an interrupt has ended.
var errInterrupted = errors.New("interrupted")

// isInterrupt reports whether an interrupt caused an error.
func (w *world) isInterrupt(err error) bool {
	return w.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted))
}
