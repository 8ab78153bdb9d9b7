package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Namespace is the namespace of the element mirror in the head of a feed that
// is published again. It says how much of the feed the mirror has: see
// feedhistory.Coverage.
const Namespace = feedhistory.CoverageNamespace

// heading returns the head of a feed that is published again. Without verdict
// it is the head for archives, which never change.
func heading(feed *mirror.Feed, format feedhistory.Format, verdict bool) (*feedhistory.Document, error) {
	head, err := feed.Document()
	if err != nil {
		return nil, err
	}
	head.Format = feedhistory.Atom
	head.Title = titleOf(feed)
	head.Updated, head.LastModified = time.Time{}, time.Time{}
	if len(head.Authors) == 0 {
		head.Authors = []feedhistory.Person{{Name: head.Title}}
	}
	head.Links = slices.DeleteFunc(head.Links, func(l feedhistory.Link) bool { return l.Rel != feedhistory.RelAlternate })
	head.Links = append(head.Links, feedhistory.Link{Rel: "via", Href: feed.URL})
	if head.Coverage = nil; !verdict {
		return reread(head, format)
	}
	if head.Subtitle != "" {
		head.Subtitle += " – "
	}
	head.Subtitle += fmt.Sprintf("Mirrored from %s. Verdict: %v. %s", feed.URL, feed.Verdict, verdictText(feed.Verdict))
	head.Coverage = &feedhistory.Coverage{Of: feed.URL, Kind: feed.Kind, Verdict: feed.Verdict, Gaps: feed.Missing()}
	return reread(head, format)
}

// reread returns a head as if it had been read in the format.
func reread(head *feedhistory.Document, format feedhistory.Format) (*feedhistory.Document, error) {
	var b strings.Builder
	write := feedhistory.WriteAtom
	if format == feedhistory.RSS {
		write = feedhistory.WriteRSS
	}
	if err := write(&b, head); err != nil {
		return nil, err
	}
	return feedhistory.Parse(strings.NewReader(b.String()), "")
}
