// Package suite has the parts of the conformance suite that the command "feedhistory
// conformance" and runners of other readers need. For a test written in Go, use package
// conformance.
//
// [Cases] returns all cases; FORMAT.md explains them. [Run] tests a [Reader] on
// cases, [Command] makes a program a reader, and [NewServer] lets programs test
// themselves over HTTP. A [PublisherTest] makes a publisher add, edit and delete
// entries, and judges its documents.
//
// A level is a kind of outcome: entries, verdict, requests or state. A strength is must,
// must-not, should, should-not or may. A basis is where a requirement comes from: rfc,
// http, security or goal.
//
// Methods of nil pointers may panic, unless their comments say otherwise.
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
const version = "v3"

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
	s.Polls = max(len(c.Polls), 1)
	return s, nil
}

// The strengths. A reader that breaks one of the first two fails; one that breaks one
// of the next two gets a warning; with the last, both outcomes are correct.
const (
	must      = "must"
	mustNot   = "must-not"
	should    = "should"
	shouldNot = "should-not"
	may       = "may"
)

// The bases. RFC 5005 has no MUST for readers, so the strength of a requirement
// is always this suite's; the basis says who else asks for the same.
const (
	basisRFC      = "rfc"      // a clause of an RFC or of XML asks for it
	basisHTTP     = "http"     // HTTP defines it, and good clients do it
	basisSecurity = "security" // protects the reader, the server or the network
	basisGoal     = "goal"     // only this suite asks for it
)

// bases returns all bases in order.
func bases() []string { return []string{basisRFC, basisHTTP, basisSecurity, basisGoal} }

// A Requirement is an outcome with a strength: it must, should or may occur, or must or
// should not.
type Requirement struct {
	Poll     int    `json:"poll,omitempty"` // number of the poll, from 1; 0 if there is only one
	Strength string `json:"strength"`
	What     string `json:"what"`            // a word of FORMAT.md's table, such as entry
	Of       string `json:"of,omitempty"`    // an id, a path, a verdict or a number
	Value    string `json:"value,omitempty"` // title of a version, number of requests for a path, or header field
	Level    string `json:"level"`           // the level it tests
	Basis    string `json:"basis"`
	Clause   string `json:"clause,omitempty"` // the clause it is based on; "" if there is none
	Reading  string `json:"reading"`          // the result of reading the clause a second time
}

// String returns the requirement as it is in the case's file.
func (r Requirement) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Strength, r.What, r.Of, r.Value))
}

// name returns the requirement as the table of readings names it: without its
// value.
func (r Requirement) name() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Strength, r.What, r.Of))
}

// levelOf returns the level of a requirement; "" if there is no such requirement.
func levelOf(what string) string {
	switch what {
	case "entry", "version", "once", "other":
		return levelEntries
	case "verdict", "whole-without", "gap", "deleted":
		return levelVerdict
	case "requests", "request", "conditional", "field":
		return levelRequests
	}
	return ""
}

var numbered = regexp.MustCompile(`^[0-9]+$`)

// require adds a requirement.
func (c *Case) require(poll int, strength string, text string) error {
	what, rest, _ := strings.Cut(text, " ")
	r := Requirement{Poll: poll, Strength: strength, What: what, Of: strings.TrimSpace(rest), Level: levelOf(what)}
	if slices.Contains([]string{"version", "request", "field"}, what) {
		r.Of, r.Value, _ = strings.Cut(r.Of, " ")
	}
	switch {
	case poll == 0 && len(c.Polls) > 0:
		return fmt.Errorf("the poll is missing")
	case !slices.Contains([]string{must, mustNot, should, shouldNot, may}, strength):
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
	case what == "field" && !strings.Contains(r.Value, " "):
		return fmt.Errorf("the name and value of the field are missing")
	}
	if len(c.Polls) > 0 {
		r.Level = levelState
	}
	c.Requirements = append(c.Requirements, r)
	return nil
}

// read gives each requirement its basis, from the case's table of readings.
// Every requirement has a row, and every row a requirement.
func (c *Case) read(table string) error {
	rows := map[string]Requirement{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 4 || strings.TrimSpace(cells[0]) == "requirement" {
			continue
		}
		for name := range strings.SplitSeq(cells[0], ", ") {
			clause := strings.TrimSpace(cells[2])
			rows[strings.TrimSpace(name)] = Requirement{
				Basis: strings.TrimSpace(cells[1]), Clause: strings.Trim(clause, "–"), Reading: strings.TrimSpace(cells[3]),
			}
		}
	}
	used := map[string]bool{}
	for i := range c.Requirements {
		r := &c.Requirements[i]
		row, ok := rows[r.name()]
		if !ok || !slices.Contains(bases(), row.Basis) {
			return fmt.Errorf("%q has no reading", r.name())
		}
		r.Basis, r.Clause, r.Reading, used[r.name()] = row.Basis, row.Clause, row.Reading, true
	}
	for name := range rows {
		if !used[name] {
			return fmt.Errorf("the reading of %q has no requirement", name)
		}
	}
	return nil
}
