package conformance

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
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
	if len(reports) == 0 {
		return fmt.Errorf("there are no reports")
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
		"Version": reports[0].Version, "Reports": reports, "Rows": rows, "Levels": Levels,
	})
}

// text returns what is wrong in a case, one problem per line.
func (t *Trial) text() string {
	text := t.Problem
	for _, f := range t.Findings {
		if f.Outcome == Failed || f.Outcome == Warned {
			text += "\n" + f.describe() + ": " + f.Message
		}
	}
	return text
}
