package show

import (
	"net/url"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/publish"
)

// Enclosures prints a line for each file of an entry, for downloaders: the file's address,
// type, length in bytes, duration, episode, date and title, with tabs between them. An unknown
// value is empty. It prints only files on the web, and escapes each address as one word for
// xargs and shells.
func Enclosures(p *terminal.Page, e *feedhistory.Entry, at time.Time) error {
	record := publish.NewLine(e)
	duration, episode := extensionOf(record, "itunes:duration"), extensionOf(record, "itunes:episode")
	if episode == "" {
		episode = extensionOf(record, "podcast:episode")
	}
	for _, l := range e.Links {
		if l.Rel != feedhistory.RelEnclosure {
			continue
		}
		if u, err := url.Parse(l.Href); err == nil && argument.IsWeb(l.Href) {
			p.Line(strings.Join([]string{oneWord.Replace(u.String()), terminal.Clean(l.Type), terminal.Clean(l.Length), terminal.Clean(duration), terminal.Clean(episode), Day(at), terminal.Clean(e.Title().Plain())}, "\t"))
		}
	}
	return p.Err
}

// oneWord escapes the characters between words in xargs and shells.
var oneWord = strings.NewReplacer(" ", "%20", "'", "%27", `"`, "%22", `\`, "%5C", "`", "%60", "$", "%24", ";", "%3B", "(", "%28", ")", "%29")

// extensionOf returns the value of the first extension with a name; "" if there is none.
func extensionOf(r *publish.Line, name string) string {
	for _, x := range r.Extensions {
		if x.Name == name {
			return x.Value
		}
	}
	return ""
}
