package main

import (
	"bytes"
	"encoding/json"
	"regexp"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A told collects what lines of JSON say about the feeds that their entries come from:
// with --raw, fetch and export print lines with the verdict and the gaps.
type told struct {
	feeds map[string]*mirror.Feed // by URL; nil: no line has its verdict
	rest  []byte                  // the beginning of a line
}

var aboutFeed = regexp.MustCompile(`"type"\s*:\s*"(feed|gap)"`)

// Write implements io.Writer: it looks for lines about feeds in what another reader
// reads.
func (t *told) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, ok := bytes.Cut(p, []byte("\n"))
		t.rest = append(t.rest, line...)
		if !ok {
			return n, nil
		}
		t.line()
		p = rest
	}
}

// line reads the line that is complete.
func (t *told) line() {
	defer func() { t.rest = t.rest[:0] }()
	if !aboutFeed.Match(t.rest) {
		return
	}
	var l struct {
		lineOf
		State   *mirror.Feed    `json:"state"`
		Gap     *mirror.Gap     `json:"gap"`
		Pending *mirror.Pending `json:"pending"`
	}
	if json.Unmarshal(t.rest, &l) != nil || l.Feed == "" {
		return // nothing else reads the line either
	}
	switch f := t.feed(l.Feed); {
	case l.Type == "feed" && l.State != nil:
		l.State.URL = l.Feed
		t.feeds[l.Feed] = l.State
	case l.Type != "gap" || f == nil:
	case l.Gap != nil:
		f.Gaps = append(f.Gaps, *l.Gap)
	case l.Pending != nil:
		f.Pending = append(f.Pending, *l.Pending)
	}
}

// feed returns a feed that lines are about; nil if none of them has its verdict.
func (t *told) feed(url string) *mirror.Feed {
	f, ok := t.feeds[url]
	if !ok {
		if t.feeds == nil {
			t.feeds = map[string]*mirror.Feed{}
		}
		t.feeds[url] = nil
	}
	return f
}

// coverage is what a feed made of the lines has to say about the feeds that they come
// from; nil if it has everything, or if there is no other feed than the own one.
// Of a feed whose verdict is unknown, it says no more than that there are entries.
func (t *told) coverage(own string) *feedhistory.Coverage {
	whole := true
	c := &feedhistory.Coverage{}
	for url, f := range t.feeds {
		if url == own {
			continue
		}
		if c.Of = url; len(t.feeds) > 1 {
			c.Of = ""
		}
		verdict := feedhistory.Window
		if f != nil {
			verdict, c.Kind = f.Verdict, f.Kind
			c.Gaps = append(c.Gaps, f.Missing()...)
		}
		c.Verdict = max(c.Verdict, verdict)
		whole = whole && verdict == feedhistory.Whole
	}
	if whole {
		return nil
	}
	return c
}

// isUnknown reports whether there is no verdict on a feed that the lines come from.
func (t *told) isUnknown(own string) bool {
	for url, f := range t.feeds {
		if url != own && f == nil {
			return true
		}
	}
	return false
}
