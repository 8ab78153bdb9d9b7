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

// Title returns the title under which a feed is published: its own, or else its
// URL. Of a private feed's URL it has only the host.
func Title(feed *mirror.Feed) string {
	if feed == nil {
		return ""
	}
	_, address, _ := strings.Cut(cmp.Or(addressOf(feed), hostOf(feed)), "://")
	return cmp.Or(strings.TrimSpace(feed.Redacted().Title), strings.TrimSuffix(address, "/"))
}

// addressOf returns the URL of a feed as documents may name it. A private feed's is "",
// because its path or its query may be the secret.
func addressOf(feed *mirror.Feed) string {
	if feed.Private {
		return ""
	}
	return iri.Redact(feed.URL)
}

func hostOf(feed *mirror.Feed) string {
	u, err := iri.ParseLeniently(feed.URL)
	if err != nil {
		return "a private feed"
	}
	return u.Scheme + "://" + u.Host
}

// gapsOf returns the gaps of a feed as documents may report them.
func gapsOf(feed *mirror.Feed) []*feedhistory.Gap { return feed.Redacted().Missing() }

// Site returns the URL of the website a feed belongs to; "" if unknown.
func Site(feed *mirror.Feed) string {
	if feed == nil {
		return ""
	}
	head, err := feed.Redacted().Document()
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

// verdictText explains a verdict on a mirror.
func verdictText(v feedhistory.Verdict) string {
	switch v {
	case feedhistory.Whole:
		return "Every entry the feed says it has is here."
	case feedhistory.Window:
		return "The feed lists only its latest entries. These are the ones collected so far."
	case feedhistory.Lossy:
		return "All pages of the feed are here, but a paged feed cannot promise to have everything."
	}
	return "Something is known to be missing."
}

// heading returns the head of a republished feed. With nil coverage
// it is the head of archives, which never change.
func heading(feed *mirror.Feed, format feedhistory.Format, coverage *feedhistory.Coverage) (*feedhistory.Document, error) {
	head, err := feed.Redacted().Document()
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
	if address := addressOf(feed); address != "" {
		head.Links = append(head.Links, feedhistory.Link{Rel: "via", Href: address})
	}
	if head.Coverage = coverage; coverage != nil {
		if head.Subtitle != "" {
			head.Subtitle += " – "
		}
		head.Subtitle += fmt.Sprintf("Mirrored from %s. Verdict: %v. %s", cmp.Or(addressOf(feed), hostOf(feed)), coverage.Verdict, verdictText(coverage.Verdict))
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
