package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// Document reads the document named by an argument: a URL, a file, or standard input.
// With an error, it returns the readable part, or nil.
func (w *World) Document(arg, base string) (*feedhistory.Document, error) {
	arg = argument.SourceAddress(arg)
	if argument.IsURL(arg) {
		if err := argument.CheckURL(arg); err != nil {
			return nil, err
		}
		if base != "" {
			return nil, exit.UsageError("--base is for files and standard input: a document at a URL has its own base")
		}
		client, err := w.Authorized(arg)
		if err != nil {
			return nil, err
		}
		return client.Get(w.Ctx, arg)
	}
	in, err := w.Open(arg)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return feedhistory.Parser{Limits: w.Client(w.Stderr).Limits}.Parse(in, base)
}

// Open opens a file or standard input for a verb that also accepts URLs.
func (w *World) Open(arg string) (io.ReadCloser, error) {
	f, err := w.OpenFile(arg)
	if errors.Is(err, errNoFile) {
		err = &fs.PathError{Op: "open", Path: arg, Err: fmt.Errorf("%w (a URL begins with https:// or http://)", errNoFile)}
	}
	return f, err
}

// IsStream reports whether a file, or standard input, is anything but a file on a disk,
// such as a pipe, which may end before everything was written.
func (w *World) IsStream(arg string) bool {
	info, err := os.Stat(arg)
	if arg == "-" {
		stdin, ok := w.Stdin.(*terminal.StdinReader)
		if !ok {
			return true
		}
		file, ok := stdin.In.(*os.File)
		if !ok {
			return true
		}
		info, err = file.Stat()
	}
	return err != nil || !info.Mode().IsRegular()
}

var (
	errNoFile = errors.New("there is no such file")
	errIsURL  = errors.New("a URL cannot be read here, only a file or standard input")
)

// OpenFile opens a file or standard input.
func (w *World) OpenFile(arg string) (io.ReadCloser, error) {
	if arg == "-" {
		return io.NopCloser(w.Stdin), nil
	}
	f, err := os.Open(arg)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist) && argument.IsURL(arg):
		err = errIsURL
	case errors.Is(err, fs.ErrNotExist):
		err = errNoFile
	default:
		return nil, err
	}
	return nil, &fs.PathError{Op: "open", Path: arg, Err: err}
}
