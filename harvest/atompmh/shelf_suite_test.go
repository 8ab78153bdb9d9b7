package atompmh_test

import (
	"testing"

	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/atompmh/shelftest"
)

func TestMemoryShelf(t *testing.T) { shelftest.Run(t, atompmh.NewMemoryShelf()) }
