package backfill

import "regexp"

// platforms is what is known of software whose feeds have pages, but do not say
// so. To add one is to add a line, and a fixture in testdata/platforms.
//
// What is recognised is still asked for a page before it is believed. Podlove,
// Omny and SoundCloud link from page to page, as a JSON Feed does with
// next_url: those links are followed without any of this, and the lines for
// Podlove and SoundCloud are for feeds whose links were lost on the way.
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

	// How a feed is recognised: by each of these that is not zero.
	Generator string         // its generator begins so, whatever the case
	Namespace string         // its root element declares this one
	Entry     *regexp.Regexp // all its entries' IDs match, and there are some
	URL       *regexp.Regexp // its URL matches

	// Page is where another page is, relative to the feed's URL. After a ? it is
	// query parameters, next to those that the URL has. In it {n} stands for the
	// page's number, and {last} for what the group in Entry matches of the last
	// entry so far.
	Page  string
	First int     // the number of the page that the feed's own URL stands for
	End   pageEnd // how a walk finds that there are no more

	// Only says which feeds of which versions have pages, for a Probe that finds
	// none. "": as far as is known, all.
	Only string
}

// A pageEnd is what a server answers when it is asked for a page beyond the last.
// One that sends a page again has come to its end as well, if with a gap.
type pageEnd uint8

// The ends.
const (
	atMissing pageEnd = iota // 404 or 410; a page without entries may be followed by others
	atEmpty                  // a page without entries; or 404 or 410
	atOnce                   // there is just one more page
)
