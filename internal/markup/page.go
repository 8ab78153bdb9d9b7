package markup

import (
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// A FeedLink is a link of a web page to a feed.
type FeedLink struct {
	Href     string // absolute, without a fragment
	Type     string // the media type, in small letters and without parameters
	Title    string
	HrefLang string     // the language of the feed
	Formats  []FeedLink // the feed in other formats, the preferred one first

	rel     string // in small letters
	isEntry bool   // it leads to an Atom entry document (RFC 5023 §12.1)
}

// The limits on reading a web page.
const (
	mostPage      = 1 << 20 // bytes of the page
	mostFeedLinks = 64      // links
	mostTitle     = 200     // bytes of a link's title
)

// FeedLinks returns the feeds the page at address links to, the best first, each once.
// It reads the first 1 MiB of the page, and returns at most 64 links, none of them
// longer than longest.
func FeedLinks(page, address, contentType string, longest int) []FeedLink {
	return bestFirst(links(page, address, contentType, longest))
}

// links returns the links of a page to feeds.
func links(page, address, contentType string, longest int) []FeedLink {
	base, err := url.Parse(address)
	if err != nil {
		return nil
	}
	text, err := charset.NewReader(strings.NewReader(page[:min(len(page), mostPage)]), contentType)
	if err != nil {
		return nil // the page is empty
	}
	found, ref := scanPage(io.LimitReader(text, 3*mostPage))
	if u, err := base.Parse(ref); err == nil && isWeb(u) {
		base = u
	}
	var links []FeedLink
	seen := map[string]bool{}
	for _, link := range found {
		u, err := base.Parse(link.Href)
		if err != nil || !isWeb(u) || u.User != nil {
			continue
		}
		u.Fragment, u.RawFragment = "", ""
		if link.Href = u.String(); len(link.Href) <= longest && !seen[link.Href] {
			seen[link.Href] = true
			links = append(links, link)
		}
		if len(links) == mostFeedLinks {
			break
		}
	}
	return links
}

func isWeb(u *url.URL) bool { return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" }

// scanPage returns the links of a page to feeds, as written, and its first base.
func scanPage(page io.Reader) (links []FeedLink, base string) {
	z := html.NewTokenizer(page)
	z.SetMaxBuf(mostPage)
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return links, base
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		tag, _ := z.TagName()
		if name := string(tag); name != "base" && name != "link" {
			continue
		} else if link := linkOf(z); name == "base" && base == "" {
			base = link.Href
		} else if name == "link" && isFeedLink(link) {
			links = append(links, link)
		}
	}
}

// linkOf returns the link of the current element. Of several attributes with one name,
// the first counts.
func linkOf(z *html.Tokenizer) (link FeedLink) {
	set := func(field *string, value string) {
		if *field == "" {
			*field = strings.TrimSpace(value)
		}
	}
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "rel":
			set(&link.rel, strings.ToLower(string(value)))
		case "href":
			set(&link.Href, string(value))
		case "type":
			mediaType, params, _ := strings.Cut(strings.ToLower(string(value)), ";")
			link.isEntry = link.isEntry || link.Type == "" && strings.Contains(strings.NewReplacer(`"`, "", " ", "").Replace(params), "type=entry")
			set(&link.Type, mediaType)
		case "title":
			set(&link.Title, ClipTitle(string(value)))
		case "hreflang":
			set(&link.HrefLang, ClipTitle(string(value)))
		}
	}
	return link
}

// ClipTitle returns a title, or its first 200 bytes if it is longer.
func ClipTitle(title string) string {
	if title = strings.TrimSpace(title); len(title) > mostTitle {
		title = title[:mostTitle]
	}
	return strings.ToValidUTF8(title, "")
}

const jsonFeed = "application/feed+json"

// feedTypes are the media types of feeds, the preferred one first.
var feedTypes = []string{"application/atom+xml", "application/rss+xml", jsonFeed, "application/rdf+xml"}

// isFeedLink reports whether a link of a page leads to a feed.
func isFeedLink(link FeedLink) bool {
	if link.Href == "" || link.isEntry || slices.Index(feedTypes, link.Type) < 0 {
		return false
	}
	return slices.ContainsFunc(strings.Fields(link.rel), func(rel string) bool { return rel == "alternate" || rel == "feed" })
}

// bestFirst returns one link for each feed, in the preferred one of its formats. A JSON Feed
// with the title of another feed, in a format we prefer, is likely to be the same: it comes after the
// others. Feeds of comments come last.
func bestFirst(links []FeedLink) (best []FeedLink) {
	var comments []FeedLink
	var feeds [][]FeedLink // the links to each feed
	var names [][]FeedName // their names
	for _, link := range links {
		name := NameOf(link.Title, link.Href)
		i := 0
		for ; i < len(feeds); i++ {
			if !slices.ContainsFunc(feeds[i], func(l FeedLink) bool { return l.Type == link.Type }) &&
				!slices.ContainsFunc(names[i], func(other FeedName) bool { return !name.Matches(other) }) {
				break
			}
		}
		if i == len(feeds) {
			feeds, names = append(feeds, nil), append(names, nil)
		}
		feeds[i], names[i] = append(feeds[i], link), append(names[i], name)
	}
	for _, formats := range feeds {
		slices.SortStableFunc(formats, func(a, b FeedLink) int {
			return slices.Index(feedTypes, a.Type) - slices.Index(feedTypes, b.Type)
		})
		first := formats[0]
		first.Formats = formats[1:]
		if IsOfComments(first.Title, first.Href) {
			comments = append(comments, first)
		} else {
			best = append(best, first)
		}
	}
	var first, last []FeedLink
	for _, link := range best {
		if link.Type == jsonFeed && slices.ContainsFunc(best, func(l FeedLink) bool {
			return slices.Index(feedTypes, l.Type) < slices.Index(feedTypes, jsonFeed) && unformatted(l.Title) == unformatted(link.Title)
		}) {
			last = append(last, link)
		} else {
			first = append(first, link)
		}
	}
	return slices.Concat(first, last, comments)
}

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
