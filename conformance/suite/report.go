package suite

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A Report is the result of testing a reader.
type Report struct {
	Version string           `json:"version"`           // the version of the suite
	Reader  string           `json:"reader"`            // the reader's name and version, as given by the tester
	Command []string         `json:"command,omitempty"` // the reader's command; nil if unknown
	At      time.Time        `json:"at,omitzero"`       // when the reader was tested; zero if unknown
	Runs    int              `json:"runs"`
	Errors  int              `json:"errors"`           // number of failed runs; everything required of them counts as not met
	Stderr  string           `json:"stderr,omitempty"` // end of the standard error of the first failed run
	Scores  map[string]Score `json:"scores"`
	Bases   map[string]Score `json:"bases"` // the same requirements by their basis; Cases are those with such a requirement
	Trials  []*Trial         `json:"cases"` // the results of the cases, in their order
}

// A Score counts the requirements of a level.
type Score struct {
	Must       int `json:"must"`        // requirements of must and must-not met
	MustAll    int `json:"must_all"`    // requirements of must and must-not judged
	Should     int `json:"should"`      // requirements of should and should-not met
	ShouldAll  int `json:"should_all"`  // requirements of should and should-not judged
	Silent     int `json:"silent"`      // requirements the reader did not report on; they are not counted elsewhere
	Cases      int `json:"cases"`       // the number of cases in which something was judged, and nothing failed
	CasesAll   int `json:"cases_all"`   // the number of cases in which something was judged
	CasesClean int `json:"cases_clean"` // those of Cases without a warning
}

// count counts the runs and the findings.
func (r *Report) count() {
	r.countRuns()
	r.Scores, r.Bases = map[string]Score{}, map[string]Score{}
	for _, level := range levels {
		r.Scores[level] = r.score(func(f Assessment) bool { return f.Level == level })
	}
	for _, basis := range bases() {
		r.Bases[basis] = r.score(func(f Assessment) bool { return f.Basis == basis })
	}
}

// countRuns counts the failed runs. To exit is right where there is no feed; but a
// reader whose every run did so has read nothing.
func (r *Report) countRuns() {
	exits, problem, wasRefused := 0, "", false
	for _, t := range r.Trials {
		r.Runs, exits = r.Runs+t.runs, exits+t.refused
		for _, failure := range t.failed {
			r.Errors++
			if refused := failure.Exited && t.Problem == ""; problem == "" || wasRefused && !refused {
				problem, r.Stderr, wasRefused = failure.Reason, failure.Stderr, refused
			}
		}
	}
	if r.Errors < r.Runs {
		if r.Errors -= exits; r.Errors == 0 {
			r.Stderr = ""
		}
		return
	}
	for _, t := range r.Trials {
		if t.runs > 0 {
			t.Problem = cmp.Or(t.Problem, problem)
			errored(t.Assessments, t.Problem)
			t.Outcome = worst(t.Assessments)
		}
	}
}

// score counts the findings selected by a function.
func (r *Report) score(selects func(Assessment) bool) (s Score) {
	for _, t := range r.Trials {
		var findings []Assessment
		for _, f := range t.Assessments {
			if selects(f) {
				s.add(f)
				findings = append(findings, f)
			}
		}
		switch worst(findings) {
		case Passed:
			s.Cases, s.CasesAll, s.CasesClean = s.Cases+1, s.CasesAll+1, s.CasesClean+1
		case Warned:
			s.Cases, s.CasesAll = s.Cases+1, s.CasesAll+1
		case Failed, Errored:
			s.CasesAll++
		}
	}
	return s
}

func (s *Score) add(f Assessment) {
	all, met := &s.ShouldAll, &s.Should
	if f.Strength == must || f.Strength == mustNot {
		all, met = &s.MustAll, &s.Must
	}
	switch f.Outcome {
	case Silent:
		all = &s.Silent
	case Passed:
		*met++
	}
	*all++
}

// Failed reports whether a must or a must-not was not met, or a run failed.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Trials, func(t *Trial) bool { return t.Outcome == Failed || t.Outcome == Errored })
}

// strengths explains the strengths, for the head of every report.
const strengths = "RFC 5005 has no MUST for readers: section 6 obliges a reader only to tell the user when a feed is not complete. " +
	"So the strength of each requirement is this suite's; its basis says where it comes from. " +
	"Goals are what only this suite asks for."

// WriteText writes the scores as tables, and then every failure; with warnings, also
// every warning.
func (r *Report) WriteText(w io.Writer, warnings bool) error {
	if r.Errors > 0 {
		fmt.Fprintf(w, "failed in %d of %d runs\n", r.Errors, r.Runs)
		for line := range strings.Lines(r.Stderr) {
			fmt.Fprintf(w, "  | %s\n", strings.TrimRight(line, "\r\n"))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, strings.ReplaceAll(strengths, ". ", ".\n")+"\n")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "level\tcases\tmust\tshould\tnot reported")
	for _, level := range levels {
		fmt.Fprintf(t, "%s\t%s\n", level, r.Scores[level].columns())
	}
	fmt.Fprintln(t, "\nbasis\tcases\tmust\tshould\tnot reported")
	for _, basis := range bases() {
		fmt.Fprintf(t, "%s\t%s\n", basis, r.Bases[basis].columns())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, trial := range r.Trials {
		trial.writeText(w, warnings)
	}
	return nil
}

// columns returns the counts, separated by tabs.
func (s Score) columns() string {
	return fmt.Sprintf("%s\t%s\t%s\t%d", share(s.Cases, s.CasesAll), share(s.Must, s.MustAll), share(s.Should, s.ShouldAll), s.Silent)
}

// writeText writes the findings of a case, if it failed, or with warnings.
func (t *Trial) writeText(w io.Writer, warnings bool) {
	bad := func(o Outcome) bool { return o == Failed || o == Errored || o == Warned && warnings }
	if !bad(t.Outcome) {
		return
	}
	fmt.Fprintf(w, "\n%s: %s\n", t.Name, t.Why)
	if t.Problem != "" {
		fmt.Fprintf(w, "  %s\n", t.Problem)
	}
	for _, f := range t.Assessments {
		if bad(f.Outcome) && f.Outcome != Errored {
			fmt.Fprintf(w, "  %s: %s\n", f.describe(), f.Message)
		}
	}
}

// describe names the requirement of a finding.
func (f Assessment) describe() string {
	text := fmt.Sprintf("%s: %s (%s)", f.Outcome, f.Requirement, strings.TrimSpace(f.Basis+" "+f.Clause))
	if f.Poll > 0 {
		text = fmt.Sprintf("poll %d: %s", f.Poll, text)
	}
	return text
}

func share(n, all int) string {
	if all == 0 {
		return "–"
	}
	return fmt.Sprintf("%d/%d", n, all)
}

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
