package conformance

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// A Report is the result of testing a reader.
type Report struct {
	Version string          `json:"version"`           // the version of the suite
	Reader  string          `json:"reader"`            // the reader's name and version, as given by the tester
	Command []string        `json:"command,omitempty"` // the command that ran the reader; nil if unknown
	At      time.Time       `json:"at,omitzero"`       // when the reader was tested; zero if unknown
	Scores  map[Level]Score `json:"scores"`
	Trials  []*Trial        `json:"cases"` // the results of the cases, in their order
}

// A Score counts the requirements of a level.
type Score struct {
	Must       int `json:"must"`        // those of must and must-not that were met
	MustAll    int `json:"must_all"`    // all of must and must-not that were judged
	Should     int `json:"should"`      // those of should and should-not that were met
	ShouldAll  int `json:"should_all"`  // all of should and should-not that were judged
	Silent     int `json:"silent"`      // those that the reader did not report on; they are not counted elsewhere
	Cases      int `json:"cases"`       // the number of cases in which something was judged, and nothing failed
	CasesAll   int `json:"cases_all"`   // the number of cases in which something was judged
	CasesClean int `json:"cases_clean"` // those of Cases without a warning
}

// count counts the findings.
func (r *Report) count() {
	r.Scores = map[Level]Score{}
	for _, level := range Levels {
		var s Score
		for _, t := range r.Trials {
			var findings []Finding
			for _, f := range t.Findings {
				if f.Level == level {
					s.add(f)
					findings = append(findings, f)
				}
			}
			switch worst(findings) {
			case Passed:
				s.Cases, s.CasesAll, s.CasesClean = s.Cases+1, s.CasesAll+1, s.CasesClean+1
			case Warned:
				s.Cases, s.CasesAll = s.Cases+1, s.CasesAll+1
			case Failed:
				s.CasesAll++
			}
		}
		r.Scores[level] = s
	}
}

func (s *Score) add(f Finding) {
	strong := f.Strength == Must || f.Strength == MustNot
	switch {
	case f.Outcome == Silent:
		s.Silent++
	case strong:
		s.MustAll++
	default:
		s.ShouldAll++
	}
	switch {
	case f.Outcome != Passed:
	case strong:
		s.Must++
	default:
		s.Should++
	}
}

// Failed reports whether a must or a must-not was not met.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Trials, func(t *Trial) bool { return t.Outcome == Failed })
}

// WriteText writes the scores as a table, and then everything that failed; with
// warnings, also everything that got a warning.
func (r *Report) WriteText(w io.Writer, warnings bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "level\tcases\tmust\tshould\tnot reported")
	for _, level := range Levels {
		s := r.Scores[level]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\n", level,
			share(s.Cases, s.CasesAll), share(s.Must, s.MustAll), share(s.Should, s.ShouldAll), s.Silent)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, trial := range r.Trials {
		if trial.Outcome != Failed && (trial.Outcome != Warned || !warnings) {
			continue
		}
		fmt.Fprintf(w, "\n%s: %s\n", trial.Name, trial.Why)
		if trial.Problem != "" {
			fmt.Fprintf(w, "  %s\n", trial.Problem)
		}
		for _, f := range trial.Findings {
			if f.Outcome == Failed || f.Outcome == Warned && warnings {
				fmt.Fprintf(w, "  %s: %s\n", f.describe(), f.Message)
			}
		}
	}
	return nil
}

// describe names the requirement of a finding.
func (f Finding) describe() string {
	text := string(f.Outcome) + ": " + f.Requirement.String()
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
