package chain_test

import (
	"testing"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

func TestMain(m *testing.M) { feedtest.Main(m) }
