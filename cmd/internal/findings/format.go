package findings

import (
	"bytes"
	"io"

	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// Format are the flags for findings in a form for programs.
type Format struct {
	JSON  bool `name:"json" xor:"format" help:"Print JSON Lines (one object a line): each finding."`
	SARIF bool `name:"sarif" xor:"format" help:"Print SARIF 2.1.0, for build systems."`
}

// IsForPrograms reports whether the flags ask for such a form.
func (f *Format) IsForPrograms() bool { return f.JSON || f.SARIF }

// Write writes findings in the form the flags ask for.
func (f *Format) Write(w io.Writer, found []check.Finding) error {
	var out bytes.Buffer
	if f.SARIF {
		if err := check.WriteSARIF(&out, found); err != nil {
			return err
		}
		_, err := w.Write(terminal.JSON(out.Bytes()))
		return err
	}
	for _, f := range found {
		if err := terminal.WriteJSON(&out, newLine(f)); err != nil {
			return err
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// A line is a finding in JSON Lines.
type line struct {
	Code    string `json:"code"`
	Clause  string `json:"clause"`
	Level   string `json:"level"`
	Message string `json:"message"`
	Where   string `json:"where"`
	Hint    string `json:"hint"`
}

func newLine(f check.Finding) line {
	return line{f.Code, f.Clause, f.Level.String(), f.Message, f.Where(), f.Hint}
}
