package mirror_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/website"
	"github.com/feedhistory/feedhistory/mirror"
)

// A failingReads is a store in which one read fails.
type failingReads struct {
	mirror.Store
	reads int
	fail  int                     // the number of the read that fails; zero means none
	first func(stack [12]uintptr) // called with the callers of each read
}

func (s *failingReads) read() error {
	s.reads++
	if s.first != nil {
		var stack [12]uintptr
		runtime.Callers(3, stack[:])
		s.first(stack)
	}
	if s.reads == s.fail {
		return errDisk
	}
	return nil
}

func (s *failingReads) Feed(ctx context.Context, url string) (*mirror.Feed, error) {
	if err := s.read(); err != nil {
		return nil, err
	}
	return s.Store.Feed(ctx, url)
}

func (s *failingReads) Records(ctx context.Context, feed string, ids []string) (map[string]*mirror.Record, error) {
	if err := s.read(); err != nil {
		return nil, err
	}
	return s.Store.Records(ctx, feed, ids)
}

func (s *failingReads) Document(ctx context.Context, feed, url string) (*mirror.DocumentRecord, error) {
	if err := s.read(); err != nil {
		return nil, err
	}
	return s.Store.Document(ctx, feed, url)
}

func (s *failingReads) Documents(ctx context.Context, feed string) iter.Seq2[*mirror.DocumentRecord, error] {
	return failing(s.read(), s.Store.Documents(ctx, feed))
}

func (s *failingReads) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	return failing(s.read(), s.Store.Entries(ctx, q))
}

func (s *failingReads) Versions(ctx context.Context, feed, id string) iter.Seq2[*mirror.Record, error] {
	return failing(s.read(), s.Store.Versions(ctx, feed, id))
}

func failing[T any](err error, all iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	if err == nil {
		return all
	}
	return func(yield func(*T, error) bool) { yield(nil, err) }
}

// poll polls the site of a fixture as often as that says, until the store fails.
func (s *failingReads) poll(t *testing.T, text string) (err error) {
	synctest.Test(t, func(t *testing.T) {
		site, newErr := website.New(text)
		require.NoError(t, newErr)
		site.URL, site.Other = "http://site.example", "http://other.example"
		polls, _ := feedtest.Parse(text).File("polls")
		for i, words := range strings.Split(strings.TrimSuffix(polls, "\n"), "\n") {
			if time.Sleep(time.Hour); i > 0 {
				site.Next()
			}
			m := newMirror(s, site)
			m.Revalidate = strings.Contains(words, "revalidate")
			if _, words, ok := strings.Cut(words, "budget"); ok {
				_, _ = fmt.Sscan(words, &m.Client.Budget.Documents)
			}
			if _, err = m.Update(t.Context(), site.URL+"/feed.atom"); err != nil {
				return
			}
		}
	})
	return err
}

// Wherever a poll reads the store, it ends with the error if that fails: what it could not
// read is not taken for absent.
func TestStoreFails(t *testing.T) {
	known := map[[12]uintptr]bool{}
	for _, file := range append(feedtest.Glob(t, "testdata/*.txtar"), feedtest.Glob(t, "../conformance/cases/polls/*.txtar")...) {
		text, reads := string(feedtest.ReadFile(t, file)), []int(nil)
		s := &failingReads{Store: mirror.NewMemory()}
		s.first = func(stack [12]uintptr) {
			if !known[stack] {
				known[stack], reads = true, append(reads, s.reads)
			}
		}
		require.NoError(t, s.poll(t, text), file)
		for _, n := range reads {
			t.Run(fmt.Sprint(strings.TrimSuffix(filepath.Base(file), ".txtar"), " ", n), func(t *testing.T) {
				require.ErrorIs(t, (&failingReads{Store: mirror.NewMemory(), fail: n}).poll(t, text), errDisk)
			})
		}
	}
	require.Greater(t, len(known), 50)
}
