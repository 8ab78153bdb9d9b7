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

// Version is that of the suite. A case that is published under a version keeps
// its name, its website and its requirements; other ones make another version.
const Version = "v1"

//go:embed cases
var files embed.FS

// A Case is a website with one fault, or none, and what a reader is to make of it.
type Case struct {
	Name         string        `json:"name"` // such as walk/archived; it never changes
	Why          string        `json:"why"`
	Level        Level         `json:"level"`   // what the case is about
	Clauses      []string      `json:"clauses"` // such as 5005#19
	Formats      []string      `json:"formats"` // of its documents: atom, rss, json
	Start        string        `json:"start"`   // the path of the address that a reader is given
	Polls        []string      `json:"polls,omitempty"`
	Requirements []Requirement `json:"requirements"`
	Source       string        `json:"-"` // the case's file, as FORMAT.md explains it
}

// A Level is a kind of things that a reader may tell or do. Where it does not
// tell, it is not judged.
type Level string

// The levels.
const (
	Entries  Level = "entries"  // what comes out, each once, in which version
	Verdict  Level = "verdict"  // what is said of what is missing
	Requests Level = "requests" // what is asked for, and how often
	State    Level = "state"    // all of these, over several polls
)

// Levels are all levels, in their order.
var Levels = []Level{Entries, Verdict, Requests, State}

// A Strength is how strong a requirement is.
type Strength string

// The strengths. Whoever breaks one of the first two fails; whoever breaks one
// of the next two has a warning; the last says what may go either way.
const (
	Must      Strength = "must"
	MustNot   Strength = "must-not"
	Should    Strength = "should"
	ShouldNot Strength = "should-not"
	May       Strength = "may"
)

// A Requirement is one thing that must, may or must not come out.
type Requirement struct {
	Poll     int      `json:"poll,omitempty"` // which one, from 1; 0 where there is one only
	Strength Strength `json:"strength"`
	What     string   `json:"what"`         // a word of FORMAT.md's table, such as entry
	Of       string   `json:"of,omitempty"` // an id, a path, a verdict
	Value    string   `json:"value,omitempty"`
	Level    Level    `json:"level"`
}

// String returns the requirement as its case's file has it.
func (r Requirement) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Strength, r.What, r.Of, r.Value))
}

// levels says which level each word of a requirement is of.
var levels = map[string]Level{
	"entry": Entries, "version": Entries, "once": Entries, "other": Entries,
	"verdict": Verdict, "whole-without": Verdict, "gap": Verdict, "deleted": Verdict,
	"requests": Requests, "request": Requests, "conditional": Requests,
}

// Cases returns all cases, by their names.
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

// Match returns the cases whose names match one of the patterns, as [path.Match]
// has them; a pattern without a slash is one of the last part. No pattern at all
// matches every case.
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
		return nil, fmt.Errorf("%s: the case is not explained", name)
	}
	judge, ok := archive.File("judge")
	if !ok {
		return nil, fmt.Errorf("%s: there is no file judge", name)
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
		return nil, fmt.Errorf("%s: %q is no level", name, c.Level)
	}
	return c, nil
}

// formats are those that a case's documents may be in, and what tells.
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
		return fmt.Errorf("at which poll?")
	case !slices.Contains([]Strength{Must, MustNot, Should, ShouldNot, May}, strength):
		return fmt.Errorf("%q is no strength", strength)
	case r.Level == "":
		return fmt.Errorf("%q is no requirement", what)
	case what == "once" || what == "other":
		if r.Of != "" {
			return fmt.Errorf("%s is all there is to say", what)
		}
	case r.Of == "":
		return fmt.Errorf("of what?")
	case what == "requests" && !numbered.MatchString(r.Of), what == "request" && !numbered.MatchString(r.Value):
		return fmt.Errorf("how many?")
	case what == "version" && r.Value == "":
		return fmt.Errorf("which version?")
	}
	if len(c.Polls) > 0 {
		r.Level = State
	}
	c.Requirements = append(c.Requirements, r)
	return nil
}

// site returns the case's website, which does not listen yet.
func (c *Case) site() (*website.Site, error) {
	s, err := website.New(c.Source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return s, nil
}
