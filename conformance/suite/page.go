package suite

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"share": share}).Parse(pageText))

// A cell is the result of one reader on one case.
type cell struct {
	Reader  string
	Outcome Outcome
	Text    string
}

type row struct {
	*Trial
	Cells []cell
}

// WritePage writes reports as one HTML page, with a row for each case and a
// column for each reader, like the one of JSONTestSuite. All reports must be on
// the same cases.
func WritePage(w io.Writer, reports ...*Report) error {
	if len(reports) == 0 || slices.Contains(reports, nil) {
		return errors.New("there are no reports, or one is nil")
	}
	rows := make([]row, len(reports[0].Trials))
	for i, trial := range reports[0].Trials {
		rows[i].Trial = trial
	}
	for _, report := range reports {
		if report.Version != reports[0].Version || len(report.Trials) != len(rows) {
			return fmt.Errorf("%s and %s were not tested on the same cases", reports[0].Reader, report.Reader)
		}
		for i, trial := range report.Trials {
			if trial.Name != rows[i].Name {
				return fmt.Errorf("%s and %s were not tested on the same cases", reports[0].Reader, report.Reader)
			}
			rows[i].Cells = append(rows[i].Cells, cell{report.Reader, trial.Outcome, trial.text()})
		}
	}
	return pageTemplate.Execute(w, map[string]any{
		"Version": reports[0].Version, "Strengths": strengths, "Reports": reports, "Rows": rows, "Levels": levels, "Bases": bases(),
	})
}

// text returns the faults of a case, one per line.
func (t *Trial) text() string {
	text, matters := t.Problem, []string{}
	for _, f := range t.Assessments {
		if f.Outcome == Failed || f.Outcome == Warned {
			text += "\n" + f.describe() + ": " + f.Message
			if why := f.matters(); !slices.Contains(matters, why) {
				matters = append(matters, why)
			}
		}
	}
	return strings.TrimSpace(text + "\n" + strings.Join(matters, " "))
}

// matters returns why a failed requirement matters to the reader's user, or to the
// publisher.
func (r Requirement) matters() string {
	switch forbidden := r.Strength == mustNot || r.Strength == shouldNot; {
	case r.What == "entry" && !forbidden:
		return "The user never sees this entry."
	case r.What == "entry":
		return "The user sees an entry that is no longer part of the feed."
	case r.What == "version":
		return "The user sees an outdated or damaged entry."
	case r.What == "once":
		return "The user sees the same entry twice."
	case r.What == "other":
		return "The user sees an entry that nobody published, and misses the real one."
	case r.What == "gap", r.What == "deleted", r.What == "verdict" && !forbidden:
		return "The user is not told exactly what is missing."
	case r.What == "verdict", r.What == "whole-without":
		return "The user is told that nothing is missing, although something is."
	case r.What == "requests":
		return "A broken feed keeps the reader and the server busy."
	}
	return "The publisher pays for requests that bring nothing, and may block the reader."
}

// WriteBadge writes the results of a report as JSON for an endpoint badge of
// shields.io: how many of the cases with requirements of an RFC are passed.
func WriteBadge(w io.Writer, report *Report) error {
	if report == nil {
		return errors.New("conformance: WriteBadge: the Report is nil")
	}
	score := report.Bases[basisRFC]
	badge := struct {
		Schema  int    `json:"schemaVersion"`
		Label   string `json:"label"`
		Message string `json:"message"`
		Color   string `json:"color"`
	}{1, "RFC 5005", share(score.Cases, score.CasesAll) + " cases", "red"}
	switch {
	case report.Runs == report.Errors:
		badge.Message = "does not run"
	case score.Cases == score.CasesAll:
		badge.Color = "brightgreen"
	case score.Cases*10 >= score.CasesAll*9:
		badge.Color = "green"
	case score.Cases*2 >= score.CasesAll:
		badge.Color = "yellow"
	}
	return json.NewEncoder(w).Encode(badge)
}
