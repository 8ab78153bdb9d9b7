package suite

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The strengths. A reader that breaks one of the first two fails; one that breaks one
// of the next two gets a warning; with the last, both outcomes are correct.
const (
	must      = "must"
	mustNot   = "must-not"
	should    = "should"
	shouldNot = "should-not"
	may       = "may"
)

// strong reports whether breaking the requirement is a failure.
func strong(strength string) bool { return strength == must || strength == mustNot }

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
