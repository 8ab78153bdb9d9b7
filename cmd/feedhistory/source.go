package main

import (
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
)

// isURL reports whether an argument is a URL rather than a file's name.
func isURL(arg string) bool {
	scheme, _, ok := strings.Cut(arg, "://")
	return ok && scheme != "" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// checkURL refuses URLs that no feed can be fetched from.
func checkURL(arg string) error {
	if !isURL(arg) {
		return usageError(arg + " is not a URL: it should begin with https:// or http://")
	}
	u, err := fetch.ParseLeniently(arg)
	var why *url.Error
	switch {
	case errors.As(err, &why):
		return usageError(arg + " is not a URL: " + why.Err.Error())
	case u.Scheme != "http" && u.Scheme != "https":
		return usageError("only https and http URLs are fetched, not " + u.Scheme)
	case u.Hostname() == "":
		return usageError(arg + " is not a URL: it has no host")
	}
	return nil
}

// document reads the one document that an argument names: a URL, a file, or
// standard input. With an error comes what could be read, or nil.
func (w *world) document(arg, base string) (*feedhistory.Document, error) {
	if isURL(arg) {
		if err := checkURL(arg); err != nil {
			return nil, err
		}
		if base != "" {
			return nil, usageError("--base is for files and standard input: a document at a URL has its own base")
		}
		return w.client(w.stderr).Get(w.ctx, arg)
	}
	in, err := w.open(arg)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return feedhistory.Parse(in, base)
}

func (w *world) open(arg string) (io.ReadCloser, error) {
	if arg == "-" {
		return io.NopCloser(w.stdin), nil
	}
	f, err := os.Open(arg)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New(arg + ": there is no such file (and a URL would begin with https:// or http://)")
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}
