package sitemap

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

// A blog is a model of a site: n posts, the oldest first, of which the feed shows ten.
type blog struct {
	n        int
	shown    int                  // in the feed; zero means ten
	path     func(i int) string   // of post i; nil means /posts/post-i/
	guid     func(i int) string   // nil means the link
	page     func(i int) string   // the head and body of post i; nil means JSON-LD
	sitemap  func(b *blog) string // nil means all posts
	pages    map[string]string    // further resources; those beginning with a number have this status
	head     string               // of the channel
	requests feedtest.List[string]
	since    feedtest.List[string] // If-Modified-Since of requests
	last     map[int]time.Time     // the later times of posts in the sitemap
}

// like returns another blog like it, without requests.
func (b *blog) like() *blog {
	return &blog{n: b.n, shown: b.shown, path: b.path, guid: b.guid, page: b.page, sitemap: b.sitemap, pages: b.pages, head: b.head, last: b.last}
}

const root = "http://example.org"

func (b *blog) at(i int) time.Time {
	return time.Date(2020, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(i) * 25 * time.Hour)
}

func (b *blog) link(i int) string {
	if b.path != nil {
		return root + b.path(i)
	}
	return fmt.Sprintf("%s/posts/post-%d/", root, i)
}

func (b *blog) id(i int) string {
	if b.guid != nil {
		return b.guid(i)
	}
	return b.link(i)
}

func title(i int) string { return fmt.Sprintf("The title of number %d", i) }

// prose is a text long enough for an extractor to find it.
func prose(i int) string {
	return strings.Repeat(fmt.Sprintf("<p>This is a paragraph of post %d, which has a few words, some commas, and no end of them, as paragraphs do.</p>", i), 6)
}

func (b *blog) jsonLD(i int) string {
	return fmt.Sprintf(`<html lang="en"><head><title>%s | The blog</title><link rel="canonical" href="%s">
<script type="application/ld+json">{"@context":"https://schema.org","@type":"BlogPosting","headline":%q,"datePublished":%q,"author":{"@type":"Person","name":"Ann"}}</script>
</head><body><nav><a href="/">home</a></nav><article><h1>%[1]s</h1>%[5]s</article></body></html>`, title(i), b.link(i), title(i), b.at(i).Format(time.RFC3339), prose(i))
}

func (b *blog) feed() string {
	text := `<rss version="2.0"><channel><title>A blog</title><link>` + root + `/</link>` + b.head
	shown := b.shown
	if shown == 0 {
		shown = 10
	}
	for i := b.n; i > max(b.n-shown, 0); i-- {
		text += fmt.Sprintf("<item><title>%s</title><link>%s</link><guid isPermaLink=\"false\">%s</guid><pubDate>%s</pubDate></item>",
			title(i), b.link(i), b.id(i), b.at(i).Format(time.RFC1123Z))
	}
	return text + "</channel></rss>"
}

func urlset(links ...string) string {
	var text strings.Builder
	text.WriteString(`<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	for _, link := range links {
		loc, mod, _ := strings.Cut(link, " ")
		if mod != "" {
			mod = "<lastmod>" + mod + "</lastmod>"
		}
		text.WriteString("<url><loc>" + loc + "</loc>" + mod + "</url>")
	}
	return text.String() + "</urlset>"
}

// all lists the posts with their times.
func (b *blog) all() (links []string) {
	for i := 1; i <= b.n; i++ {
		at := b.at(i)
		if later, ok := b.last[i]; ok {
			at = later
		}
		links = append(links, b.link(i)+" "+at.Format(time.RFC3339))
	}
	return links
}

func (b *blog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.requests.Add(r.URL.RequestURI())
	b.since.Add(r.Header.Get("If-Modified-Since"))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if text, ok := b.pages[r.URL.RequestURI()]; ok {
		status := 200
		if n, err := fmt.Sscanf(text, "%d", &status); n == 1 && err == nil {
			if status == http.StatusFound {
				w.Header().Set("Location", strings.Fields(text)[1])
			}
			w.WriteHeader(status)
		}
		_, _ = w.Write([]byte(text))
		return
	}
	switch r.URL.Path {
	case "/feed.xml":
		w.Header().Set("Content-Type", "application/rss+xml")
		_, _ = w.Write([]byte(b.feed()))
		return
	case "/sitemap.xml":
		if b.sitemap == nil {
			_, _ = w.Write([]byte(urlset(b.all()...)))
			return
		}
		if text := b.sitemap(b); text != "" {
			_, _ = w.Write([]byte(text))
			return
		}
	}
	for i := 1; i <= b.n; i++ {
		if b.link(i) == root+r.URL.RequestURI() {
			if b.page != nil {
				_, _ = w.Write([]byte(b.page(i)))
			} else {
				_, _ = w.Write([]byte(b.jsonLD(i)))
			}
			return
		}
	}
	http.NotFound(w, r)
}

func (b *blog) client() *feedhistory.Client {
	return &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Direct{Handler: b}, Tries: 1}
}

// methods are those of a test: a pace of its own would make it slow.
func methods() []backfill.Method { return append(backfill.Methods(), Site{Pace: 1}) }

func (b *blog) fetch(t *testing.T) *backfill.Recovery {
	t.Helper()
	r, err := (&backfill.Backfill{HTTP: b.client(), Methods: methods()}).Fetch(t.Context(), root+"/feed.xml", backfill.Probe{})
	require.NoError(t, err)
	return r
}

func idsOf(entries []*feedhistory.Entry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

// want returns the IDs of all posts from the given one on.
func (b *blog) want(from int) (ids []string) {
	for i := from; i <= b.n; i++ {
		ids = append(ids, b.id(i))
	}
	slices.Sort(ids)
	return ids
}

// All posts in the sitemap come, each once, with the ID the feed would give it, and with their
// title, time, author, address, text and provenance.
func TestSitemap(t *testing.T) {
	b := &blog{n: 50}
	r := b.fetch(t)
	require.Equal(t, b.want(1), idsOf(r.History.Entries))
	require.Equal(t, feedhistory.VerdictLossy, r.Verdict())
	require.Equal(t, "sitemap", r.RecoveredBy)
	require.Equal(t, backfill.Probe{Method: "sitemap", Mode: "sitemap"}, r.Probe)
	require.Empty(t, r.History.Gaps)
	require.LessOrEqual(t, len(b.requests.All()), 40+2+2+2+2, "%q", b.requests.All())
	for _, e := range r.History.Entries {
		if e.ID != b.id(3) {
			continue
		}
		require.Equal(t, "sitemap", e.KeptBy)
		require.Equal(t, title(3), e.Title().Plain())
		require.Equal(t, b.at(3), e.Published.UTC())
		require.Equal(t, b.link(3), e.Links[0].Href)
		require.Contains(t, e.Content().HTML(), "This is a paragraph of post 3")
		require.NotContains(t, e.Content().HTML(), "home")
		require.Contains(t, string(e.XML()), "<name>Ann</name>")
		require.Equal(t, b.link(3), e.Head.Response.Requested)
	}
}

// The ID is the feed's wherever its form can be learned; otherwise it is the address.
func TestIDs(t *testing.T) {
	for name, guid := range map[string]func(link string) string{
		"permalink": func(link string) string { return link },
		"jekyll":    func(link string) string { return strings.TrimSuffix(link, ".html") },
		"http":      func(link string) string { return strings.Replace(link, "http:", "https:", 1) },
		"tag":       func(link string) string { return "tag:example.org,2005:" + strings.TrimPrefix(link, root) },
		"in a path": func(link string) string {
			return "urn:" + strings.TrimSuffix(strings.TrimPrefix(link, root+"/"), ".html") + "#it"
		},
	} {
		b := &blog{n: 30, path: func(i int) string { return fmt.Sprintf("/%d/post-%d.html", 2020+i/12, i) }}
		b.guid = func(i int) string { return guid(b.link(i)) }
		require.Equal(t, b.want(1), idsOf(b.fetch(t).History.Entries), name)
	}
	for name, guid := range map[string]func(b *blog, i int) string{
		"pelican": func(b *blog, i int) string {
			return fmt.Sprintf("tag:example.org,%s:/h\u00e9/post-%d.html", b.at(i).Format(time.DateOnly), i)
		},
		"decoded":           func(_ *blog, i int) string { return fmt.Sprintf("%s/h\u00e9/post-%d.html", root, i) },
		"https and without": func(_ *blog, i int) string { return fmt.Sprintf("https://example.org/h%%C3%%A9/post-%d", i) },
	} {
		b := &blog{n: 30, path: func(i int) string { return fmt.Sprintf("/h%%C3%%A9/post-%d.html", i) }}
		b.guid = func(i int) string { return guid(b, i) }
		require.Equal(t, b.want(1), idsOf(b.fetch(t).History.Entries), name)
	}
	b := &blog{n: 30, path: func(i int) string { return []string{fmt.Sprintf("/post-%d", i), "/example"}[1/i] }}
	require.Equal(t, b.want(1), idsOf(b.fetch(t).History.Entries), "the host begins as the path of the first post")
	b = &blog{n: 30, guid: func(i int) string { return fmt.Sprintf("urn:uuid:%08x", i*7919) }}
	ids := idsOf(b.fetch(t).History.Entries)
	require.Len(t, ids, 30)
	require.Contains(t, ids, b.link(1))
	require.Contains(t, ids, b.id(30))
}

// Whatever a page says of itself counts, if the pages of the feed's entries say it, too.
func TestSigns(t *testing.T) {
	for name, format := range map[string]string{
		"open graph": `<head><meta property="og:type" content="article"><meta property="og:title" content="%[1]s"><meta property="article:published_time" content="%[2]s"></head><h1>%[1]s</h1>%[3]s`,
		"h-entry":    `<article class="h-entry"><h1 class="p-name">%[1]s</h1><time class="dt-published" datetime="%[2]s">then</time>%[3]s</article>`,
		"hAtom":      `<title>%[1]s</title><h1>%[1]s</h1><abbr class="published" title="%[2]s">then</abbr>%[3]s`,
		"bare time":  `<title>%[1]s</title><h1>%[1]s</h1><time>%[2]s</time>%[3]s`,
		"time":       `<title>%[1]s</title><article><h1>%[1]s</h1><time datetime="%[2]s">then</time>%[3]s</article>`,
	} {
		b := &blog{n: 30, pages: map[string]string{"/posts/about/": "<title>About</title><h1>About me</h1>" + prose(0)}}
		b.page = func(i int) string {
			return fmt.Sprintf("<html><body>"+format, title(i), b.at(i).Format(time.RFC3339), prose(i))
		}
		b.sitemap = func(b *blog) string { return urlset(append(b.all(), root+"/posts/about/")...) }
		r := b.fetch(t)
		require.Equal(t, b.want(1), idsOf(r.History.Entries), name)
		for _, e := range r.History.Entries {
			require.Contains(t, e.Title().Plain(), "The title of number")
			require.False(t, e.Time().IsZero())
		}
	}
}

// If the title of each page is that of the site, the heading is the post's, however many
// there are.
func TestHeadings(t *testing.T) {
	b := &blog{n: 30}
	b.page = func(i int) string {
		page := strings.Replace(b.jsonLD(i), "<title>"+title(i)+" | The blog</title>", "<title>A blog</title>", 1)
		page = strings.Replace(page, `"headline":"`+title(i)+`",`, "", 1)
		return page + strings.Repeat("<h1>References</h1>", min(20/i, 1)) // of posts the feed does not show
	}
	for _, e := range b.fetch(t).History.Entries {
		require.Contains(t, e.Title().Plain(), "The title of number")
	}
}

// If pages say nothing of their time, their addresses do, or a list that has the times of
// the feed's own entries. A list knows only when a page was changed.
func TestTimes(t *testing.T) {
	silent := func(i int) string { return "<html><title>" + title(i) + "</title><h1>" + title(i) + "</h1>" + prose(i) }
	about := map[string]string{"/about/": silent(99), "/archive/2020/": silent(99)}
	for name, b := range map[string]*blog{
		"numbers": {path: func(i int) string { return (&blog{}).at(i).Format("/2006/01/02/") + fmt.Sprint("post-", i) }, sitemap: func(*blog) string { return "" }},
		"months":  {path: func(i int) string { return (&blog{}).at(i).Format("/blog/2006/Jan/2/") + fmt.Sprint("post-", i, "/") }},
		"list":    {},
	} {
		b.n, b.page, b.pages = 30, silent, about
		if b.sitemap == nil {
			b.sitemap = func(b *blog) string {
				return urlset(append(b.all(), root+"/about/ 2020-01-09", root+"/archive/2020/ 2020-01-10")...)
			}
		} else {
			b.pages = map[string]string{"/": "<p>Welcome", "/archives.html": `<a href="` + strings.Join(func() (all []string) {
				for i := range b.n {
					all = append(all, b.link(i+1))
				}
				return all
			}(), `"></a><a href="`) + `"></a>`}
		}
		r := b.fetch(t)
		require.Equal(t, b.want(1), idsOf(r.History.Entries), name)
		for _, e := range r.History.Entries {
			if e.ID == b.id(3) {
				require.Equal(t, b.at(3).Format(time.DateOnly), e.Time().Format(time.DateOnly), name)
				require.Equal(t, name == "list", e.Published.IsZero())
			}
		}
	}
	b := &blog{n: 30, page: silent, last: map[int]time.Time{25: time.Date(2020, 5, 1, 0, 0, 0, 0, time.UTC)}}
	require.Equal(t, b.want(21), idsOf(b.fetch(t).History.Entries), "one of the feed's entries has another time in the list")
}

// Parameters that say where a reader comes from are no part of an address, and the scheme
// and host are those of the feed's links.
func TestTracked(t *testing.T) {
	b := &blog{n: 30, guid: func(i int) string { return fmt.Sprintf("https://www.example.org/posts/post-%d/", i) }}
	tracked := regexp.MustCompile(`<link>http://(example.org/posts/[^<]*)`)
	b.pages = map[string]string{"/feed.xml": tracked.ReplaceAllString(b.feed(), "<link>https://www.$1?utm_source=all&amp;source=rss-1&amp;utm_medium=RSS")}
	for i := range 10 {
		b.pages[fmt.Sprintf("/posts/post-%d/?source=rss-1&utm_medium=RSS&utm_source=all", 30-i)] = b.jsonLD(30 - i)
		b.pages[fmt.Sprintf("/posts/post-%d/?utm_source=all&source=rss-1&utm_medium=RSS", 30-i)] = b.jsonLD(30 - i)
	}
	r := b.fetch(t)
	require.Equal(t, b.want(1), idsOf(r.History.Entries))
	require.Equal(t, "https://www.example.org/posts/post-1/", linkOf(r.History.Entries[29]))
}

// No page that is no post becomes an entry, in whatever way it is listed.
func TestPrecision(t *testing.T) {
	article := func(title, head string) string {
		return `<html lang="en"><head>` + head + `<script type="application/ld+json">{"@context":"https://schema.org","@type":"BlogPosting","headline":"` + title +
			`","datePublished":"2019-05-01"}</script><title>` + title + `</title></head><h1>` + title + "</h1>" + prose(1)
	}
	many := ""
	for i := range 40 {
		many += fmt.Sprintf(`<a href="/posts/post-%d/">one</a>`, i+1)
	}
	for name, page := range map[string][2]string{
		"soft 404":               {"/posts/gone/", article("404: Page not found", "")},
		"soft 404 without signs": {"/posts/gone/", "<title>Oops</title><h1>Sorry</h1>"},
		"soft 404 by redirect":   {"/posts/gone/", "302 /"},
		"faceted":                {"/posts/post-3/?sort=asc", article("Sorted", "")},
		"facet of a list":        {"/posts/?color=red", article("Red", "")},
		"tag":                    {"/tags/go/", article("Posts tagged go", "")},
		"tag among the posts":    {"/posts/tag/", article("Posts tagged go", "")},
		"category":               {"/category/news/", article("News", "")},
		"list":                   {"/posts/all/", article("All posts", "") + many},
		"pager":                  {"/posts/page/2/", article("Page 2", "")},
		"translation":            {"/fr/posts/post-3/", article("Le titre", "")},
		"translation in place":   {"/posts/troisieme/", strings.Replace(article("Le titre", ""), `lang="en"`, `lang="fr"`, 1)},
		"about":                  {"/about/", "<title>About</title><h1>About</h1>" + prose(1)},
		"about among the posts":  {"/posts/about/", "<title>About</title><h1>About</h1>" + prose(1)},
		"copy":                   {"/posts/copy/", strings.Replace(article("No post", `<link rel="canonical" href="`+root+`/posts/post-3/">`), "2019", "2021", 1)},
		"another type":           {"/posts/reach-me/", strings.Replace(article("No post", ""), "BlogPosting", "NewsArticle", 1)},
		"numbered list":          {"/posts/index2.html", article("No post", "")},
		"another address":        {"/posts/print/", strings.Replace(article(title(25), ""), "2019-05-01", "2020-01-27T13:00:00Z", 1)},
		"not found":              {"/posts/lost/", "404"},
		"no page":                {"/posts/robots.txt", "410"},
	} {
		b := &blog{n: 25, pages: map[string]string{page[0]: page[1], "/": "<html>" + many}}
		b.sitemap = func(b *blog) string { return urlset(append(b.all(), root+page[0]+" 2021-06-01")...) }
		entries := b.fetch(t).History.Entries
		require.Equal(t, b.want(1), idsOf(entries), name)
		for _, e := range entries {
			require.Contains(t, e.Title().Plain(), "The title of number", name)
		}
	}
}

// A post whose address has another form is one only if it says so and has a date.
func TestMoved(t *testing.T) {
	b := &blog{n: 25, path: func(i int) string {
		if i < 5 {
			return fmt.Sprintf("/2012/0%d/post-%d.html", i, i)
		}
		return fmt.Sprintf("/posts/post-%d/", i)
	}}
	require.Equal(t, b.want(1), idsOf(b.fetch(t).History.Entries))
}

// Feeds of a part of a site, and of links to other sites, are not filled with all of its posts.
func TestScope(t *testing.T) {
	for name, b := range map[string]*blog{
		"category":   {n: 25, head: "<link>" + root + "/category/news/</link>"},
		"elsewhere":  {n: 25, path: func(i int) string { return fmt.Sprintf("/posts/%d/", i) }, head: "<link>http://other.example/</link>"},
		"below":      {n: 25, head: "<link>" + root + "/shop/</link>"},
		"link blog":  {n: 25, path: func(i int) string { return fmt.Sprintf(".site%d.example/", i) }},
		"no entries": {n: 0},
	} {
		b.head += "<description/>"
		server := b.feed()
		if rest, ok := strings.CutPrefix(b.head, "<link>"); ok { // the channel's only link
			link, _, _ := strings.Cut(rest, "</link>")
			server = strings.Replace(server, "<link>"+root+"/</link>", "", 1)
			require.Contains(t, server, link)
		}
		b.pages = map[string]string{"/feed.xml": server}
		r := b.fetch(t)
		require.Len(t, r.History.Entries, min(b.n, 10), name)
		require.Equal(t, backfill.None, r.Probe.Method, name)
		require.NotEmpty(t, r.Probe.Reason, name)
		require.Equal(t, []string{"sitemap"}, r.Probe.Tried, name)
		require.LessOrEqual(t, len(b.requests.All()), 3, name)
	}
}

func zipped(text string) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return out.String()
}

// Sitemaps may be an index of others, compressed, a feed, or a text; robots.txt names them.
func TestForms(t *testing.T) {
	index := func(maps ...string) string {
		text := `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
		for _, m := range maps {
			text += "<sitemap><loc>" + root + m + "</loc></sitemap>"
		}
		return text + "</sitemapindex>"
	}
	base := &blog{n: 25}
	list := urlset(base.all()...)
	lines := ""
	for i := range 25 {
		lines += base.link(i+1) + "\r\n"
	}
	whole := base.like()
	whole.shown = 25
	for name, pages := range map[string]map[string]string{
		"robots":       {"/robots.txt": "User-agent: *\nDisallow: /x\nSitemap: " + root + "/map\n", "/map": list, "/sitemap.xml": urlset()},
		"index":        {"/sitemap.xml": index("/pages.xml", "/post-sitemap.xml"), "/post-sitemap.xml": list, "/pages.xml": "500"},
		"core":         {"/sitemap.xml": index("/wp-sitemap-posts-post-1.xml", "/wp-sitemap-posts-page-1.xml"), "/wp-sitemap-posts-post-1.xml": list, "/wp-sitemap-posts-page-1.xml": "500"},
		"loop":         {"/sitemap.xml": index("/a.xml", "/sitemap.xml"), "/a.xml": index("/sitemap.xml", "/a.xml", "/b.xml"), "/b.xml": list},
		"gzip":         {"/robots.txt": "Sitemap: " + root + "/map.gz", "/map.gz": zipped(list)},
		"text":         {"/robots.txt": "Sitemap: " + root + "/map.txt", "/map.txt": "\ufeff" + lines},
		"feed":         {"/robots.txt": "Sitemap: " + root + "/all.rss", "/all.rss": whole.feed()},
		"one is bad":   {"/robots.txt": "Sitemap: " + root + "/gone\nSitemap: /relative\nSitemap: " + root + "/page\nSitemap: " + root + "/map", "/page": "<html><p>a page", "/map": list},
		"a mess":       {"/sitemap.xml": "\n<!-- x -->" + strings.Replace(list, "<url>", "<url><x:y z>&nbsp;</x:y>", 1)},
		"the encoding": {"/sitemap.xml": strings.Replace(list, "UTF-8", "ISO-8859-1", 1)},
	} {
		b := &blog{n: 25, pages: pages}
		require.Equal(t, b.want(1), idsOf(b.fetch(t).History.Entries), name)
	}
}

// Without a sitemap, the archive page is read, with the pages that follow it; or the home
// page's own pages; or one post leads to the one before it.
func TestNoSitemap(t *testing.T) {
	links := func(from, to int) (text string) {
		for i := from; i >= to; i-- {
			text += fmt.Sprintf(`<a href="/posts/post-%d/">%s</a> `, i, title(i))
		}
		return text + `<a href="/tags/go/">go</a>`
	}
	for name, pages := range map[string]map[string]string{
		"archive":       {"/": `<a href="/archive.html">Archive</a>`, "/archive.html": links(40, 1)},
		"usual archive": {"/": "<p>Welcome", "/archive/": links(40, 1)},
		"pages": {"/": links(40, 31) + `<a href="/page/2/">older</a>`, "/page/2/": links(30, 21) + `<a href="/page/3/">older</a>`,
			"/page/3/": links(20, 11) + `<link rel="next" href="/page/4/">`, "/page/4/": links(10, 1) + `<a href="/page/5/">older</a>`, "/page/5/": links(10, 1) + `<a href="/page/6/">older</a>`},
	} {
		b := &blog{n: 40, pages: pages, sitemap: func(*blog) string { return "" }}
		r := b.fetch(t)
		require.Equal(t, b.want(1), idsOf(r.History.Entries), name)
		require.Equal(t, "archive", r.Probe.Mode)
	}
	for _, rels := range [][2]string{{"prev", "next"}, {"next", "prev"}} {
		b := &blog{n: 40, sitemap: func(*blog) string { return "" }}
		b.page = func(i int) string {
			return b.jsonLD(i) + fmt.Sprintf(`<a rel="%s" href="/posts/post-%d/">x</a><a rel="%s" href="/posts/post-%d/">y</a>`, rels[0], i-1, rels[1], i+1)
		}
		r := b.fetch(t)
		require.Equal(t, b.want(1), idsOf(r.History.Entries))
		require.Equal(t, "previous", r.Probe.Mode)
	}
}

// What robots.txt forbids is not read; a host that does not say forbids everything.
func TestRobots(t *testing.T) {
	for text, from := range map[string]int{
		"User-agent: *\nDisallow: /posts/post-1":                                 2,
		"User-agent: feedhistory\nDisallow: /posts/\n\nUser-agent: *\nDisallow:": 16,
		"User-agent: *\nDisallow: /\n\nUser-agent: FeedHistory\nAllow: /":        1,
		"User-agent: *\nDisallow: /":                                             16,
		"User-agent: *\nDisallow: /posts/*$\nAllow: /posts/post-2":               16,
		"500": 16,
		"403": 1,
		"User-agent: *\nDisallow: /sitemap.xml\nDisallow: /archive\nDisallow: /blog\nDisallow: /posts/": 16,
	} {
		b := &blog{n: 25, pages: map[string]string{"/robots.txt": text}}
		want := b.want(from)
		if from == 2 {
			want = slices.DeleteFunc(b.want(1), func(id string) bool { return strings.Contains(id, "/post-1") && !slices.Contains(b.want(16), id) })
		}
		r := b.fetch(t)
		if strings.Contains(text, "Allow: /posts/post-2") {
			want = append(b.want(16), b.id(2))
			slices.Sort(want)
		}
		require.Equal(t, want, idsOf(r.History.Entries), text)
		for _, request := range b.requests.All() {
			require.False(t, strings.Contains(text, "Disallow: /posts/\n") && strings.HasPrefix(request, "/posts/"), request)
		}
	}
}

// A large site costs as much as its budget says, and no page twice: the next Keep goes on.
func TestBudget(t *testing.T) {
	b := &blog{n: 300}
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: b.client()}
	m.Client.Budget.Documents = 40
	_, err := m.Update(t.Context(), root+"/feed.xml")
	require.NoError(t, err)
	var plans []Plan
	k := &backfill.Backfill{HTTP: m.Client, Methods: []backfill.Method{Site{Pace: 1, Announce: func(p Plan) { plans = append(plans, p) }}}}
	rounds := 0
	for more := true; more; rounds++ {
		changes, err := k.Keep(t.Context(), m, root+"/feed.xml")
		require.NoError(t, err)
		if more = changes.More; more {
			require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
		}
		require.Less(t, rounds, 20)
	}
	require.Equal(t, 8, rounds)
	require.Equal(t, Plan{Feed: root + "/feed.xml", Pages: 290, Most: 39, Pace: 1}, plans[0])
	require.Equal(t, 251, plans[1].Pages)
	feed, err := m.Store.Feed(t.Context(), root+"/feed.xml")
	require.NoError(t, err)
	require.Equal(t, int64(300), feed.Entries)
	require.Equal(t, feedhistory.VerdictLossy, feed.Verdict)
	require.Equal(t, "sitemap", feed.Source)
	count := map[string]int{}
	for _, request := range b.requests.All() {
		count[request]++
	}
	for i := 1; i <= 290; i++ {
		require.Equal(t, 1, count[strings.TrimPrefix(b.link(i), root)], i)
	}
	changes, err := k.Keep(t.Context(), m, root+"/feed.xml")
	require.NoError(t, err)
	require.Nil(t, changes)
}

// Polls that have missed something make the sitemap be read again: new pages are read, and
// those of earlier walks only if they have changed.
func TestAgain(t *testing.T) {
	b := &blog{n: 30, last: map[int]time.Time{}}
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: b.client()}
	k := &backfill.Backfill{HTTP: m.Client, Methods: methods()}
	for range 2 {
		_, err := m.Update(t.Context(), root+"/feed.xml")
		require.NoError(t, err)
		_, err = k.Keep(t.Context(), m, root+"/feed.xml")
		require.NoError(t, err)
		b.n += 25 // more than the feed shows
	}
	b.n -= 25
	feed, err := m.Store.Feed(t.Context(), root+"/feed.xml")
	require.NoError(t, err)
	require.Equal(t, int64(55), feed.Entries)
	require.Equal(t, feedhistory.VerdictLossy, feed.Verdict)

	b.last[3] = b.at(500) // edited
	b.n += 25
	b.requests.Took()
	_, err = m.Update(t.Context(), root+"/feed.xml")
	require.NoError(t, err)
	b.since.Took()
	b.requests.Took()
	_, err = k.Keep(t.Context(), m, root+"/feed.xml")
	require.NoError(t, err)
	feed, err = m.Store.Feed(t.Context(), root+"/feed.xml")
	require.NoError(t, err)
	require.Equal(t, int64(80), feed.Entries)
	requests, since := b.requests.All(), b.since.All()
	at := slices.Index(requests, "/posts/post-3/")
	require.Positive(t, at)
	require.Equal(t, b.at(3).Format(http.TimeFormat), since[at])
	require.NotContains(t, requests, "/posts/post-4/")

	// The publisher's own copy counts.
	r, err := mirror.Lookup(t.Context(), m.Store, root+"/feed.xml", b.id(5))
	require.NoError(t, err)
	require.Equal(t, "sitemap", r.Copy.Source)
	b.n, b.requests = 10, feedtest.List[string]{}
	_, err = m.Update(t.Context(), root+"/feed.xml")
	require.NoError(t, err)
	r, err = mirror.Lookup(t.Context(), m.Store, root+"/feed.xml", b.id(5))
	require.NoError(t, err)
	require.Empty(t, r.Copy.Source)
	require.NotContains(t, r.Content.Data, "This is a paragraph")
}

// Times that cannot be right are not believed, and no entry has them.
func TestLies(t *testing.T) {
	for _, lie := range []string{"2026-11-01", "2999-01-01", "yesterday"} {
		b := &blog{n: 30}
		b.sitemap = func(b *blog) string {
			var links []string
			for i := range b.n {
				links = append(links, b.link(i+1)+" "+lie)
			}
			return urlset(links...)
		}
		r := b.fetch(t)
		require.Equal(t, b.want(1), idsOf(r.History.Entries))
		for _, e := range r.History.Entries {
			require.Less(t, e.Changed().Year(), 2021)
		}
	}
}

// Hostile lists and hosts cost no more than their limits, and the error names the place.
func TestHostile(t *testing.T) {
	bomb := zipped(strings.Repeat(" ", mostBytes+1))
	endless := &blog{n: 25}
	for name, b := range map[string]*blog{
		"bomb":     {n: 25, pages: map[string]string{"/sitemap.xml": bomb}},
		"cut gzip": {n: 25, pages: map[string]string{"/sitemap.xml": zipped(urlset(endless.all()...))[:60]}},
		"bad xml":  {n: 25, pages: map[string]string{"/sitemap.xml": "<urlset><url><loc>x</loc></url><url"}},
		"down":     {n: 25, pages: map[string]string{"/sitemap.xml": "503"}},
	} {
		var found *feedhistory.Gap
		c := b.client()
		p := &backfill.Probe{}
		doc, err := c.Get(t.Context(), root+"/feed.xml")
		require.NoError(t, err)
		works, err := Site{Pace: 1}.Probe(t.Context(), c, doc, p)
		require.False(t, works)
		found = feedtest.ErrorAs[*feedhistory.Gap](t, err)
		require.Equal(t, root+"/sitemap.xml", found.URL, name)
		r := b.fetch(t)
		require.Equal(t, feedhistory.VerdictWindow, r.Verdict())
		require.Zero(t, r.Probe, name) // the next walk tries again
	}

	// A host that refuses all pages is left alone.
	b := &blog{n: 200, page: func(int) string { return "" }, pages: map[string]string{}}
	for i := range 200 {
		b.pages[fmt.Sprintf("/posts/post-%d/", i+1)] = "403"
	}
	r := b.fetch(t)
	require.Len(t, r.History.Gaps, mostFailed)
	require.Equal(t, feedhistory.VerdictPartial, r.Verdict())
	require.Less(t, len(b.requests.All()), 20)

	// So is an index without end.
	b = &blog{n: 25, pages: map[string]string{"/sitemap.xml": "<sitemapindex><sitemap><loc>" + root + "/0.xml</loc></sitemap></sitemapindex>"}}
	for i := range 600 {
		b.pages[fmt.Sprintf("/%d.xml", i)] = fmt.Sprintf("<sitemapindex><sitemap><loc>%s/%d.xml</loc></sitemap></sitemapindex>", root, i+1)
	}
	b.fetch(t)
	require.Less(t, len(b.requests.All()), mostLists+30)
}

// A sitemap of 50,000 addresses takes little memory, and only as many requests as allowed.
func TestLarge(t *testing.T) {
	feedtest.Long(t)
	b := &blog{n: 25}
	b.sitemap = func(b *blog) string {
		links := b.all()
		for i := range 50_000 {
			links = append(links, fmt.Sprintf("%s/posts/other-%d/ %s", root, i, b.at(-i).Format(time.DateOnly)))
		}
		return urlset(links...)
	}
	text := b.sitemap(b)
	b.sitemap = func(*blog) string { return text }
	c := b.client()
	c.Budget.Documents = 30
	used := feedtest.Allocated(func() {
		r, err := (&backfill.Backfill{HTTP: c, Methods: methods()}).Fetch(context.Background(), root+"/feed.xml", backfill.Probe{})
		require.NoError(t, err)
		require.Len(t, r.History.Entries, 25)
		require.Equal(t, feedhistory.VerdictPartial, r.Verdict())
		require.Equal(t, feedhistory.ReasonBudget, r.History.Gaps[0].Reason)
	})
	t.Logf("%d bytes for a sitemap of %d", used, len(text))
	require.Less(t, used, int64(len(text))*60)
	require.LessOrEqual(t, len(b.requests.All()), 30+10)
}

// Each method is used for what the one before has left missing.
func TestOrder(t *testing.T) {
	b := &blog{n: 60, head: "<generator>Ghost 2.1</generator>"}
	all := b.like()
	all.n = 50
	all.shown = 20
	b.pages = map[string]string{"/2/": all.feed(), "/3/": "404"}
	r := b.fetch(t)
	require.Equal(t, b.want(1), idsOf(r.History.Entries))
	require.Equal(t, "ghost, sitemap", r.RecoveredBy)
	require.Equal(t, backfill.Probe{Method: "ghost", Next: &backfill.Probe{Method: "sitemap", Mode: "sitemap"}}, r.Probe)
	for _, e := range r.History.Entries {
		i := 0
		_, _ = fmt.Sscanf(e.ID, root+"/posts/post-%d/", &i)
		require.Equal(t, i <= 30, e.KeptBy == "sitemap", e.ID)
	}
}
