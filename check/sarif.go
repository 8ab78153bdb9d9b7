package check

import (
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/feedhistory/feedhistory"
)

// The part of SARIF 2.1.0, a format for build systems, needed by findings.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string          `json:"id"`
		ShortDescription sarifText       `json:"shortDescription"`
		Help             sarifText       `json:"help"`
		Default          sarifDefault    `json:"defaultConfiguration"`
		Properties       sarifProperties `json:"properties"`
	}
	sarifDefault struct {
		Level Level `json:"level"`
	}
	sarifProperties struct {
		Clause string `json:"clause"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     Level           `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		Line   int `json:"startLine"`
		Column int `json:"startColumn"`
	}
)

// WriteSARIF writes findings as a SARIF 2.1.0 log of one run.
func WriteSARIF(w io.Writer, findings []Finding) error {
	run := sarifRun{
		ColumnKind: "unicodeCodePoints",
		Results:    []sarifResult{},
		Tool: sarifTool{sarifDriver{
			Name: "feedhistory", Version: feedhistory.Version,
			InformationURI: "https://github.com/feedhistory/feedhistory",
		}},
	}
	index := map[string]int{} // of the rules in use
	for _, f := range findings {
		if _, ok := index[f.Code]; !ok {
			index[f.Code] = len(run.Tool.Driver.Rules)
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, newSARIFRule(rule(f.Code)))
		}
		run.Results = append(run.Results, newSARIFResult(f, index[f.Code]))
	}
	if run.Tool.Driver.Rules == nil {
		run.Tool.Driver.Rules = []sarifRule{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	})
}

func newSARIFRule(r Rule) sarifRule {
	summary := cmp.Or(r.Summary, r.Code)
	return sarifRule{
		ID: r.Code, ShortDescription: sarifText{summary}, Help: sarifText{cmp.Or(r.Hint, summary)},
		Default: sarifDefault{r.Level}, Properties: sarifProperties{r.Clause},
	}
}

func newSARIFResult(f Finding, index int) sarifResult {
	message := f.Message
	if f.Hint != "" {
		message += ". Instead: " + f.Hint
	}
	result := sarifResult{RuleID: f.Code, RuleIndex: index, Level: f.Level, Message: sarifText{message}}
	if f.URL == "" {
		return result
	}
	location := sarifPhysical{Artifact: sarifArtifact{reference(f.URL)}}
	if f.Line > 0 {
		location.Region = &sarifRegion{f.Line, f.Column}
	}
	result.Locations = []sarifLocation{{location}}
	return result
}

// reference returns a URI reference for a URL or a file name.
func reference(name string) string {
	if u, err := url.Parse(name); err == nil && u.IsAbs() && strings.Contains(name, "://") {
		return u.String()
	}
	return (&url.URL{Path: filepath.ToSlash(name)}).String()
}
