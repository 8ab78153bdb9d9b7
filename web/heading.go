package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/mirror"
)

// Namespace is that of the element mirror, by which the head of a feed that is
// published again says how much of it the mirror has.
const Namespace = "https://github.com/feedhistory/feedhistory/ns/mirror/1.0"

// heading returns the head of what is published again of a feed. That of its
// archives, which never change, has no verdict.
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
	if !verdict {
		return reread(head, format, "")
	}
	if head.Subtitle != "" {
		head.Subtitle += " – "
	}
	head.Subtitle += fmt.Sprintf("Mirrored from %s. Verdict: %v. %s", feed.URL, feed.Verdict, verdictText(feed.Verdict))
	return reread(head, format, verdictElement(feed))
}

// verdictElement returns the element that says what the subtitle says, and what
// is missing.
func verdictElement(feed *mirror.Feed) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<m:mirror xmlns:m="%s" of="%s" kind="%v" verdict="%v">`, Namespace, escape(feed.URL), feed.Kind, feed.Verdict)
	for _, gap := range feed.Missing() {
		fmt.Fprintf(&b, `<m:gap reason="%v" href="%s"/>`, gap.Reason, escape(fetch.Redact(gap.URL)))
	}
	b.WriteString("</m:mirror>")
	return b.String()
}

// reread returns a head as one that was read in the format, so that it has the
// further element wherever it is written.
func reread(head *feedhistory.Document, format feedhistory.Format, element string) (*feedhistory.Document, error) {
	var b strings.Builder
	write, end := feedhistory.WriteAtom, "</feed>"
	if format == feedhistory.RSS {
		write, end = feedhistory.WriteRSS, "</channel>"
	}
	if err := write(&b, head); err != nil {
		return nil, err
	}
	text := b.String()
	at := strings.LastIndex(text, end)
	return feedhistory.Parse(strings.NewReader(text[:at]+element+text[at:]), "")
}
