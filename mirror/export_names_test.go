package mirror

import (
	"time"

	"github.com/feedhistory/feedhistory"
)

// UnderWay reports whether another mirror seems to be at work on the feed.
func (f *Feed) UnderWay(now time.Time) bool { return f.underWay(now) }

// A Usage is the part of its Quota a feed has used.
type Usage = usage

// Usage returns the part of its Quota the feed has used.
func (f *Feed) Usage() Usage { return f.Ledger.l.Usage }

// Host returns the host of the feed's address.
func (f *Feed) Host() string { return f.host() }

// HeadOf returns the head section of a document to store.
func HeadOf(doc *feedhistory.Document) string { return headOf(doc) }
