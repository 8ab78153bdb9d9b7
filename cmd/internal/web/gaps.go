package web

import (
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A gapView is a gap of a feed, as a page shows it.
type gapView struct {
	Number  int
	What    string // the missing part
	Message string // why it is missing
	Advice  string // the remedy
	URL     string // the URL of the document
	Shown   string // the URL without userinfo
	Found   time.Time
	Retry   time.Time // when to try again; zero means at the next poll, or never
	Reason  feedhistory.Reason
	Todo    bool // whether the document is only still to be read
}

// gapsOf returns the gaps of a feed.
func gapsOf(feed *mirror.Feed) (views []gapView) {
	for i, gap := range feed.Missing() {
		v := gapView{
			Number: i + 1, What: "An archive document could not be retrieved", Message: gap.Err.Error(), Advice: gap.Reason.Advice(),
			URL: webLink(gap.URL), Shown: feedhistory.Redact(gap.URL), Found: gap.Found, Reason: gap.Reason,
		}
		if i < len(feed.Pending) {
			v.Retry = feed.Pending[i].Retry
		}
		switch {
		case gap.Reason == feedhistory.ReasonMissedWindow:
			v.What = "Entries may have come and gone between two polls"
		case gap.Reason == feedhistory.ReasonInterrupted:
			v.What, v.Todo = "A document has not been read yet", feed.Unfinished || feed.More
		case gap.Reason == feedhistory.ReasonLoop:
			v.What = "The chain of documents leads back into itself"
		case feed.Kind == feedhistory.Paged:
			v.What = "A page could not be retrieved"
		}
		views = append(views, v)
	}
	return views
}
