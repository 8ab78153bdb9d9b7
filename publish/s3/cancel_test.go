//go:build unix

package s3_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
)

// A publisher interrupted at any request returns the context's error and leaves the lock
// free, so the next one, on another machine, begins at once. Whether the request takes
// effect is open.
func TestCancel(t *testing.T) {
	t.Parallel()
	every, requests := feedtest.Stride(1), requestsToCancel(t)
	for i, how := range []fault{hangs, landsHangs} { // before and after it takes effect
		for n := 1 + i*every/2; n <= requests; n += every {
			t.Run(fmt.Sprintf("%d/%d", how, n), func(t *testing.T) { interrupt(t, how, n) })
		}
	}
}

// begun returns a store with four entries.
func begun(t *testing.T) *store {
	s := newStore(t)
	require.NoError(t, newPublisher(s.output(t)).Append(t.Context(), entries(t, 1, 4)...))
	s.requests()
	return s
}

// requestsToCancel returns the number of requests of a call, but for the last one, which
// releases the lock and is not canceled.
func requestsToCancel(t *testing.T) int {
	s := begun(t)
	require.NoError(t, newPublisher(s.output(t)).Append(t.Context(), entries(t, 5, 6)...))
	return len(s.requests()) - 1
}

// interrupt cancels a call at its nth request.
func interrupt(t *testing.T, how fault, n int) {
	s := begun(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	made := 0
	s.setFault(func(*http.Request) fault {
		if made++; made != n {
			return none
		}
		s.hanging = cancel
		return how
	})
	err := newPublisher(s.output(t)).Append(ctx, entries(t, 5, 6)...)
	s.setFault(nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, newPublisher(s.output(t)).Append(t.Context(), entries(t, 5, 6)...))
	requireEntries(t, s.output(t), 10)
}

// The methods of an Output end with their context, against a real store as well, and
// unlock releases the lock afterwards.
func TestCancelMethods(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(*testing.T) *store{
		"gofakes3":  func(t *testing.T) *store { return newStore(t) },
		"versitygw": func(t *testing.T) *store { return newGateway(t).store },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := make(t)
			out, other := s.output(t), s.output(t)
			over, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := out.Lock(over)
			require.ErrorIs(t, err, context.Canceled)
			unlock, err := out.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, out.Put(t.Context(), "a", []byte("1")))
			require.ErrorIs(t, out.Put(over, "a", []byte("2")), context.Canceled)
			require.ErrorIs(t, out.Put(over, ".note", []byte("2")), context.Canceled)
			require.ErrorIs(t, out.Remove(over, "a"), context.Canceled)
			_, err = other.Lock(t.Context())
			require.ErrorIs(t, err, publish.ErrLocked)
			require.NoError(t, unlock())
			unlock, err = other.Lock(t.Context())
			require.NoError(t, err)
			data, err := other.ReadFile("a")
			require.NoError(t, err)
			require.Equal(t, "1", string(data))
			require.NoError(t, unlock())
		})
	}
}
