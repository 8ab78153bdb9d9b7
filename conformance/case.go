package conformance

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory/internal/website"
)

// Version is the version of the suite. A published case keeps its name, its
// website and its requirements; a change of any of these makes a new version.
const Version = "v1"

//go:embed cases
var files embed.FS

// A Case is a website with one fault, or none, and what is required of a
// reader.
type Case struct {
	Name         string        `json:"name"`            // such as walk/archived; it never changes
	Why          string        `json:"why"`             // why the case exists, in a sentence or two
	Level        Level         `json:"level"`           // what the case tests
	Clauses      []string      `json:"clauses"`         // such as 5005#19
	Formats      []string      `json:"formats"`         // the formats of its documents: atom, rss, json
	Start        string        `json:"start"`           // the path of the address that the reader is given
	Polls        []string      `json:"polls,omitempty"` // a word about each poll; nil if the feed is read once
	Requirements []Requirement `json:"requirements"`    // what the reader must or should do
	Source       string        `json:"-"`               // the case's file, in the format of FORMAT.md
}

// A Level is a kind of thing that a reader may report or do. The suite does not
// judge what a reader does not report.
type Level string

// The levels.
const (
	Entries  Level = "entries"  // the entries that the reader reports, each once, in the right version
	Verdict  Level = "verdict"  // what it says is missing
	Requests Level = "requests" // what it requests, and how often
	State    Level = "state"    // all of these, over several polls
)

// Levels are all levels in order.
var Levels = []Level{Entries, Verdict, Requests, State}

// A Strength says how strong a requirement is.
type Strength string

// The strengths. A reader that breaks one of the first two fails; one that
// breaks one of the next two gets a warning; the last means that both outcomes
// are correct.
const (
	Must      Strength = "must"
	MustNot   Strength = "must-not"
	Should    Strength = "should"
	ShouldNot Strength = "should-not"
	May       Strength = "may"
)

// A Requirement is one outcome that must, should or may occur, or must or
// should not.
type Requirement struct {
	Poll     int      `json:"poll,omitempty"` // the number of the poll, from 1; 0 if there is only one
	Strength Strength `json:"strength"`
	What     string   `json:"what"`            // a word of FORMAT.md's table, such as entry
	Of       string   `json:"of,omitempty"`    // an id, a path, a verdict or a number
	Value    string   `json:"value,omitempty"` // the title of a version, or the number of requests for a path
	Level    Level    `json:"level"`           // what it tests
}

// String returns the requirement as it is in the case's file.
func (r Requirement) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Strength, r.What, r.Of, r.Value))
}

// levels are the levels of the requirements.
var levels = map[string]Level{
	"entry": Entries, "version": Entries, "once": Entries, "other": Entries,
	"verdict": Verdict, "whole-without": Verdict, "gap": Verdict, "deleted": Verdict,
	"requests": Requests, "request": Requests, "conditional": Requests,
}

// Cases returns all cases, ordered by name.
func Cases() ([]*Case, error) {
	names, err := fs.Glob(files, "cases/*/*.txtar")
	if err != nil {
		return nil, err
	}
	cases := make([]*Case, 0, len(names))
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c, err := Parse(strings.TrimSuffix(strings.TrimPrefix(name, "cases/"), ".txtar"), string(text))
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	slices.SortFunc(cases, func(a, b *Case) int { return strings.Compare(a.Name, b.Name) })
	return cases, nil
}

// Match returns the cases whose names match one of the patterns, which have the
// syntax of [path.Match]. A pattern without a slash is matched against the last
// part of the name. If there are no patterns, all cases match.
func Match(cases []*Case, patterns ...string) (matched []*Case, err error) {
	if len(patterns) == 0 {
		return cases, nil
	}
	for _, c := range cases {
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

// Parse reads a case from the text of its file.
func Parse(name, text string) (*Case, error) {
	archive := website.Parse(text)
	c := &Case{Name: name, Why: strings.Join(strings.Fields(archive.Comment), " "), Start: "/feed.atom", Source: text, Clauses: []string{}, Formats: []string{}}
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
			c.Level = Level(rest)
		case "clauses":
			c.Clauses = strings.Split(rest, ", ")
		case "start":
			c.Start = rest
		case "poll":
			if poll, err = strconv.Atoi(rest); err == nil && (poll < 1 || poll > len(c.Polls)) {
				err = fmt.Errorf("there is no poll %d", poll)
			}
		default:
			err = c.require(poll, Strength(key), rest)
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
	if !slices.Contains(Levels, c.Level) {
		return nil, fmt.Errorf("%s: unknown level %q", name, c.Level)
	}
	return c, nil
}

// formats are the formats that a case's documents may have, and how to
// recognise them.
var formats = []struct {
	name string
	root *regexp.Regexp
}{
	{"atom", regexp.MustCompile(`(?m)^ *(<\?xml.*\?>)? *<(\w+:)?feed\b`)},
	{"rss", regexp.MustCompile(`(?m)<(rss|rdf:RDF)\b`)},
	{"json", regexp.MustCompile(`jsonfeed\.org/version`)},
}

var numbered = regexp.MustCompile(`^[0-9]+$`)

func (c *Case) require(poll int, strength Strength, text string) error {
	what, rest, _ := strings.Cut(text, " ")
	r := Requirement{Poll: poll, Strength: strength, What: what, Of: strings.TrimSpace(rest), Level: levels[what]}
	if what == "version" || what == "request" {
		r.Of, r.Value, _ = strings.Cut(r.Of, " ")
	}
	switch {
	case poll == 0 && len(c.Polls) > 0:
		return fmt.Errorf("the poll is missing")
	case !slices.Contains([]Strength{Must, MustNot, Should, ShouldNot, May}, strength):
		return fmt.Errorf("unknown strength %q", strength)
	case r.Level == "":
		return fmt.Errorf("unknown requirement %q", what)
	case what == "once" || what == "other":
		if r.Of != "" {
			return fmt.Errorf("%s takes no argument", what)
		}
	case r.Of == "":
		return fmt.Errorf("the argument is missing")
	case what == "requests" && !numbered.MatchString(r.Of), what == "request" && !numbered.MatchString(r.Value):
		return fmt.Errorf("the number is missing")
	case what == "version" && r.Value == "":
		return fmt.Errorf("the title of the version is missing")
	}
	if len(c.Polls) > 0 {
		r.Level = State
	}
	c.Requirements = append(c.Requirements, r)
	return nil
}

// site returns the case's website, which is not listening yet.
func (c *Case) site() (*website.Site, error) {
	s, err := website.New(c.Source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return s, nil
}
