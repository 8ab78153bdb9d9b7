package mirror_test

import (
	"testing"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(testing.TB) (store, other mirror.Store) {
		m := mirror.NewMemory()
		return m, m
	})
}
