package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A provenance is what lines of JSON say about the feeds from which their entries come.
// With --raw, fetch and export print lines with the verdict and the gaps.
type provenance struct {
	feeds map[string]*mirror.Feed // by URL; nil for a feed whose verdict no line has
	rest  []byte                  // the part of the current line that has been written
}

var aboutFeed = regexp.MustCompile(`"type"\s*:\s*"(feed|gap)"`)

// Write implements io.Writer. It looks for lines about feeds in the text, which another
// reader reads at the same time.
func (p *provenance) Write(text []byte) (int, error) {
	n := len(text)
	for {
		line, rest, ok := bytes.Cut(text, []byte("\n"))
		p.rest = append(p.rest, line...)
		if !ok {
			return n, nil
		}
		p.line()
		text = rest
	}
}

// line reads the complete line in rest, if it is about a feed.
func (p *provenance) line() {
	defer func() { p.rest = p.rest[:0] }()
	if !aboutFeed.Match(p.rest) {
		return
	}
	var l struct {
		Type  string `json:"type"`
		Feed  string `json:"feed"`
		State *struct {
			mirror.Feed
			Verdict *feedhistory.Verdict `json:"verdict"` // nil if the line does not say it
		} `json:"state"`
		Gap     *mirror.Gap     `json:"gap"`
		Pending *mirror.Pending `json:"pending"`
	}
	if json.Unmarshal(p.rest, &l) != nil || l.Feed == "" {
		return // nothing else reads the line either
	}
	switch f := p.feed(l.Feed); {
	case l.Type == "feed" && l.State != nil && l.State.Verdict != nil:
		state := l.State.Feed
		state.URL, state.Verdict = l.Feed, *l.State.Verdict
		p.feeds[l.Feed] = &state
	case l.Type != "gap" || f == nil:
	case l.Gap != nil:
		f.Gaps = append(f.Gaps, *l.Gap)
	case l.Pending != nil:
		f.Pending = append(f.Pending, *l.Pending)
	}
}

// feed returns the feed with a URL; nil if no line has its verdict. It records that the
// lines mention the feed.
func (p *provenance) feed(url string) *mirror.Feed {
	f, ok := p.feeds[url]
	if !ok {
		if p.feeds == nil {
			p.feeds = map[string]*mirror.Feed{}
		}
		p.feeds[url] = nil
	}
	return f
}

// mostGaps is the maximum number of gaps that readers take from a feed's Coverage.
const mostGaps = 100

// others returns the URLs of the feeds other than the published one, sorted.
func (p *provenance) others(own string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.feeds)), func(url string) bool { return url == own })
}

// coverage returns what a feed that is made of the lines must say about the feeds from
// which they come; nil if these feeds are whole, or if there is no feed other than the
// published one, own. For a feed without a verdict, it assumes a window.
func (p *provenance) coverage(own string) *feedhistory.Coverage {
	whole := true
	c := &feedhistory.Coverage{Verdict: feedhistory.Whole}
	others := p.others(own)
	for _, url := range others {
		verdict := feedhistory.Window
		if f := p.feeds[url]; f != nil {
			verdict = f.Verdict
			c.Gaps = append(c.Gaps, f.Missing()...)
		}
		c.Verdict = feedhistory.Worse(c.Verdict, verdict)
		whole = whole && verdict == feedhistory.Whole
	}
	if whole {
		return nil
	}
	c.Gaps = c.Gaps[:min(len(c.Gaps), mostGaps)]
	if len(others) == 1 {
		if c.Of = others[0]; p.feeds[c.Of] != nil {
			c.Kind = p.feeds[c.Of].Kind
		}
	}
	return c
}

// isUnknown reports whether the lines have no verdict on one of the other feeds from which
// they come.
func (p *provenance) isUnknown(own string) bool {
	return slices.ContainsFunc(p.others(own), func(url string) bool { return p.feeds[url] == nil })
}
