package web

import (
	"testing"

	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/outputtest"
)

func TestBelow(t *testing.T) {
	t.Parallel()
	outputtest.Run(t, func(t testing.TB) (out, other publish.Output) {
		d := publish.Dir{Path: t.TempDir()}
		return below{d, "a/b"}, below{below{d, "a"}, "b"}
	})
}

// TestStaged checks that only its writer sees what a staged Output holds back,
// and that it is otherwise like any Output.
func TestStaged(t *testing.T) {
	t.Parallel()
	outputtest.Run(t, func(testing.TB) (out, other publish.Output) {
		m := &publish.Memory{}
		s := &staged{Output: m, name: "index.atom", files: map[string][]byte{}, lock: m.Lock}
		return s, s
	})
}
