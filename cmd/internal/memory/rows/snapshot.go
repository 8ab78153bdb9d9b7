package rows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
)

const (
	mostPasses = 60
	longPause  = 500 * time.Millisecond
	blockSize  = 1 << 20
)

// parts are the endings of a database's files: the rollback journal and the write-ahead
// log belong to its content. SQLite makes a new index of the log (-shm).
var parts = [...]string{"", "-journal", "-wal"}

var errBusy = errors.New("another program writes to it all the time, so no copy is whole; try again when it is idle")

// A snapshot copies a database without a lock, because newsboat loses a write that meets
// one.
//
// Each pass compares the database with the copy, and replaces the blocks that differ. A
// pass that finds none, while nothing is written, proves that the copy is the database as
// it was when that pass began. SQLite repairs it as it does after a crash.
type snapshot struct {
	source, copy string
	theirs, ours []byte
	looked       func(part string) // called after each block, in tests
}

// take makes the copy.
func (s *snapshot) take(ctx context.Context) error {
	s.theirs, s.ours = make([]byte, blockSize), make([]byte, blockSize)
	for pass := range mostPasses {
		if pass > 1 { // the first one only copies
			if err := pause(ctx, min(time.Duration(pass*pass)*time.Millisecond, longPause)); err != nil {
				return err
			}
		}
		before, err := s.state()
		if err != nil {
			return err
		}
		changed := false
		for i, info := range before {
			other, err := s.update(ctx, parts[i], info)
			if err != nil {
				return err
			}
			changed = changed || other
		}
		after, err := s.state()
		if err != nil {
			return err
		}
		if !changed && same(before, after) {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", s.source, errBusy)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// state describes the files of the database; nil for those which do not exist.
func (s *snapshot) state() (state [len(parts)]os.FileInfo, err error) {
	for i, part := range parts {
		info, err := os.Stat(s.source + part)
		switch {
		case err == nil && !info.Mode().IsRegular():
			return state, fmt.Errorf("%s: not a file", s.source+part)
		case err == nil:
			state[i] = info
		case i == 0 || !errors.Is(err, fs.ErrNotExist):
			return state, err
		}
	}
	return state, nil
}

func same(before, after [len(parts)]os.FileInfo) bool {
	for i, a := range before {
		b := after[i]
		if (a == nil) != (b == nil) {
			return false
		}
		if a != nil && (!os.SameFile(a, b) || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime())) {
			return false
		}
	}
	return true
}

// update makes the copy of a file equal to it, and reports whether they differed.
func (s *snapshot) update(ctx context.Context, part string, info os.FileInfo) (changed bool, err error) {
	var source *os.File
	if info != nil {
		source, err = os.Open(s.source + part)
		if err != nil && (part == "" || !errors.Is(err, fs.ErrNotExist)) {
			return false, err
		}
	}
	if source == nil {
		err := os.Remove(s.copy + part)
		if errors.Is(err, fs.ErrNotExist) {
			return info != nil, nil
		}
		return true, err
	}
	defer source.Close()
	target, err := os.OpenFile(s.copy+part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, s.noRoom(err, info)
	}
	changed, err = s.blocks(ctx, part, source, target)
	return changed, s.noRoom(errors.Join(err, target.Close()), info)
}

func (s *snapshot) blocks(ctx context.Context, part string, source, target *os.File) (changed bool, err error) {
	for at := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, ended := source.ReadAt(s.theirs, at)
		if ended != nil && ended != io.EOF {
			return false, ended
		}
		m, err := target.ReadAt(s.ours, at)
		if err != nil && err != io.EOF {
			return false, err
		}
		if !bytes.Equal(s.theirs[:n], s.ours[:m]) {
			changed = true
			if _, err := target.WriteAt(s.theirs[:n], at); err != nil {
				return false, err
			}
		}
		if s.looked != nil {
			s.looked(part)
		}
		if at += int64(n); ended == io.EOF {
			return changed, target.Truncate(at)
		}
	}
}

// noRoom adds advice to the error of a copy that does not fit.
func (s *snapshot) noRoom(err error, info os.FileInfo) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%s has no room for a copy of %s (%s): set TMPDIR to a directory that has",
			filepath.Dir(filepath.Dir(s.copy)), s.source, argument.SizeText((info.Size()+999_999)/1e6*1e6))
	}
	return err
}
