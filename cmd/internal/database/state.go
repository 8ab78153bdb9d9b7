package database

import (
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// Never is the time of the next poll of a harvested feed, which sync does not poll: most
// collections are not feeds to be polled.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// IsHarvested reports whether harvests keep a feed current, rather than polls.
func IsHarvested(f *mirror.Feed) bool { return f.Next.Equal(Never) }
