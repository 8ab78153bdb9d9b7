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

// An object is a JSON object.
type object map[string]any

// WriteSARIF writes findings as a SARIF 2.1.0 log of one run.
func WriteSARIF(w io.Writer, findings []Finding) error {
	rules, results, index := []object{}, []object{}, map[string]int{}
	for _, f := range findings {
		if _, ok := index[f.Code]; !ok {
			index[f.Code] = len(rules)
			rules = append(rules, sarifRule(rule(f.Code)))
		}
		results = append(results, sarifResult(f, index[f.Code]))
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{
			"tool": object{"driver": object{
				"name": "feedhistory", "version": feedhistory.Version,
				"informationUri": "https://github.com/feedhistory/feedhistory", "rules": rules,
			}},
			"columnKind": "unicodeCodePoints", "results": results,
		}},
	})
}

func sarifText(text string) object { return object{"text": text} }

func sarifRule(r Rule) object {
	summary := cmp.Or(r.Summary, r.Code)
	return object{
		"id": r.Code, "shortDescription": sarifText(summary), "fullDescription": sarifText(describe(r, summary)),
		"help": sarifText(cmp.Or(r.Hint, summary)), "helpUri": "https://github.com/feedhistory/feedhistory/blob/main/check/RULES.md",
		"defaultConfiguration": object{"level": r.Level}, "properties": object{"clause": r.Clause},
	}
}

// describe returns the rule in sentences: the clause, the fault and the remedy.
func describe(r Rule, summary string) string {
	text := r.Clause + ": " + summary + "."
	if r.Hint != "" {
		text += " Instead: " + r.Hint + "."
	}
	return text
}

func sarifResult(f Finding, index int) object {
	message := f.Message
	if f.Hint != "" {
		message += ". Instead: " + f.Hint
	}
	result := object{"ruleId": f.Code, "ruleIndex": index, "level": f.Level, "message": sarifText(message)}
	if f.URL != "" {
		location := object{"artifactLocation": object{"uri": reference(f.URL)}}
		if f.Line > 0 {
			location["region"] = object{"startLine": f.Line, "startColumn": f.Column}
		}
		result["locations"] = []object{{"physicalLocation": location}}
	}
	return result
}

// reference returns a URI reference for a URL or a file name.
func reference(name string) string {
	if u, err := url.Parse(name); err == nil && u.IsAbs() && strings.Contains(name, "://") {
		return u.String()
	}
	return (&url.URL{Path: filepath.ToSlash(name)}).String()
}
