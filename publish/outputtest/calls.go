package outputtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
)

// testAliases checks whether the caller may reuse its bytes, and change those it has
// read.
func testAliases(t *testing.T, w *world) {
	w.lock()
	for _, name := range []string{"x", ".hidden"} {
		data := []byte("text")
		require.NoError(t, w.Put(t.Context(), name, data))
		copy(data, "gone")
		w.requireText(name, "text")
		read, err := fs.ReadFile(w.Output, name)
		require.NoError(t, err)
		copy(read, "gone")
		w.requireText(name, "text")
	}
}

func testRefused(t *testing.T, w *world) {
	w.lock()
	for _, name := range []string{"", ".", "/x", "x/", "../x", "a/../x", "a//x", "./x", "a/."} {
		require.ErrorIs(t, w.Put(t.Context(), name, []byte("x")), fs.ErrInvalid, name)
		require.ErrorIs(t, w.Remove(t.Context(), name), fs.ErrInvalid, name)
	}
	names, err := visible(w.Output, ".")
	require.NoError(t, err)
	require.Empty(t, names)
}

func testLock(t *testing.T, w *world) {
	for range 3 {
		unlock, err := w.Lock(t.Context())
		require.NoError(t, err)
		for _, out := range []publish.Output{w.Output, w.other} {
			_, err := out.Lock(t.Context())
			require.ErrorIs(t, err, publish.ErrLocked)
		}
		w.put("x", "text")
		w.put(".hidden", "text")
		w.requireText("x", "text")
		w.requireText(".hidden", "text")
		require.NoError(t, unlock())
		w.requireText("x", "text")
		w.requireText(".hidden", "text")

		again := unlock
		unlock, err = w.other.Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, again(), "it does not free the lock of the other")
		_, err = w.Lock(t.Context())
		require.ErrorIs(t, err, publish.ErrLocked)
		require.NoError(t, w.other.Put(t.Context(), "x", []byte("of the other")))
		require.NoError(t, w.other.Remove(t.Context(), ".hidden"))
		w.requireText("x", "of the other")
		w.requireMissing(".hidden")
		require.NoError(t, unlock())
	}
}

// testAtomic checks whether a reader finds all of one text or all of another.
func testAtomic(t *testing.T, w *world) {
	w.lock()
	texts := [][]byte{bytes.Repeat([]byte("a"), 100_000), bytes.Repeat([]byte("b"), 50_000), {}}
	w.put("x", string(texts[0]))
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		defer close(done)
		for i := range 60 {
			if err := w.Put(t.Context(), "x", texts[i%len(texts)]); err != nil {
				t.Error(err)
			}
		}
	})
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		data, err := fs.ReadFile(w.other, "x")
		require.NoError(t, err)
		if i := len(data) / 50_000; len(data)%50_000 != 0 || !bytes.Equal(data, texts[2-i]) {
			require.Fail(t, "part of a text", "%d bytes", len(data))
		}
	}
	writer.Wait()
}

func testParallel(t *testing.T, w *world) {
	w.lock()
	const writers, rounds = 8, 6
	feedtest.AtOnce(t, writers, func(i int) (err error) {
		for round := range rounds {
			name := fmt.Sprintf("%d/%d", i, round)
			err = errors.Join(err,
				w.Put(t.Context(), name, []byte(name)), w.Put(t.Context(), fmt.Sprint(i, "/last"), []byte(name)),
				w.Put(t.Context(), name+".gone", []byte(name)), w.Remove(t.Context(), name+".gone"), w.Put(t.Context(), fmt.Sprintf(".%d", i), []byte(name)))
		}
		return err
	})
	for i := range writers {
		for round := range rounds {
			name := fmt.Sprintf("%d/%d", i, round)
			w.requireText(name, name)
			w.requireMissing(name + ".gone")
		}
		last := fmt.Sprintf("%d/%d", i, rounds-1)
		w.requireText(fmt.Sprint(i, "/last"), last)
		w.requireText(fmt.Sprintf(".%d", i), last)
	}
}
