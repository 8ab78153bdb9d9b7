package fetch

import (
	"testing"

	"github.com/feedhistory/feedhistory/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
