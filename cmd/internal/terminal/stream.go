package terminal

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/term"
)

// A StdinReader reads standard input until the context ends, so one interrupt is enough
// to end a command waiting for input.
type StdinReader struct {
	Ctx   context.Context
	In    io.Reader
	Asked bool   // a question tells people the command is waiting
	Waits func() // called before the first read from a terminal

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
func (r *StdinReader) Read(p []byte) (int, error) {
	r.once.Do(r.begin)
	if len(r.rest) == 0 && r.err == nil {
		select {
		case c := <-r.chunks:
			r.rest, r.err = c.data, c.err
		case <-r.Ctx.Done():
			r.err = r.Ctx.Err()
		}
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// IsTerminal reports whether the input is a terminal.
func (r *StdinReader) IsTerminal() bool {
	f, ok := r.In.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// begin starts a goroutine for reading. A read waiting for input cannot be interrupted,
// so the goroutine may last until the process ends.
func (r *StdinReader) begin() {
	if r.IsTerminal() && !r.Asked {
		r.Waits()
	}
	r.chunks = make(chan chunk)
	go func() {
		for {
			data := make([]byte, 64<<10)
			n, err := r.In.Read(data)
			select {
			case r.chunks <- chunk{data[:n], err}:
			case <-r.Ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
}

// A StdoutWriter writes to standard output, and records whether anything was written.
type StdoutWriter struct {
	io.Writer
	Written atomic.Bool
	Failed  atomic.Pointer[error] // the error of the last failed write; nil if none failed
}

// Write implements io.Writer.
func (w *StdoutWriter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		w.Written.Store(true)
	}
	n, err := w.Writer.Write(p)
	if err != nil {
		w.Failed.Store(&err)
	}
	return n, err
}

// IsTerminal reports whether the stream is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := fileOf(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width returns the number of columns of a terminal; 0 if w is not one, or does not know.
func Width(w io.Writer) int {
	f, ok := fileOf(w)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func fileOf(w io.Writer) (*os.File, bool) {
	if out, ok := w.(*StdoutWriter); ok {
		w = out.Writer
	}
	f, ok := w.(*os.File)
	return f, ok
}
