package feedhistory

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"pgregory.net/rapid"
)

// A chainer draws chains.
type chainer struct {
	*rapid.T
	urls []string
	kind Kind
	c    *faultyChain
	lies map[int]string // documents whose header names another one than they do themselves
}

// odds draws something rare: one in n.
func (g *chainer) odds(n int, what string) bool {
	return rapid.IntRange(1, n).Draw(g.T, what) == n
}

func (g *chainer) any() string { return rapid.SampledFrom(g.urls).Draw(g.T, "any document") }

func drawChain(t *rapid.T) *faultyChain {
	g := &chainer{T: t, lies: map[int]string{}, kind: rapid.SampledFrom([]Kind{Archived, Archived, Paged}).Draw(t, "kind")}
	for i := range rapid.SampledFrom([]int{9, 14, 20, 12, 16, 6, 3, 1}).Draw(t, "documents") {
		host := "a.example"
		if g.odds(25, "on another host") {
			host = "b.example"
		}
		g.urls = append(g.urls, fmt.Sprintf("http://%s/%d", host, i))
	}
	g.c = &faultyChain{
		replies: map[string]feedtest.Reply{}, again: map[string]feedtest.Reply{}, etags: map[string]string{}, known: map[string]Known{},
		start: g.urls[0],
	}
	for i := range g.urls {
		if g.odds(6, "misleading header") {
			g.lies[i] = g.any()
		}
	}
	for i, url := range g.urls {
		g.c.replies[url] = g.reply(i)
	}
	g.copies()
	g.options()
	g.moves()
	return g.c
}

// options draws what does not belong to the feed.
func (g *chainer) options() {
	c := g.c
	if g.odds(6, "start elsewhere") {
		c.start = g.any()
	}
	limit := func(what string, most int) int {
		if !g.odds(5, "limit of "+what) {
			return 0
		}
		return rapid.IntRange(1, most).Draw(g.T, what)
	}
	c.budget = Budget{
		Documents: limit("documents", 12), Bytes: int64(limit("bytes", 20000)), Barren: limit("barren", 3),
	}
	c.more = limit("more documents", 16)
	c.own = g.odds(6, "same origin")
	for _, url := range g.urls {
		if g.odds(40, "processed") {
			c.processed = append(c.processed, url)
		}
		if g.odds(30, "pending") {
			c.pending = append(c.pending, url)
		}
		if g.odds(4, "with an etag") {
			c.etags[url] = `"` + url + `"`
		}
		if g.odds(16, "known") {
			c.known[url] = Known{URL: url, ETag: c.etags[url], Kind: g.kind, Older: g.older(slices.Index(g.urls, url))}
		} else if body := c.replies[url].Body; g.odds(16, "known by its digest") {
			c.known[url] = Known{URL: url, Digest: fetch.Digest(body), Kind: g.kind, Older: g.older(slices.Index(g.urls, url))}
		}
	}
}

// copies makes some documents repeat others, byte for byte.
func (g *chainer) copies() {
	for _, url := range g.urls {
		if g.odds(16, "repeated content") {
			g.c.replies[url] = g.c.replies[g.any()]
		}
	}
}

// moves makes the feed lead elsewhere when it is read a second time. What the feed says then must
// depend on nothing else, so no other document redirects to it.
func (g *chainer) moves() {
	c := g.c
	if g.kind != Archived || c.start != g.urls[0] || c.replies[c.start].Status != 0 || c.replies[c.start].Err != nil ||
		!g.odds(2, "moved") {
		return
	}
	for _, r := range c.replies {
		if slices.Contains(r.Header, "Location: "+c.start) {
			return
		}
	}
	c.again[c.start] = feedtest.Reply{Body: g.document(0)}
}

var (
	faults = append(make([]string, 80),
		"status", "status", "status", "cut", "aborted", "malformed", "page", "empty", "redirect", "redirect", "itself",
		"no answer", "stalls", "header", "reset", "announced")
	turns = append(make([]string, 60), "any", "any", "end", "nowhere", "file", "userinfo", "fragment", "relative")
)

// reply draws the answer for a URL, perhaps with a fault.
func (g *chainer) reply(i int) feedtest.Reply {
	body, fault := g.document(i), ""
	if i > 0 || g.odds(6, "fault at once") {
		fault = rapid.SampledFrom(faults).Draw(g.T, "fault")
	}
	cut := func() string { return body[:rapid.IntRange(0, len(body)-1).Draw(g.T, "cut")] }
	r := feedtest.Reply{Body: body}
	if lie, ok := g.lies[i]; ok {
		rel := map[Kind]string{Archived: RelPrevArchive, Paged: RelNext}[g.kind]
		r.Header = append(r.Header, fmt.Sprintf("Link: <%s>; rel=%q", lie, rel))
	} else if g.odds(10, "with a Link header") {
		rel := rapid.SampledFrom([]string{RelPrevArchive, RelNext, RelCurrent, RelNextArchive}).Draw(g.T, "relation")
		r.Header = append(r.Header, fmt.Sprintf("Link: <%s>; rel=%q", g.any(), rel))
	}
	switch fault {
	case "status":
		r = feedtest.Reply{Status: rapid.SampledFrom([]int{404, 410, 403, 500, 204, 206, 300, 503}).Draw(g.T, "status")}
	case "cut":
		r.Body = cut()
	case "aborted":
		r.Header = append(r.Header, "Content-Length: "+strconv.Itoa(len(body)))
		r.Body = cut()
	case "announced":
		r.Header = append(r.Header, "Content-Length: "+strconv.Itoa(len(body)))
	case "malformed":
		at := rapid.IntRange(0, len(body)-1).Draw(g.T, "place")
		r.Body = body[:at] + "</" + body[at:]
	case "page":
		r.Body = "<!doctype html><html><head><title>No</title></head><body><p>Sorry</body></html>"
	case "empty":
		r.Body = ""
	case "redirect":
		r.Status, r.Body = rapid.SampledFrom([]int{301, 302, 307, 308}).Draw(g.T, "status"), ""
		r.Header = []string{"Location: " + g.any()}
	case "itself":
		r.Status, r.Header = 302, []string{"Location: " + g.urls[i]}
	case "no answer":
		r.Err = errors.New("no answer")
	case "stalls":
		r.Body, r.Stalls = cut(), true
	case "reset":
		r.Body, r.End = cut(), errors.New("reset")
	case "header":
		r.Header = append(r.Header, "Content-Encoding: br")
	}
	return r
}

// older draws where the chain continues after a document.
func (g *chainer) older(i int) string {
	next := ""
	if i+1 < len(g.urls) {
		next = g.urls[i+1]
	}
	switch rapid.SampledFrom(turns).Draw(g.T, "older") {
	case "any": // a cycle, or chains that join
		return g.any()
	case "end":
		return ""
	case "nowhere":
		return "http://a.example/nowhere/" + strconv.Itoa(i)
	case "file":
		return "file:///etc/passwd"
	case "userinfo":
		return "http://user:secret@a.example/1"
	case "fragment":
		if next != "" {
			return next + "#part"
		}
	case "relative":
		return strconv.Itoa(i + 1)
	}
	return next
}

// document draws a feed document.
func (g *chainer) document(i int) string {
	var head, tail strings.Builder
	rss := g.odds(3, "RSS")
	prefix := map[bool]string{true: "atom:"}[rss]
	misled := g.misled(i)
	link := func(rel, href string) {
		if href == "" {
			return
		}
		b := &head
		if misled || g.odds(4, "after the entries") {
			b = &tail
		}
		fmt.Fprintf(b, "<%slink rel=%q href=%q/>\n", prefix, rel, href)
	}
	if g.odds(20, "misleading link") {
		link(rapid.SampledFrom([]string{RelPrevArchive, RelNext, RelCurrent, RelFirst, RelNextArchive}).Draw(g.T, "relation"), g.any())
	}
	if g.odds(3, "self") {
		link(RelSelf, g.urls[i])
	} else if g.odds(20, "wrong self") {
		link(RelSelf, g.any())
	}
	if g.odds(30, "complete") {
		head.WriteString("<fh:complete/>\n")
	}
	if g.kind == Archived {
		link(RelPrevArchive, g.older(i))
		if i > 0 && !g.odds(6, "without a mark") {
			head.WriteString("<fh:archive/>\n")
			link(RelCurrent, g.urls[0])
			link(RelNextArchive, g.urls[i-1])
		}
	} else {
		link(RelNext, g.older(i))
		if i > 0 && g.odds(2, "with its neighbours") {
			link(RelPrevious, g.urls[i-1])
			link(RelFirst, g.urls[0])
		}
	}
	entries, deleted := g.entries(i, rss)
	if rss {
		return `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"` +
			"><channel><title>Feed</title>\n" + head.String() + entries + tail.String() + "</channel></rss>\n"
	}
	return `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"` +
		` xmlns:at="http://purl.org/atompub/tombstones/1.0"><title>Feed</title>` + "\n" +
		head.String() + deleted + entries + tail.String() + "</feed>\n"
}

// misled reports whether all links of a document come after its entries, while a header field
// names another document.
func (g *chainer) misled(i int) bool {
	_, ok := g.lies[i]
	return ok
}

// entries draws the entries of a document: its own, or some that others share.
func (g *chainer) entries(i int, rss bool) (entries, deleted string) {
	var b strings.Builder
	id := func() int {
		if g.odds(3, "shared entry") {
			return rapid.IntRange(0, 5).Draw(g.T, "id")
		}
		return 100*(i+1) + rapid.IntRange(0, 50).Draw(g.T, "id")
	}
	for range rapid.IntRange(0, 4).Draw(g.T, "entries") {
		text := strings.Repeat("text ", rapid.SampledFrom([]int{0, 10, 400}).Draw(g.T, "length"))
		if rss {
			fmt.Fprintf(&b, "<item><guid>urn:%d</guid><title>%s</title></item>\n", id(), text)
			continue
		}
		fmt.Fprintf(&b, "<entry><id>urn:%d</id><title>%s</title><updated>2003-12-0%dT00:00:00Z</updated></entry>\n",
			id(), text, rapid.IntRange(1, 3).Draw(g.T, "day"))
	}
	if g.odds(10, "deleted") {
		deleted = fmt.Sprintf("<at:deleted-entry ref=\"urn:%d\" when=\"2003-12-02T00:00:00Z\"/>\n", id())
	}
	return b.String(), deleted
}
