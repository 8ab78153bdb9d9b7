// Package provenance finds out from lines of JSON which feeds their entries come from, and
// how much of these feeds is there.
package provenance

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A Provenance records the feeds that lines of JSON come from. With --raw, fetch and
// export print lines with the verdict and the gaps.
type Provenance struct {
	Feeds   map[string]*mirror.Feed // by URL; nil for a feed whose verdict no line has
	Private bool                    // one of the feeds is private: its address, and those of its documents, may be secrets
	Ended   bool                    // the last line is the one that ends the lines of --raw
	rest    []byte                  // the part of the current line that has been written
}

var aboutFeed = regexp.MustCompile(`"type"\s*:\s*"(feed|gap|end)"`)

// Write implements io.Writer. It looks for lines about feeds in the text, which another
// reader reads at the same time.
func (p *Provenance) Write(text []byte) (int, error) {
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

// Close implements io.Closer. It reads a last line that has no line break.
func (p *Provenance) Close() error {
	if len(p.rest) > 0 {
		p.line()
	}
	return nil
}

// line reads the complete line in rest, if it is about a feed or ends the lines.
func (p *Provenance) line() {
	defer func() { p.rest = p.rest[:0] }()
	if len(bytes.TrimSpace(p.rest)) > 0 {
		p.Ended = false
	}
	if !aboutFeed.Match(p.rest) {
		return
	}
	var l struct {
		Type    string `json:"type"`
		Feed    string `json:"feed"`
		Private bool   `json:"private"`
		State   *struct {
			mirror.Feed
			Verdict *feedhistory.Verdict `json:"verdict"` // nil if the line does not say it
		} `json:"state"`
		Gap     *mirror.GapRecord       `json:"gap"`
		Pending *mirror.PendingDocument `json:"pending"`
	}
	err := json.Unmarshal(p.rest, &l)
	p.Ended = err == nil && l.Type == "end"
	if err != nil || l.Feed == "" {
		return // nothing else reads the line either
	}
	if l.Private || l.State != nil && l.State.Private {
		p.Private = true
	}
	switch f := p.Feed(l.Feed); {
	case l.Type == "feed" && l.State != nil && l.State.Verdict != nil:
		state := l.State.Feed
		state.URL, state.Verdict = l.Feed, *l.State.Verdict
		p.Feeds[l.Feed] = &state
	case l.Type != "gap" || f == nil:
	case l.Gap != nil:
		f.Gaps = append(f.Gaps, *l.Gap)
	case l.Pending != nil:
		f.Pending = append(f.Pending, *l.Pending)
	}
}

// Feed returns the feed with a URL; nil if no line has its verdict. It records the
// mention of the feed.
func (p *Provenance) Feed(url string) *mirror.Feed {
	f, ok := p.Feeds[url]
	if !ok {
		if p.Feeds == nil {
			p.Feeds = map[string]*mirror.Feed{}
		}
		p.Feeds[url] = nil
	}
	return f
}

// HasVerdicts reports whether the lines are those of --raw, which have verdicts.
func (p *Provenance) HasVerdicts() bool {
	for _, f := range p.Feeds {
		if f != nil {
			return true
		}
	}
	return false
}

// IsWhole reports whether no feed with a verdict may have other entries.
func (p *Provenance) IsWhole() bool {
	for _, f := range p.Feeds {
		if f != nil && f.Verdict != feedhistory.Whole {
			return false
		}
	}
	return true
}

// CutShort returns the gap where the reading of a feed was cut short and can go on, so
// that older entries may still come; nil if there is none.
func (p *Provenance) CutShort() *feedhistory.Gap {
	for _, url := range slices.Sorted(maps.Keys(p.Feeds)) {
		if f := p.Feeds[url]; f != nil {
			if gap := CutShort(f.Missing(), f.Unfinished || f.More); gap != nil {
				return gap
			}
		}
	}
	return nil
}

// CutShort returns the first of the gaps of a feed where the reading was cut short and
// can go on. If there is none, but a poll is unfinished, it returns a gap for that;
// otherwise nil: the feed has been read to its end.
func CutShort(gaps []*feedhistory.Gap, unfinished bool) *feedhistory.Gap {
	i := slices.IndexFunc(gaps, isPassing)
	switch {
	case i >= 0:
		return gaps[i]
	case unfinished:
		return &feedhistory.Gap{Reason: feedhistory.ReasonInterrupted, Err: errors.New("its sync is under way, or was interrupted")}
	}
	return nil
}

// passingStatus matches the text of an answer that may be another one the next time.
var passingStatus = regexp.MustCompile(`(^|: )(408|425|429|5\d\d) `)

// isPassing reports whether the document of a gap may come the next time.
func isPassing(g *feedhistory.Gap) bool {
	switch g.Reason {
	case feedhistory.ReasonInterrupted, feedhistory.ReasonNetwork:
		return true
	case feedhistory.ReasonBudget:
		return !errors.Is(g.Err, mirror.ErrQuota)
	case feedhistory.ReasonStatus:
		return g.Err != nil && passingStatus.MatchString(feedhistory.Describe(g.Err))
	}
	return false
}

// mostGaps is the maximum number of gaps that readers take from a feed's Coverage.
const mostGaps = 100

// others returns the URLs of the feeds other than the published one, sorted.
func (p *Provenance) others(own string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.Feeds)), func(url string) bool { return url == own })
}

// Coverage returns the declaration, in a feed made of the lines, about the feeds from
// which they come; nil if these feeds are whole, or if there is no feed other than the
// published one, own. For a feed without a verdict, it assumes a window.
func (p *Provenance) Coverage(own string) *feedhistory.Coverage {
	whole := true
	c := &feedhistory.Coverage{Verdict: feedhistory.Whole}
	others := p.others(own)
	for _, url := range others {
		verdict := feedhistory.Window
		if f := p.Feeds[url]; f != nil {
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
	if p.Private {
		return &feedhistory.Coverage{Verdict: c.Verdict} // neither addresses nor errors, which may quote them
	}
	if len(others) == 1 {
		if c.Of = others[0]; p.Feeds[c.Of] != nil {
			c.Kind = p.Feeds[c.Of].Kind
		}
	}
	return c
}

// IsUnknown reports whether the lines have no verdict on one of the other feeds from which
// they come.
func (p *Provenance) IsUnknown(own string) bool {
	return slices.ContainsFunc(p.others(own), func(url string) bool { return p.Feeds[url] == nil })
}
