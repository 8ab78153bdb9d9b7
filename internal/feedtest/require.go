package feedtest

import (
	"errors"
	"iter"

	"github.com/stretchr/testify/require"
)

// ErrorAs returns the error of a type in the tree of err, and requires that there is one.
func ErrorAs[E error](t require.TestingT, err error, message ...any) E {
	found, ok := errors.AsType[E](err)
	require.True(t, ok, "%v: no %T %v", err, found, message)
	return found
}

// All returns the values of a sequence, and requires that none has an error.
func All[T any](t require.TestingT, values iter.Seq2[T, error]) (all []T) {
	for value, err := range values {
		require.NoError(t, err)
		all = append(all, value)
	}
	return all
}
