package markup

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// IsOfComments reports whether a link on a page seems to lead to a feed of
// comments instead of articles.
func IsOfComments(title, href string) bool {
	title = strings.ToLower(title)
	for _, word := range []string{"comment", "kommentar", "comentario", "comentário", "commenti", "reacties", "комментари", "コメント", "评论"} {
		if strings.Contains(title, word) {
			return true
		}
	}
	u, err := url.Parse(href)
	return err == nil && slices.ContainsFunc(words(u.Path+" "+u.RawQuery), func(word string) bool {
		return word == "comments" || word == "comment"
	})
}

// A FeedName is the name of a feed on a page, without the names of formats.
type FeedName struct{ title, address string }

// NameOf returns the name of the feed behind a link on a page.
func NameOf(title, href string) FeedName {
	host, path := "", href
	if u, err := url.Parse(href); err == nil {
		host, path = u.Host, u.Path+" "+u.RawQuery
	}
	return FeedName{unformatted(title), host + "\n" + unformatted(path)}
}

// Matches reports whether two links seem to lead to the same feed in different
// formats: their addresses are equal, and so are their titles if both have one.
func (n FeedName) Matches(other FeedName) bool {
	return n.address == other.address && (n.title == other.title || n.title == "" || other.title == "")
}

// formatWords are the words in which the links to the formats of one feed
// differ.
var formatWords = []string{
	"atom", "rss", "rss1", "rss2", "rdf", "json", "xml", "feed", "index", "alt", "format", "type",
	"0", "1", "2", "3", "10", "20", "90", "91", "92", "03",
}

func unformatted(text string) string {
	return strings.Join(slices.DeleteFunc(words(text), func(word string) bool { return slices.Contains(formatWords, word) }), " ")
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
