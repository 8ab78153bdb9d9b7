package republish

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/mirror"
)

// Title returns the title under which a feed is published: its own, or its URL.
func Title(feed *mirror.Feed) string {
	_, address, _ := strings.Cut(feed.URL, "://")
	return cmp.Or(strings.TrimSpace(feed.Title), strings.TrimSuffix(address, "/"))
}

// Site returns the URL of the website a feed belongs to; "" if unknown.
func Site(feed *mirror.Feed) string {
	head, err := feed.Document()
	if err != nil {
		return ""
	}
	link, _ := head.Links.Rel(feedhistory.RelAlternate)
	u, err := iri.ParseLeniently(link.Href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	if _, fragment, ok := strings.Cut(link.Href, "#"); ok {
		return u.String() + "#" + iri.Escape(fragment)
	}
	return u.String()
}

// verdictText says what a verdict means for a mirror.
func verdictText(v feedhistory.Verdict) string {
	switch v {
	case feedhistory.Whole:
		return "Every entry that the feed says it has is here."
	case feedhistory.Window:
		return "The feed shows its latest entries, and does not say what came before. Here is what was seen."
	case feedhistory.Lossy:
		return "All pages of the feed are here, but a paged feed cannot promise to have everything."
	}
	return "Something is known to be missing."
}

// heading returns the head of a feed that is published again. With nil coverage
// it is the head of archives, which never change.
func heading(feed *mirror.Feed, format feedhistory.Format, coverage *feedhistory.Coverage) (*feedhistory.Document, error) {
	head, err := feed.Document()
	if err != nil {
		return nil, err
	}
	head.Format = feedhistory.Atom
	head.Title = Title(feed)
	head.Updated, head.LastModified = time.Time{}, time.Time{}
	if len(head.Authors) == 0 {
		head.Authors = []feedhistory.Person{{Name: head.Title}}
	}
	head.Links = slices.DeleteFunc(head.Links, func(l feedhistory.Link) bool { return l.Rel != feedhistory.RelAlternate })
	head.Links = append(head.Links, feedhistory.Link{Rel: "via", Href: feed.URL})
	if head.Coverage = coverage; coverage != nil {
		if head.Subtitle != "" {
			head.Subtitle += " – "
		}
		head.Subtitle += fmt.Sprintf("Mirrored from %s. Verdict: %v. %s", feed.URL, coverage.Verdict, verdictText(coverage.Verdict))
	}
	return reread(head, format)
}

// reread returns a head as if it had been read in the format.
func reread(head *feedhistory.Document, format feedhistory.Format) (*feedhistory.Document, error) {
	var b bytes.Buffer
	if err := write(&b, head, format); err != nil {
		return nil, err
	}
	return feedhistory.Parse(&b, "")
}
