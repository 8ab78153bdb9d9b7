package web

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A chain is the documents as the timeline shows them: links ordered by their
// places, oldest first.
type chain struct {
	links   []link
	openEnd bool // something older than everything known is missing
}

// A link is a document of a chain, or a gap.
type link struct {
	kind     string
	open     bool // how much it covers is unknown
	href     string
	what     string // its name, in a few words
	why      string // a sentence about it, or why the gap is there
	from, to time.Time
	entries  int
}

// newChain orders documents and gaps.
func newChain(feed *mirror.Feed, documents []*mirror.DocumentRecord, gaps []gapView) *chain {
	c := &chain{}
	before := map[string][]link{} // gaps by the document after them
	var loose []link              // gaps without such a document
	missing := feed.Missing()
	for i, g := range gaps {
		l := link{kind: "gap", href: "#gap-" + strconv.Itoa(g.Number), what: g.What, why: g.Message, from: g.Found, to: g.Found}
		if g.Todo {
			l.kind, l.href, l.why = "todo", "", "It is still to be read."
		}
		l.open = missing[i].Reason == feedhistory.ReasonMissedWindow
		if from := missing[i].From; missing[i].Reason != feedhistory.ReasonMissedWindow && from != "" {
			before[from] = append(before[from], l)
		} else {
			loose = append(loose, l)
		}
	}
	for _, d := range slices.Backward(documents) {
		found := false
		for _, name := range d.Names {
			c.links = append(c.links, before[name]...)
			found = found || len(before[name]) > 0
			delete(before, name)
		}
		c.openEnd = c.openEnd || found && len(c.links) == 1
		c.links = append(c.links, link{
			kind: "archive", href: webLink(d.URL), what: "Archive " + tail(d.URL),
			why:  "Its entries do not change, so it was read only once.",
			from: d.Oldest, to: d.Newest, entries: d.Entries,
		})
	}
	c.openEnd = c.openEnd || len(documents) == 0 && len(before) > 0
	for _, gap := range missing { // next to the subscription document
		c.links = append(c.links, before[gap.From]...)
		delete(before, gap.From)
	}
	if end := subscribed(feed); end.kind == "window" && len(c.links) == 0 {
		c.openEnd = true
		c.links = append([]link{past, end}, loose...)
	} else {
		c.links = append(append(c.links, loose...), end)
	}
	if c.openEnd && isGap(c.links[0]) {
		c.links[0].open = true
	}
	return c
}

// past is the history of a feed with only its latest entries, before it was
// first read.
var past = link{
	kind: "past", open: true, what: "What came before",
	why: "The feed does not say whether there was anything, so it may be missing.",
}

// subscribed returns the last link of the chain.
func subscribed(feed *mirror.Feed) link {
	l := link{href: webLink(feed.URL), to: feed.Polled}
	switch feed.Kind {
	case feedhistory.Complete:
		l.kind, l.what, l.why = "complete", "Complete document", "It has every entry of the feed."
	case feedhistory.Paged:
		l.kind, l.what, l.why = "pages", "Pages", "They shift as the feed grows, so entries may slip through."
	case feedhistory.Archived:
		l.kind, l.what, l.why = "subscription", "Subscription document", "It has the latest entries, and leads to the archives."
	default:
		l.kind, l.what, l.why = "window", "The feed's one document", "It shows only the latest entries. Older ones are here because they were seen before."
	}
	return l
}

const (
	leastBlock = 5.0
	leastGap   = 12.0
	endBlock   = 26.0 // of the subscription document, whose span is unknown
	blockSpace = 1.5
)

// draw places the chain on a scale. Each link begins where the previous one
// ends; archives too narrow to be seen share a block.
func (c *chain) draw(s scale) []block {
	var blocks []block
	at, limit := s.left, lineWidth-endBlock
	if c.openEnd {
		at = 0
	}
	for i, l := range c.links {
		from, to, least := at, lineWidth, endBlock
		afterArchive := i > 0 && c.links[i-1].kind == "archive"
		switch {
		case l.kind == "past":
			from, to, least = 0, s.left-blockSpace, leastGap
		case l.kind == "window" && i > 0 && c.links[i-1].kind == "past": // the entries seen
			from = s.left
		case l.kind == "window":
			from = limit
		case isGap(l) && c.links[0].kind == "past": // among these
			from = min(max(s.left, s.x(l.from)-leastGap), limit)
			to, least = from, leastGap
		case isGap(l):
			if from, to, least = max(at, s.x(l.from)), at, leastGap; i == 0 || afterArchive {
				from = at
			}
			if next := c.next(i); !next.IsZero() {
				to = s.x(next) - blockSpace
			}
		case l.kind == "archive":
			if to, least = min(s.x(l.to), limit), leastBlock; !afterArchive {
				from = max(at, s.x(l.from))
			}
		}
		if last := limit - least; isGap(l) || l.kind == "archive" {
			from = min(from, last)
		}
		blocks = append(blocks, block{Kind: l.kind, Open: l.open, Href: l.href, Says: l.says(), X: tenth(from), Width: tenth(max(to-from, least))})
		at = min(from+max(to-from, least)+blockSpace, limit)
	}
	return c.crowded(blocks)
}

// next returns when the first archive after a gap begins; the zero time if the
// gap is not directly followed by an archive.
func (c *chain) next(i int) time.Time {
	if i+1 < len(c.links) && c.links[i+1].kind == "archive" {
		return c.links[i+1].from
	}
	return time.Time{}
}

// mostBlocks is the maximum number of archives to draw one by one.
const mostBlocks = 150

// crowded joins neighbouring archives if there are too many.
func (c *chain) crowded(blocks []block) []block {
	group := (len(blocks) + mostBlocks - 1) / mostBlocks
	if group < 2 {
		return blocks
	}
	var joined []block
	for i := 0; i < len(blocks); {
		n := 1
		for n < group && i+n < len(blocks) && blocks[i].Kind == "archive" && blocks[i+n].Kind == "archive" {
			n++
		}
		b := blocks[i]
		if n > 1 {
			entries := 0
			for _, l := range c.links[i : i+n] {
				entries += l.entries
			}
			last := blocks[i+n-1]
			b.Width = last.X + last.Width - b.X
			b.Href = ""
			b.Says = plural(n, "archive", "archives") + " with " + plural(entries, "entry", "entries") +
				span(c.links[i].from, c.links[i+n-1].to)
		}
		joined = append(joined, b)
		i += n
	}
	return joined
}

func isGap(l link) bool { return l.kind == "gap" || l.kind == "todo" }

// says describes a link in words.
func (l link) says() string {
	text := l.what
	if isGap(l) {
		text += ": " + l.why
		if l.open {
			text = strings.TrimSuffix(text, ".") + ". Nobody knows how much is missing."
		}
		return text
	}
	if l.entries > 0 {
		text += ", " + plural(l.entries, "entry", "entries")
	}
	if l.kind == "archive" {
		text += span(l.from, l.to)
	}
	return text + ". " + l.why
}

// span returns a period in words; "" if it is unknown.
func span(from, to time.Time) string {
	a, b := from.UTC().Format("2 Jan 2006"), to.UTC().Format("2 Jan 2006")
	switch {
	case from.IsZero() || to.IsZero():
		return ""
	case a == b:
		return ", " + a
	}
	return ", " + a + " – " + b
}
