package check

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/feedhistory/feedhistory"
)

// A Rule is the common part of all findings of one code.
type Rule struct {
	Code    string               // a word for it, such as "dead-link", which never changes
	Level   Level                // how serious it is
	Scope   Scope                // the documents needed to check it
	Profile Profile              // the profile of the rule; AtomPMH includes the rules of RFC5005
	Formats []feedhistory.Format // the formats it concerns; nil for pages of entities
	Clause  string               // the clause it is based on, such as "5005#14"; see Finding
	Summary string               // the fault
	Hint    string               // the remedy
}

// A Scope is the part of a feed needed to check a rule.
type Scope string

// The scopes.
const (
	OneDocument     Scope = "document"
	WholeChain      Scope = "chain"
	PagesOfEntities Scope = "pages"           // a chain of pages of entities
	Representations Scope = "representations" // the representations of metadata records; see Sample
	RangesOfItems   Scope = "ranges"          // the items of a collection, by ranges of their modification times
)

// Rules returns all rules in the order of RULES.md.
func Rules() []Rule { return slices.Clone(allRules()) }

// The table of all rules. 5005#14 is duty 14 of RFC 5005, atom-pmh#5 is duty 5 of Atom-PMH
// 1.0; datareplication#feed-5 and modified-range#4 are duties listed by the packages of
// these protocols. Notes of the parser whose faults XML calls fatal are errors: every strict
// parser refuses the document. The text of Modified-Range is a proposal's; a limit that cuts
// a group of equal times breaks none of its sentences.
//
//go:embed RULES.md
var rulesText string

// allRules reads the table once.
var allRules = sync.OnceValue(func() (rules []Rule) {
	for line := range strings.Lines(rulesText) {
		if strings.HasPrefix(line, "| `") {
			rules = append(rules, parseRule(line))
		}
	}
	return rules
})

var markdown = strings.NewReplacer(`\|`, "|", `\<`, "<", `\&`, "&", `\*`, "*", `\_`, "_")

// parseRule reads a row.
func parseRule(row string) Rule {
	cells := strings.Split(strings.Trim(row, "| \n"), " | ")
	for i, cell := range cells {
		cells[i] = markdown.Replace(cell)
	}
	r := Rule{
		Code: strings.Trim(cells[0], "`"), Level: Level(cells[1]), Scope: Scope(cells[2]), Clause: cells[4], Summary: cells[5], Hint: cells[6],
	}
	for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS, feedhistory.FormatJSONFeed} {
		if cells[3] == "all" || slices.Contains(strings.Split(cells[3], ", "), string(format)) {
			r.Formats = append(r.Formats, format)
		}
	}
	for prefix, profile := range map[string]Profile{"pmh-": AtomPMH, "dr-": DataReplication, "mr-": ModifiedRange} {
		if strings.HasPrefix(r.Code, prefix) {
			r.Profile = profile
		}
	}
	return r
}

// rule returns the rule of a code. There is one for every code this package uses; for a
// leniency new in the parser, it makes one.
func rule(code string) Rule {
	if r, ok := ruleIndex()[code]; ok {
		return r
	}
	return Rule{Code: code, Level: Note, Clause: "RFC 4287 §2", Formats: []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS, feedhistory.FormatJSONFeed}}
}

var ruleIndex = sync.OnceValue(func() map[string]Rule {
	index := map[string]Rule{}
	for _, r := range allRules() {
		index[r.Code] = r
	}
	return index
})
