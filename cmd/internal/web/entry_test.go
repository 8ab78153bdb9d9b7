package web

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"pgregory.net/rapid"
)

var entryLink = regexp.MustCompile(`/entry\?id=([^"&]+)[^"]*"`)

// listed returns the number of entries that a page lists.
func (w *world) listed(path string) int {
	_, list, ok := strings.Cut(w.page(path, http.StatusOK), `<ol class="entries">`)
	require.True(w.t, ok, path)
	return len(entryLink.FindAllString(list, -1))
}

// requireFilters checks that a list's conditions are shown, can be removed, and
// can be combined.
func requireFilters(t *testing.T, w *world, blog, tides string) {
	// While somebody types a word, the entries appear that it may become.
	for _, q := range []string{"sto", "storm", "Storm pet", "storm petrels"} {
		found := w.page(blog+"?q="+url.QueryEscape(q), http.StatusOK)
		require.Regexp(t, `<mark>Storm</mark> (<mark>)?petrels`, found, q)
		require.NotContains(t, found, "No entries match", q)
	}
	require.Contains(t, w.page(blog+"?q=pet+storm", http.StatusOK), "No entries match", "only the last word is unfinished")
	require.Contains(t, w.page("/entries?q=cran", http.StatusOK), "New <mark>crane</mark>")

	// The language of searches is that of the command.
	for q, want := range map[string]string{
		"crane OR spring": "New <mark>crane</mark>", "cranes": "New <mark>crane</mark>", `"new crane"`: "<mark>New</mark> <mark>crane</mark>", "new -ferry": "<mark>New</mark> crane",
	} {
		require.Contains(t, w.page("/entries?q="+url.QueryEscape(q), http.StatusOK), want, q)
	}
	for _, q := range []string{`"crane new"`, `"cranes"`, "new -cranes -storm"} {
		require.NotContains(t, w.page("/entries?q="+url.QueryEscape(q), http.StatusOK), "New crane", q)
	}
	require.Contains(t, w.page("/entries?q=-crane", http.StatusOK), "There is no word to search for")

	// Only deleted entries.
	require.Equal(t, 1, w.listed(tides+"?deleted=1"))
	gone := w.page(tides+"?deleted=1", http.StatusOK)
	require.NotContains(t, gone, "Neap")
	require.Contains(t, gone, "<bdi>No longer part of the feed</bdi>")
	require.Contains(t, gone, `href="?#entries">Show all entries`)
	require.Contains(t, gone, "1 entry: ")
	require.Contains(t, w.page(tides+"?deleted=1&q=spr", http.StatusOK), "<mark>Spring</mark>")
	require.Contains(t, w.page(tides+"?deleted=1&q=neap", http.StatusOK), "No entries match")
	require.Contains(t, w.page("/entries?deleted=1", http.StatusOK), "Spring")

	// A search in a period, and the hits of each month on the timeline.
	all := w.page(blog+"?q=storm", http.StatusOK)
	bars := regexp.MustCompile(`href="(\?month=\d{4}-\d\d&amp;q=storm)#entries"><title>([^:]+): (\d+) entr`).FindAllStringSubmatch(all, -1)
	require.NotEmpty(t, bars)
	require.Contains(t, all, `href="?month=2012-01&amp;q=storm&amp;span=12#entries"`)
	for _, bar := range bars[:3] {
		list := w.page(blog+strings.ReplaceAll(bar[1], "&amp;", "&"), http.StatusOK)
		require.Contains(t, list, "<bdi>With “storm”</bdi>")
		require.Contains(t, list, "<bdi>From "+bar[2]+"</bdi>")
		require.Contains(t, list, `class="chosen" aria-current="true"><title>`+bar[2]+`: `+bar[3]+` entr`)
		require.Equal(t, 1, strings.Count(list, `class="chosen"`))
		require.Contains(t, list, `<input type="hidden" name="month" value="`)
		_, without, _ := strings.Cut(list, "From "+bar[2]+`</bdi> <a href="`)
		require.True(t, strings.HasPrefix(without, `?q=storm#entries"`), without[:20])
	}
	require.Contains(t, w.page(blog+"?month=2012-01&span=12", http.StatusOK), "<bdi>From 2012</bdi>")
	require.Contains(t, w.page(blog+"?month=2012-01&span=12", http.StatusOK), `span=12#entries" aria-current="true"`)
}

var (
	prevLink = regexp.MustCompile(`<a rel="prev" href="\?id=([^"&]+)[^"]*"`)
	nextLink = regexp.MustCompile(`<a class="on" rel="next" href="\?id=([^"&]+)[^"]*"`)
)

// A feed can be read from its beginning to its end: as a list, and from entry
// to entry, each once.
func TestReadThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2007)
	page := w.add("/blog/feed.atom")
	var newest, oldest []string
	for order, list := range map[string]*[]string{"": &newest, "?order=oldest": &oldest} {
		for path := page + order; path != ""; {
			body := w.page(path, http.StatusOK)
			_, entries, _ := strings.Cut(body, `<ol class="entries">`)
			for _, m := range entryLink.FindAllStringSubmatch(entries, -1) {
				*list = append(*list, m[1])
			}
			_, next, ok := strings.Cut(body, `class="on" rel="next" href="`)
			if next, _, _ = strings.Cut(next, "#"); !ok {
				break
			}
			path = page + strings.ReplaceAll(next, "&amp;", "&")
		}
	}
	require.Len(t, oldest, len(w.mirrored(w.feedURL("/blog/feed.atom"))))
	for i, id := range oldest {
		require.Equal(t, newest[len(newest)-1-i], id)
	}
	require.Contains(t, w.page(page+"?order=oldest", http.StatusOK), "Shown below: 9 ")

	for i, id := range oldest {
		body := w.page(page+"/entry?id="+id, http.StatusOK)
		require.Contains(t, body, fmt.Sprintf("You are here: </span>Entry %d of %d, ", i+1, len(oldest)))
		for _, link := range []struct {
			found []string
			at    int
		}{{prevLink.FindStringSubmatch(body), i - 1}, {nextLink.FindStringSubmatch(body), i + 1}} {
			if link.at < 0 || link.at == len(oldest) {
				require.Nil(t, link.found)
				continue
			}
			got, err := url.QueryUnescape(link.found[1])
			require.NoError(t, err)
			want, err := url.QueryUnescape(oldest[link.at])
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}

	// A random entry, and the entries of a day.
	seen := map[string]bool{}
	for range 40 {
		status, _, header := w.get(page + "/random")
		require.Equal(t, http.StatusSeeOther, status)
		require.Equal(t, "no-store", header.Get("Cache-Control"))
		w.page(header.Get("Location"), http.StatusOK)
		seen[header.Get("Location")] = true
	}
	require.Greater(t, len(seen), 10)
	day := w.page(page+"/day?day=01-09", http.StatusOK)
	require.Contains(t, day, "9 January, in all years")
	require.Regexp(t, `(?s)9 January 2006.*9 January 2005|9 January 2005.*9 January 2004|9 January 2006.*9 January 2004`, day)
	require.NotContains(t, day, "15 January")
	require.Contains(t, w.page(page+"/day?day=02-30", http.StatusOK), "in all years", "what is no day is today")
	require.Contains(t, w.page(page+"/day?day=02-29", http.StatusOK), "29 February")
}

func TestMarked(t *testing.T) {
	for _, test := range [][3]string{
		{"The Storm petrels", "storm", "The <mark>Storm</mark> petrels"}, {"Storms & <b>", "b STO", "<mark>Storms</mark> &amp; &lt;<mark>b</mark>&gt;"},
		{"Éclair, eclairs", "ecl", "<mark>Éclair</mark>, <mark>eclairs</mark>"}, {"brainstorm", "storm", "brainstorm"}, {"", "x", ""}, {"x", "", "x"},
	} {
		require.Equal(t, test[2], string(marked(test[0], searchOf(test[1]))))
	}
	long := strings.Repeat("word ", 100) + "the storm came " + strings.Repeat("word ", 100)
	require.True(t, strings.HasPrefix(around(long, searchOf("storm")), "… word word word word word word word the storm came"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		shown := string(marked(text, searchOf(rapid.String().Draw(t, "search"))))
		require.NotContains(t, strings.NewReplacer("<mark>", "", "</mark>", "").Replace(shown), "<")
	})
	w := newWorld(t, nil)
	w.add("/news.rss")
	found := w.page("/entries?q=ferr", http.StatusOK)
	require.Contains(t, found, "The <mark>ferry</mark> is back")
	_, address, _ := strings.Cut(found, `class="title" data-link href="`)
	address, _, _ = strings.Cut(address, `"`)
	entry := w.page(strings.ReplaceAll(address, "&amp;", "&"), http.StatusOK)
	require.Contains(t, entry, `The <mark>ferry</mark> is back</h1>`, "the entry has them marked, too")
	require.Contains(t, entry, `?q=ferr#entries">All with “<bdi>ferr</bdi>”`)
	require.NotContains(t, w.page("/feeds/"+republish.Name(w.feedURL("/news.rss"))+"/entry?id=harbour-3", http.StatusOK), "<mark>")
	require.Equal(t, `<p title="storm">A <mark>storm</mark> &amp; <a href="x">no <mark>Storms</mark></a> &lt;storm&gt;</p>`,
		strings.ReplaceAll(string(markedIn(`<p title="storm">A storm &amp; <a href="x">no Storms</a> &lt;storm&gt;</p>`, searchOf("storm"))), "<mark>storm</mark>&gt;", "storm&gt;"))
	rapid.Check(t, func(t *rapid.T) {
		text := sanitise(feedhistory.Text{Type: "html", Body: rapid.StringMatching(`([a-c<>&"' /]|<b>|</b>|<p title='a'>|&amp;|&lt;){0,30}`).Draw(t, "markup")}, display{})
		shown := strings.NewReplacer("<mark>", "", "</mark>", "").Replace(string(markedIn(text, searchOf("a lt b"))))
		require.Equal(t, html.UnescapeString(string(text)), html.UnescapeString(shown), "nothing else is changed")
	})
}

// A difference contains all of both texts, and nothing else.
func TestDifference(t *testing.T) {
	require.Equal(t, "It sails <del>twice</del> <ins>three times</ins> a day.", string(difference("It sails twice a day.", "It sails three times a day.")))
	require.Equal(t, "<ins>&lt;b&gt;</ins>", string(difference("", "<b>")))
	require.Empty(t, difference("a  b", "a b"))
	require.Empty(t, difference(strings.Repeat("x ", mostCompared+1), "x"))
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "b", "c", "<d>"})
		old, changed := rapid.SliceOfN(word, 0, 12).Draw(t, "old"), rapid.SliceOfN(word, 0, 12).Draw(t, "new")
		shown := string(difference(strings.Join(old, " "), strings.Join(changed, " ")))
		if shown == "" {
			require.Equal(t, old, changed)
			return
		}
		without := func(tag string) string {
			rest := regexp.MustCompile("<"+tag+">.*?</"+tag+">").ReplaceAllString(shown, "")
			rest = strings.NewReplacer("<ins>", "", "</ins>", "", "<del>", "", "</del>", "", "&lt;", "<", "&gt;", ">").Replace(rest)
			return strings.Join(strings.Fields(rest), " ")
		}
		require.Equal(t, strings.Join(old, " "), without("ins"))
		require.Equal(t, strings.Join(changed, " "), without("del"))
	})
	w := newWorld(t, nil)
	news := w.add("/news.rss")
	w.poll(w.feedURL("/news.rss"))
	require.Contains(t, w.page(news+"/entry?id=harbour-3", http.StatusOK), "It sails <del>twice</del> <ins>three times</ins> a day.")
	tides := w.add("/tides.atom")
	w.poll(w.feedURL("/tides.atom"))
	require.NotContains(t, w.page(tides+"/entry?id=urn:tides:1", http.StatusOK), "Entry 1 of", "what is deleted is none of them")
}

// Nothing is loaded from elsewhere unless somebody asks for it.
func TestOnDemand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2004)
	pod := w.add("/pod.rss")
	_, body, header := w.get(pod + "/entry?id=pod-1")
	requireSound(t, body)
	require.Contains(t, body, `<a rel="noreferrer nofollow" href="https://pod.example/1.mp3">1.mp3</a> <span class="quiet">audio/mpeg, 1.2 MB</span>`)
	require.Contains(t, body, `<audio controls preload="none" src="https://pod.example/1.mp3"></audio>`, "which loads nothing before somebody plays it")
	require.Contains(t, body, "3 chapters")
	for _, chapter := range []string{
		`href="https://pod.example/1.mp3#t=0" data-seek="0"><span class="at">00:00</span> <bdi>Hello</bdi>`,
		`href="https://pod.example/1.mp3#t=90.5" data-seek="90.5"><span class="at">01:30</span> <bdi>Fog &amp; ships</bdi>`,
		`href="https://pod.example/1.mp3#t=3723" data-seek="3723"><span class="at">01:02:03</span> <bdi>Untitled</bdi>`,
	} {
		require.Contains(t, body, chapter)
	}
	require.Equal(t, policy()+"; media-src http: https:", header.Get("Content-Security-Policy"))

	blog := w.add("/blog/feed.atom")
	entry := "/entry?id=" + entryLink.FindStringSubmatch(w.page(blog, http.StatusOK))[1]
	body = w.page(blog+entry, http.StatusOK)
	require.Regexp(t, `<img src="/pictures/[^"]+" alt="The day’s chart"`, body)
	require.Contains(t, body, "Pictures come through this server")
	status, _, header := w.get(blog + entry)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, policy(), header.Get("Content-Security-Policy"))

	hostile := w.add("/hostile.atom")
	_, body, _ = w.get(hostile + "/entry?id=" + url.QueryEscape(`"><script>harmed=1</script>`))
	require.NotRegexp(t, `<[^>]*onerror=`, body, "as text it does no harm")
	requireSound(t, body)
}

// A copy kept by a reader names it.
func TestReaderOfCopyIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	page := w.add("/news.rss")
	_, err := (&mirror.Recall{Mirror: w.Mirror, Name: "newsboat"}).Entries(t.Context(), w.feedURL("/news.rss"), "", []mirror.KeptEntry{
		{Draft: compose.Draft{ID: "urn:kept", Title: feedhistory.Text{Body: "Kept"}, Content: feedhistory.Text{Body: "Text"}}},
	})
	require.NoError(t, err)
	require.Contains(t, w.page(page+"/entry?id=urn:kept", http.StatusOK), "· kept by <bdi>newsboat</bdi>")
}

// A year leads to its months, a month to its days, and a search from hit to hit.
func TestPeriods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2006)
	page := w.add("/blog/feed.atom")
	year := w.page(page+"?month=2004-01&span=12", http.StatusOK)
	require.Contains(t, year, `aria-label="Months of 2004"`)
	month := regexp.MustCompile(`href="(\?month=2004-\d\d)#entries" title="[^"]*">[A-Z][a-z]+</a>`).FindStringSubmatch(year)
	require.NotNil(t, month, year)
	days := w.page(page+month[1], http.StatusOK)
	require.Contains(t, days, `aria-label="Days of `)
	one := regexp.MustCompile(`href="(\?day=\d+&amp;month=2004-\d\d)#entries" title="1 entry">`).FindStringSubmatch(days)
	require.NotNil(t, one, days)
	day := w.page(page+strings.ReplaceAll(one[1], "&amp;", "&"), http.StatusOK)
	require.Equal(t, 1, strings.Count(day, `class="title"`))
	require.Contains(t, day, "aria-current=\"true\"")
	require.NotContains(t, w.page(page+"?month=2004-02&day=31", http.StatusOK), "From 31")

	hits := w.page(page+"?q=petrels", http.StatusOK)
	first := regexp.MustCompile(`data-link href="([^"]+)"`).FindStringSubmatch(hits)
	body := w.page(strings.ReplaceAll(first[1], "&amp;", "&"), http.StatusOK)
	n := 1
	for ; strings.Contains(body, "← Previous hit"); n++ {
		m := regexp.MustCompile(`<a href="(\?id=[^"]+)">← Previous hit`).FindStringSubmatch(body)
		body = w.page(page+"/entry"+strings.ReplaceAll(m[1], "&amp;", "&"), http.StatusOK)
		require.Contains(t, body, "Next hit →")
	}
	require.Contains(t, hits, fmt.Sprint(n)+" entries: ")
}

func TestDurationText(t *testing.T) {
	for text, want := range map[string]string{"": "", "12:34": "13 minutes", "45": "45 seconds", "3600": "1 hour 0 minutes", "1:02:03": "1 hour 2 minutes", "x": "", "-5": "", "9:99:99:99:99": ""} {
		require.Equal(t, want, durationText(text), text)
	}
}

var void = []string{"meta", "link", "input", "br", "hr", "img", "progress/"}

// requireSound checks a page's markup: every element is closed, there are no
// inline scripts or styles, inputs have labels, ids are unique and exist where
// they are referred to, and there is one heading.
func requireSound(t testing.TB, body string) {
	t.Helper()
	var open []string
	ids, refs, labelled := map[string]int{}, map[string]bool{}, map[string]bool{}
	headings, inputs := 0, map[string]bool{}
	z := html.NewTokenizer(strings.NewReader(body))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		token := z.Token()
		switch kind {
		case html.EndTagToken:
			require.NotEmpty(t, open, "</%s>", token.Data)
			require.Equal(t, open[len(open)-1], token.Data, "tags are closed in order")
			open = open[:len(open)-1]
			continue
		case html.TextToken:
			switch text := strings.TrimSpace(token.Data); {
			case len(open) > 0 && open[len(open)-1] == "script":
				require.Empty(t, text, "no inline script")
			case len(open) > 0 && open[len(open)-1] == "style":
				require.Equal(t, strings.TrimSpace(string(assets()["style.css"].text)), text, "no style but the server's")
			}
			continue
		case html.StartTagToken:
			if !slices.Contains(void, token.Data) {
				open = append(open, token.Data)
			}
		case html.SelfClosingTagToken:
		default:
			continue
		}
		if token.Data == "h1" {
			headings++
		}
		for _, a := range token.Attr {
			require.NotEqual(t, "style", a.Key)
			require.False(t, strings.HasPrefix(a.Key, "on"), "no inline script: %s", a.Key)
			require.NotContains(t, strings.ToLower(a.Val), "javascript:")
			switch {
			case a.Key == "id":
				ids[a.Val]++
			case a.Key == "for":
				labelled[a.Val], refs[a.Val] = true, true
			case a.Key == "aria-labelledby", a.Key == "aria-describedby":
				refs[a.Val] = true
			case a.Key == "href" && strings.HasPrefix(a.Val, "#"):
				refs[a.Val[1:]] = true
			}
		}
		if token.Data == "input" {
			attrs := map[string]string{}
			for _, a := range token.Attr {
				attrs[a.Key] = a.Val
			}
			if attrs["type"] != "hidden" {
				inputs[attrs["id"]] = true
			}
		}
	}
	require.Empty(t, open, "all tags are closed")
	require.Equal(t, 1, headings, "one first heading")
	for id, n := range ids {
		require.Equal(t, 1, n, "id %q", id)
	}
	for id := range refs {
		require.NotZero(t, ids[id], "reference to %q", id)
	}
	for id := range inputs {
		require.True(t, labelled[id], "input %q has a label", id)
	}
	require.Contains(t, body, `<html lang="en">`)
}

// Whatever an entry says, what is shown of it neither acts, nor loads anything,
// nor passes for a part of the page.
func FuzzSanitise(f *testing.F) {
	for _, seed := range []string{
		`<p>One <b>two</b> <a href="x">three</a> <img src="i" alt="four"></p>`,
		`<svg><style><img src=x onerror=a()></style></svg>`, `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=a()&gt;">`,
		`<a href="java&#10;script:a()">x</a>`, `<noscript><p title="</noscript><img src=x onerror=a()>">`, `<video><source src="//v"></video>`,
		`<object data="javascript:a()"><embed src="x"></object>`, `<form id="main"><input name="q"></form>`, "<pre>\n\n<!--", `<a href="http://[">x`,
		`<img title="first" alt="x" src="java&#10;script:a()">`,
		`<svg viewBox="0 0 1 1"><title><style><img src=x onerror=a()></style></title><path d="M0 0h1" onclick="a()" style="fill:url(//x)"/></svg>`,
		`<svg><rect fill="url(//x)" stroke="url(#y)" width="1" transform="rotate(9) url(x)"/><use href="//x#y"/></svg>`,
		`<svg><foreignObject><p id="main">x</p></foreignObject></svg><svg><a xlink:href="javascript:a()"><text>x</text></a></svg>`,
		`<math><annotation-xml encoding="text/html"><p><img src=x onerror=a()></p></annotation-xml><mi xlink:href="javascript:a()">x</mi></math>`,
		`<math href="javascript:a()"><mstyle mathcolor="url(//x)" mathvariant="bold"><mi>x</mi></mstyle><semantics><mn>1</mn><annotation>1</annotation></semantics></math>`,
		`<math><mi><table><mi><style><!--</style><a title="--&gt;&lt;script&gt;a()&lt;/script&gt;">`, `<svg></p><style><a title="</style><img src=x onerror=a()>">`,
		`<img srcset="javascript:a() 1w, //x/a,b 2w, i.png 3w, j.png 4w" sizes="(a) url(x)" width="9" height="1e9">`, `<img data-src="javascript:a()" src="data:image/svg+xml,<svg onload=a()>">`,
		`<picture><source srcset="data:text/html,x 1w"><img></picture>`, `<noscript><img src="x" onerror="a()"><script>a()</script></noscript>`,
		`<p id="main" class="note" tabindex="1">x</p><a name="main" href="#main">y</a><td align="url(x)" style="text-align:right;x:url(y)">z</td>`,
	} {
		f.Add(seed, "https://example.org/a/", true)
		f.Add(seed, "%zz", false)
	}
	proxy := newPictureProxy(nil, "/", time.Now)
	f.Fuzz(func(t *testing.T, body, base string, xhtml bool) {
		text := feedhistory.Text{Type: "html", Body: body, Base: base}
		if xhtml {
			text.Type = "xhtml"
		}
		for _, pictures := range []*pictureProxy{nil, proxy} {
			ids := map[string]bool{}
			for n := range fragment(t, sanitise(text, display{pictures: pictures, page: "https://example.org/page"})).Descendants() {
				if n.Type == html.ElementNode {
					requireHarmless(t, n, pictures != nil, ids)
				}
			}
		}
	})
}

// requireHarmless requires an element as browsers read it to be one of the closed lists,
// with attributes that neither act nor load.
func requireHarmless(t *testing.T, n *html.Node, images bool, ids map[string]bool) {
	if n.Data == "img" {
		require.True(t, images)
	}
	require.NotContains(t, []string{
		"script", "style", "iframe", "object", "embed", "form", "input", "base", "meta", "link", "video", "audio", "noscript", "template", "image", "use", "foreignobject",
		"foreignObject", "animate", "set", "annotation", "annotation-xml", "mglyph", "malignmark", "maction", "filter", "textarea", "select", "xmp", "plaintext",
	}, n.Data)
	switch n.Namespace {
	case "svg":
		require.Contains(t, drawingElements, n.Data)
	case "math":
		require.Contains(t, mathElements, n.Data)
	}
	for _, a := range n.Attr {
		require.False(t, strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Namespace != "", "%s %s", n.Data, a.Key)
		switch a.Key {
		case "href", "src":
			require.Contains(t, []string{"a", "img"}, n.Data)
			u, err := url.Parse(a.Val)
			require.NoError(t, err)
			require.Contains(t, []string{"", "http", "https", "mailto"}, u.Scheme)
			if a.Key == "src" && a.Val != "" {
				require.Regexp(t, `^/pictures/[\w-]{22}\?of=`, a.Val)
			}
		case "id":
			require.True(t, strings.HasPrefix(a.Val, "t-"), a.Val)
			require.False(t, ids[a.Val], "%s twice", a.Val)
			ids[a.Val] = true
		case "class":
			require.Regexp(t, alignment, a.Val)
		case "title", "alt", "aria-label", "lang", "dir", "rel", "datetime", "sizes":
		default:
			require.NotContains(t, a.Val, "(", "%s %s", n.Data, a.Key)
			require.NotContains(t, a.Val, ":", "%s %s", n.Data, a.Key)
		}
	}
}

// A token of a place gives the same place again; any other text gives none.
func FuzzToken(f *testing.F) {
	f.Add(token(&mirror.Record{Feed: "https://example.org/", ID: "urn:1\n2"}))
	f.Add("rubbish")
	f.Fuzz(func(t *testing.T, text string) {
		if c := parseToken(text); c != nil {
			again := parseToken(token(c))
			require.NotNil(t, again)
			require.True(t, c.Time().Equal(again.Time()))
			require.Equal(t, []string{c.Feed, c.ID}, []string{again.Feed, again.ID})
		}
	})
}

// fragment parses markup as the content of a div.
func fragment(t *testing.T, markup template.HTML) *html.Node {
	context := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	nodes, err := html.ParseFragment(strings.NewReader(string(markup)), context)
	require.NoError(t, err)
	root := &html.Node{Type: html.DocumentNode}
	for _, n := range nodes {
		root.AppendChild(n)
	}
	return root
}
