package suite

import (
	"fmt"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory/internal/website"
)

// An Outcome is the judgement on a requirement.
type Outcome string

// The outcomes.
const (
	Passed Outcome = "pass"
	Warned Outcome = "warn" // a should or should-not is not met
	Failed Outcome = "fail" // a must or must-not is not met
	Silent Outcome = "none" // the reader does not report on the requirement's level

	Errored Outcome = "error" // the reader's run failed, so it has met nothing
)

// An Assessment is the judgement on one requirement, with its reason.
type Assessment struct {
	Requirement
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message,omitempty"` // the fault
}

// A round is one poll of a case: a reader's report, and its requests. Its addresses are
// shortened to paths.
type round struct {
	result   *Result // nil if it reported nothing at all
	requests []website.Request
	path     func(url string) string
	ids      map[string]bool // the ids in all documents
}

// judge judges a poll of a case; the poll is 0 if the case has only one.
func (c *Case) judge(poll int, r *round) (findings []Assessment) {
	for _, required := range c.Requirements {
		if required.Poll != poll || required.Strength == may {
			continue
		}
		f := Assessment{Requirement: required, Outcome: Passed}
		holds, told, message := r.holds(required)
		forbidden := required.Strength == mustNot || required.Strength == shouldNot
		switch {
		case r.result == nil && levelOf(required.What) != levelRequests:
			f.Outcome, f.Message = Errored, "the reader reported nothing"
		case !told:
			f.Outcome = Silent
		case holds != forbidden:
		case required.Strength == should || required.Strength == shouldNot:
			f.Outcome, f.Message = Warned, message
		default:
			f.Outcome, f.Message = Failed, message
		}
		findings = append(findings, f)
	}
	return findings
}

// holds reports whether a requirement's outcome has occurred, and whether the reader
// reports on it. The message is the fault if the requirement is not met.
func (r *round) holds(q Requirement) (holds, told bool, message string) {
	switch {
	case q.What == "field":
		return r.field(q)
	case levelOf(q.What) == levelRequests:
		holds, message = r.asked(q)
		return holds, true, message
	case r.result == nil:
		return false, false, ""
	}
	switch q.What {
	case "entry":
		if r.versions(q.Of) == nil {
			return false, true, "the entry is missing"
		}
		return true, true, "the entry is there"
	case "version":
		return r.version(q)
	case "once":
		return r.once()
	case "other":
		return r.other()
	case "gap":
		holds = slices.ContainsFunc(r.result.Gaps, func(gap string) bool { return r.path(gap) == q.Of })
		return holds, r.result.Gaps != nil, fmt.Sprintf("the gaps are %q", r.result.Gaps)
	case "deleted":
		return slices.Contains(r.result.Deleted, q.Of), r.result.Deleted != nil, fmt.Sprintf("the deleted entries are %q", r.result.Deleted)
	}
	return r.verdict(q)
}

// versions returns the titles of all copies of an entry.
func (r *round) versions(id string) (titles []string) {
	for _, e := range r.result.Entries {
		if r.path(e.ID) == id {
			titles = append(titles, e.Title)
		}
	}
	return titles
}

// version reports whether the kept copy is the right one, if there is exactly
// one.
func (r *round) version(q Requirement) (holds, told bool, message string) {
	titles := r.versions(q.Of)
	if len(titles) != 1 || titles[0] == "" {
		return false, false, ""
	}
	return titles[0] == q.Value, true, fmt.Sprintf("the title is %q", titles[0])
}

func (r *round) once() (holds, told bool, message string) {
	seen := map[string]bool{}
	for _, e := range r.result.Entries {
		if seen[e.ID] {
			return false, true, e.ID + " is there more than once"
		}
		seen[e.ID] = true
	}
	return true, len(seen) > 0, ""
}

// other reports whether there is an id no document has.
func (r *round) other() (holds, told bool, message string) {
	for _, e := range r.result.Entries {
		if !r.ids[r.path(e.ID)] && !r.ids[e.ID] {
			return true, true, fmt.Sprintf("no document has the id %q", e.ID)
		}
	}
	return false, len(r.result.Entries) > 0, ""
}

// verdict judges the reader's report of gaps. A reader reporting no feed at all has
// said enough.
func (r *round) verdict(q Requirement) (holds, told bool, message string) {
	verdict := r.result.Verdict
	if r.result.Failed {
		verdict = "failed"
	}
	if verdict == "" {
		return false, false, ""
	}
	message = "the verdict is " + verdict
	if q.What == "whole-without" {
		return verdict == "whole" && r.versions(q.Of) == nil, true, message
	}
	if q.Of == "partial" && verdict == "failed" {
		return true, true, message // it says it does not have the feed
	}
	return verdict == q.Of, true, message
}

// asked judges the requests to the website.
func (r *round) asked(q Requirement) (holds bool, message string) {
	n, conditional := 0, 0
	for _, request := range r.requests {
		if request.Method != http.MethodGet {
			continue
		}
		if at := r.path(request.URL); q.What == "requests" || at == q.Of {
			n++
			if request.Header.Get("If-None-Match") != "" || request.Header.Get("If-Modified-Since") != "" {
				conditional++
			}
		}
	}
	switch q.What {
	case "conditional":
		return n == conditional, fmt.Sprintf("%d of %d requests were unconditional", n-conditional, n)
	case "requests":
		most, _ := strconv.Atoi(q.Of)
		return n <= most, fmt.Sprintf("%d requests were made", n)
	}
	most, _ := strconv.Atoi(q.Value)
	return n <= most, fmt.Sprintf("the document was requested %s", times(n))
}

// field reports whether every request for a path had a header field with a
// value. Without a request for the path there is nothing to judge.
func (r *round) field(q Requirement) (holds, told bool, message string) {
	name, value, _ := strings.Cut(q.Value, " ")
	for _, request := range r.requests {
		if request.Method != http.MethodGet || r.path(request.URL) != q.Of {
			continue
		}
		if got := strings.Join(request.Header.Values(name), ", "); !strings.Contains(got, value) {
			return false, true, fmt.Sprintf("%s was %q", name, got)
		}
		told = true
	}
	return true, told, name + " was " + value
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// idsOf returns the ids in all requirements, and in all documents of a website.
func idsOf(c *Case, site *website.Site) map[string]bool {
	ids := map[string]bool{}
	if !slices.ContainsFunc(c.Requirements, func(q Requirement) bool { return q.What == "other" }) {
		return ids // they are not needed, and some websites are large
	}
	for _, q := range c.Requirements {
		if q.What == "entry" {
			ids[q.Of] = true
		}
	}
	for _, m := range published.FindAllStringSubmatch(site.Expand(c.Source), -1) {
		ids[strings.TrimSpace(html.UnescapeString(m[1]+m[2]+m[3]))] = true
	}
	return ids
}
