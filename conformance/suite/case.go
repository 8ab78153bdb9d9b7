package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory/conformance/cases"
	"github.com/feedhistory/feedhistory/internal/website"
)

// version is the version of the suite. A published case keeps its name, its
// website and its requirements; a change of any of these makes a new version.
const version = "v2"

const suite = "RFC 5005 conformance"

// A Case is a website with one fault, or none, and the requirements of a reader.
type Case struct {
	Name         string        `json:"name"`             // such as walk/archived; it never changes
	Why          string        `json:"why"`              // why the case exists, in a sentence or two
	Level        string        `json:"level"`            // the subject of the test
	Clauses      []string      `json:"clauses"`          // such as 5005#19
	Formats      []string      `json:"formats"`          // the formats of its documents: atom, rss, json
	Flags        []string      `json:"flags"`            // groups it belongs to; see Flagged
	Start        string        `json:"start"`            // the path of the address given to the reader
	Polls        []string      `json:"polls,omitempty"`  // a word about each poll; nil if the feed is read once
	IfDue        []int         `json:"if_due,omitempty"` // numbers of the polls at which the reader decides whether the feed is due; at others it is
	Requirements []Requirement `json:"requirements"`     // the outcomes that must or should occur
	Source       string        `json:"-"`                // the case's file, in the format of FORMAT.md
}

// The levels are the kinds of outcome a reader may report. The suite does not judge those it
// does not report.
const (
	levelEntries  = "entries"  // the entries reported, each once, in the right version
	levelVerdict  = "verdict"  // the gaps reported
	levelRequests = "requests" // its requests, and how often it makes them
	levelState    = "state"    // all of these, over several polls
)

// levels are all levels in order.
var levels = []string{levelEntries, levelVerdict, levelRequests, levelState}

// Cases returns all cases, ordered by name.
func Cases() ([]*Case, error) {
	names, err := fs.Glob(cases.Files, "*/*.txtar")
	if err != nil {
		return nil, err
	}
	all := make([]*Case, 0, len(names))
	for _, name := range names {
		text, err := cases.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c, err := parse(strings.TrimSuffix(name, ".txtar"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Case) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Match returns the cases whose names match one of the patterns, which have the
// syntax of [path.Match]. A pattern without a slash is matched against the last
// part of the name. If there are no patterns, all cases match.
func Match(cases []*Case, patterns ...string) (matched []*Case, err error) {
	if len(patterns) == 0 {
		return cases, nil
	}
	for _, c := range cases {
		if c == nil {
			return nil, errors.New("conformance: Match: a Case is nil")
		}
		for _, pattern := range patterns {
			name := c.Name
			if !strings.Contains(pattern, "/") {
				name = path.Base(name)
			}
			ok, err := path.Match(pattern, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", pattern, err)
			}
			if ok {
				matched = append(matched, c)
				break
			}
		}
	}
	return matched, nil
}

// parse reads a case from the text of its file.
func parse(name, text string) (*Case, error) {
	archive := website.Parse(text)
	c := &Case{Name: name, Why: strings.Join(strings.Fields(archive.Comment), " "), Start: "/feed.atom", Source: text, Clauses: []string{}, Formats: []string{}, Flags: []string{}}
	if c.Why == "" {
		return nil, fmt.Errorf("%s: the case has no comment", name)
	}
	judge, ok := archive.File("judge")
	if !ok {
		return nil, fmt.Errorf("%s: the case has no file judge", name)
	}
	if polls, ok := archive.File("polls"); ok {
		c.Polls = strings.Split(strings.TrimRight(polls, "\n"), "\n")
	}
	poll := 0
	for line := range strings.Lines(judge) {
		line = strings.TrimSpace(line)
		key, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		var err error
		switch key {
		case "":
		case "level":
			c.Level = rest
		case "clauses":
			c.Clauses = strings.Split(rest, ", ")
		case "start":
			c.Start = rest
		case "if-due":
			c.IfDue = append(c.IfDue, poll)
		case "flags":
			c.Flags = strings.Split(rest, ", ")
		case "poll":
			if poll, err = strconv.Atoi(rest); err == nil && (poll < 1 || poll > len(c.Polls)) {
				err = fmt.Errorf("there is no poll %d", poll)
			}
		default:
			err = c.require(poll, key, rest)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", name, line, err)
		}
	}
	for _, format := range formats {
		if format.root.MatchString(text) {
			c.Formats = append(c.Formats, format.name)
		}
	}
	if !slices.Contains(levels, c.Level) {
		return nil, fmt.Errorf("%s: unknown level %q", name, c.Level)
	}
	if readings, ok := archive.File("readings"); ok {
		if err := c.read(readings); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	c.flag()
	return c, nil
}

// knownFlags returns all flags in order.
func knownFlags() []string {
	return []string{"rfc", "http", "security", "goal", "hostile", "rss1", "polls"}
}

// flag adds the flags following from the case's contents.
func (c *Case) flag() {
	given := c.Flags
	c.Flags = []string{}
	for _, flag := range knownFlags() {
		has := slices.Contains(given, flag)
		switch flag {
		case "rss1":
			has = strings.Contains(c.Source, "<rdf:RDF")
		case "polls":
			has = len(c.Polls) > 0
		default:
			has = has || slices.ContainsFunc(c.Requirements, func(r Requirement) bool {
				return r.Strength != may && r.Basis == flag
			})
		}
		if has {
			c.Flags = append(c.Flags, flag)
		}
	}
}

// Flagged returns the cases that have all of the flags. A flag that begins with "!" is
// one they do not have. The flags are rfc, http, security and goal, if a requirement has
// this basis; hostile, if a document is an attack; rss1, if one is RSS 1.0; polls, if
// the feed is read several times.
func Flagged(cases []*Case, flags ...string) ([]*Case, error) {
	var flagged []*Case
	for _, flag := range flags {
		if !slices.Contains(knownFlags(), strings.TrimPrefix(flag, "!")) {
			return nil, fmt.Errorf("unknown flag %q", flag)
		}
	}
	for _, c := range cases {
		if c == nil {
			return nil, errors.New("conformance: Flagged: a Case is nil")
		}
		if !slices.ContainsFunc(flags, func(flag string) bool {
			name, not := strings.CutPrefix(flag, "!")
			return slices.Contains(c.Flags, name) == not
		}) {
			flagged = append(flagged, c)
		}
	}
	return flagged, nil
}

// formats are the formats of a case's documents, and how to recognise them.
var formats = []struct {
	name string
	root *regexp.Regexp
}{
	{"atom", regexp.MustCompile(`(?m)^ *(<\?xml.*\?>)? *<(\w+:)?feed\b`)},
	{"rss", regexp.MustCompile(`(?m)<(rss|rdf:RDF)\b`)},
	{"json", regexp.MustCompile(`jsonfeed\.org/version`)},
}

// site returns the case's website, which is not listening yet.
func (c *Case) site() (*website.Site, error) {
	s, err := website.New(c.Source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return s, nil
}
