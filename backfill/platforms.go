package backfill

import "regexp"

// platforms describes software whose feeds have pages, but do not say so. To
// add software, add a line here, and a fixture to testdata/platforms.
//
// A walk requests a page from a recognised feed to make sure. Podlove, Omny and
// SoundCloud link from page to page, as JSON Feed does with next_url, and walks
// follow these links without the lines here. The lines for Podlove and
// SoundCloud are for feeds whose links were lost on the way.
var platforms = []platform{
	{Label: "podlove", Generator: "Podlove", Page: "?paged={n}", First: 1, End: atMissing},
	{
		Label: "ghost", Generator: "Ghost", Page: "{n}/", First: 1, End: atMissing,
		Only: "before version 3.0 (2019); since then, only the owner has a key for the list of all posts",
	},
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
		Label: "substack", Generator: "Substack", Page: "/api/v1/archive?sort=new&limit=50&offset={count}", End: atEmpty,
		List: &listing{ID: "id", URL: "canonical_url", Title: "title", Summary: "subtitle", Published: "post_date"},
	},
	{
		Label: "squarespace", Generator: "Site-Server", Page: "?format=json&offset={before}", End: atEmpty,
		List: &listing{Items: "items", ID: "id", URL: "fullUrl", Title: "title", Summary: "excerpt", Content: "body", Published: "publishOn", Updated: "updatedOn"},
	},
	{Label: "medium", Generator: "Medium", Only: "none: the latest ten posts are all that Medium gives readers"},
	{
		Label: "lemmy", URL: regexp.MustCompile(`^https?://[^/]+/feeds/(all|local|[cu]/[^/?]+)\.xml(\?|$)`),
		Page: "?page={n}&limit=50&sort=New", First: 0, End: atEmpty, Only: "feeds of all posts, of communities and of users",
	},
}

// A platform describes a kind of software as data. It is a Method.
type platform struct {
	Label string // the name of the method

	// These fields recognise a feed; all nonzero ones must match.
	Generator string         // the beginning of its generator; case does not matter
	Namespace string         // a namespace its root element declares
	Entry     *regexp.Regexp // matches all IDs of its entries, of which it has some
	URL       *regexp.Regexp // matches its URL

	// Page is the address of another page, relative to the feed's URL; "" if there are none.
	// Query parameters after a ? are added to those of the URL. {n} is replaced by the number
	// of the page, {last} by the match of the group in Entry, in the ID of the last entry so
	// far, {before} by the time of that entry in milliseconds, and {count} by their number.
	Page  string
	First int     // the number of the page at the feed's own URL
	End   pageEnd // how the server ends the pages

	// List is the form of pages that are the software's own lists of posts, which begin with
	// the newest, as the feed does; nil means they are feeds.
	List *listing

	// Only says which feeds of which versions have pages, for the Reason of a
	// Probe. "" means all, as far as is known.
	Only string
}

// A pageEnd is a server's answer to a request for a page after the last. If a
// server sends an earlier page again, the walk also ends, with a gap.
type pageEnd uint8

// The ends.
const (
	atMissing pageEnd = iota // 404 or 410; a page without entries may be followed by others
	atEmpty                  // a page without entries, or 404 or 410
	atOnce                   // no request, because there is only one more page
)
