package main

import (
	"net/url"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
)

// What entries --enclosures prints, for programs that download.

// enclosures prints a line for each file that an entry comes with: its address,
// type, length in bytes, duration and episode, with tabs between them. What is not
// known is empty. Only what is on the web is printed, in such a way that xargs and
// shells take each address for one word.
func (p *page) enclosures(e *feedhistory.Entry) error {
	record := publish.NewRecord(e)
	duration, episode := extensionOf(record, "itunes:duration"), extensionOf(record, "itunes:episode")
	if episode == "" {
		episode = extensionOf(record, "podcast:episode")
	}
	for _, l := range e.Links {
		if l.Rel != feedhistory.RelEnclosure {
			continue
		}
		if u, err := url.Parse(l.Href); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") {
			p.Line(strings.Join([]string{oneWord.Replace(u.String()), clean(l.Type), clean(l.Length), clean(duration), clean(episode)}, "\t"))
		}
	}
	return p.Err
}

// oneWord escapes what splits words in xargs and shells.
var oneWord = strings.NewReplacer(" ", "%20", "'", "%27", `"`, "%22", `\`, "%5C", "`", "%60", "$", "%24", ";", "%3B", "(", "%28", ")", "%29")

// extensionOf is what the first extension of a name says; "" if there is none.
func extensionOf(r *publish.Record, name string) string {
	for _, x := range r.Extensions {
		if x.Name == name {
			return x.Value
		}
	}
	return ""
}
