package publish_test

import (
	"testing"

	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/outputtest"
)

func TestDirOutput(t *testing.T) {
	t.Parallel()
	outputtest.Run(t, func(t testing.TB) (out, other publish.Output) {
		dir := t.TempDir()
		return publish.Dir{Path: dir + "/new"}, publish.Dir{Path: dir + "/./new"}
	})
}

func TestMemory(t *testing.T) {
	t.Parallel()
	outputtest.Run(t, func(testing.TB) (out, other publish.Output) {
		m := &publish.MemoryOutput{}
		return m, m
	})
}
