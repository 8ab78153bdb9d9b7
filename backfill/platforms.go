package backfill

import "regexp"

// platforms describes software whose feeds have pages, but do not say so. To add
// one, add a line here, and a fixture to testdata/platforms.
//
// A walk asks a recognised feed for a page before it believes it. Podlove, Omny
// and SoundCloud link from page to page, as a JSON Feed does with next_url. Walks
// follow those links without any of this; the lines for Podlove and SoundCloud
// are for feeds whose links were lost on the way.
var platforms = []platform{
	{Label: "podlove", Generator: "Podlove", Page: "?paged={n}", First: 1, End: atMissing},
	{Label: "ghost", Generator: "Ghost", Page: "{n}/", First: 1, End: atMissing, Only: "before version 3.0 (2019)"},
	{Label: "tumblr", Generator: "Tumblr", Page: "page/{n}/rss", First: 1, End: atEmpty},
	{Label: "libsyn", Generator: "Libsyn", Page: "rss/page/{n}", First: 1, End: atEmpty},
	{
		Label: "discourse", Namespace: "http://www.discourse.org/", Page: "?page={n}", First: 0, End: atEmpty,
		Only: "latest.rss, since version 2.6 (2020); neither those of categories nor of users",
	},
	{
		Label: "drupal", Entry: regexp.MustCompile(`^[0-9]+ at https?://`), Page: "?page={n}", First: 0, End: atEmpty,
		Only: "views with a full pager; the front page's rss.xml has none",
	},
	{Label: "mastodon", Generator: "Mastodon", Page: "?limit=200", End: atOnce, Only: "accounts with more than 20 posts, and up to 200"},
	{Label: "github", Entry: regexp.MustCompile(`^tag:github\.com,2008:Repository/[0-9]+/(.+)$`), Page: "?after={last}", End: atEmpty},
	{Label: "soundcloud", Entry: regexp.MustCompile(`^tag:soundcloud,2010:tracks/([0-9]+)$`), Page: "?before={last}", End: atEmpty},
	{
		Label: "lemmy", URL: regexp.MustCompile(`^https?://[^/]+/feeds/(all|local|[cu]/[^/?]+)\.xml(\?|$)`),
		Page: "?page={n}&limit=50&sort=New", First: 0, End: atEmpty, Only: "feeds of all posts, of communities and of users",
	},
}

// A platform is a kind of software, as plain data. It is a Method.
type platform struct {
	Label string // the method's name

	// These recognise a feed; all that are not zero must hold.
	Generator string         // its generator begins with this, in any case of letters
	Namespace string         // its root element declares this namespace
	Entry     *regexp.Regexp // it has entries, and all their IDs match
	URL       *regexp.Regexp // its URL matches

	// Page is the address of another page, relative to the feed's URL. After a ?
	// come query parameters, which are added to those of the URL. {n} stands for
	// the page's number, and {last} for what the group in Entry matches in the ID
	// of the last entry so far.
	Page  string
	First int     // the number of the page at the feed's own URL
	End   pageEnd // how a walk notices that there are no more pages

	// Only says which feeds of which versions have pages, for a Probe that finds
	// none. "" means all, as far as is known.
	Only string
}

// A pageEnd is a server's answer to a request for a page beyond the last. If a server
// sends an earlier page again, the walk ends as well, with a gap.
type pageEnd uint8

// The ends.
const (
	atMissing pageEnd = iota // 404 or 410; other pages may follow one without entries
	atEmpty                  // a page without entries, or 404 or 410
	atOnce                   // no request: there is just one more page
)
