package database

import (
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// Never is the time of the next poll of a harvested feed, which sync does not poll: most
// collections are not feeds that can be polled.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

func IsHarvested(f *mirror.Feed) bool { return f.Next.Equal(Never) }

// ImportSource is the Source of a feed whose import has not ended.
const ImportSource = "import"

func IsImporting(f *mirror.Feed) bool { return f.Source == ImportSource && f.Polls == 0 }
