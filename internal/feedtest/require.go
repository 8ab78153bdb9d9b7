package feedtest

import (
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// ErrorAs returns the error of a type in the tree of err, and fails the test if there is
// none.
func ErrorAs[E error](t require.TestingT, err error, message ...any) E {
	found, ok := errors.AsType[E](err)
	require.True(t, ok, "%v: no %T %v", err, found, message)
	return found
}

// All returns the values of a sequence, and fails the test if one has an error.
func All[T any](t require.TestingT, values iter.Seq2[T, error]) (all []T) {
	for value, err := range values {
		require.NoError(t, err)
		all = append(all, value)
	}
	return all
}

// Server serves a handler on the loopback interface until the test ends.
func Server(t testing.TB, h http.Handler) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// ReadFile returns the content of a file.
func ReadFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return data
}

// Glob returns the names of the files matching a pattern, and requires at least one.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, names, "no file matches %s", pattern)
	return names
}

// Values returns a sequence of values without errors.
func Values[T any](values ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, value := range values {
			if !yield(value, nil) {
				return
			}
		}
	}
}

// Watch returns a sequence with a function called for each value first.
func Watch[T any](values iter.Seq2[T, error], see func(T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for value, err := range values {
			if see(value, err); !yield(value, err) {
				return
			}
		}
	}
}
