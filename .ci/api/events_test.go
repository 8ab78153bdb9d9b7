package api

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/OPERATIONS.md lists each event of the libraries with its keys, and no other: a message
// or a key that changes breaks the programs that look for it. Tests of the packages have the
// values.
func TestEvents(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	text, err := os.ReadFile("../../docs/OPERATIONS.md")
	require.NoError(t, err)
	want := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [a-z]+ \\| ([^|]+) \\|").FindAllStringSubmatch(string(text), -1) {
		want[row[1]+": "+strings.ReplaceAll(row[2], "`", "")] = false
	}
	require.Greater(t, len(want), 20)
	_, files := readLexicon(t, root)
	for _, f := range files {
		place := f.set.Position(f.syntax.Pos()).Filename
		if rel, _ := filepath.Rel(root, place); strings.HasPrefix(rel, "cmd") || strings.HasPrefix(rel, "examples") || strings.HasPrefix(rel, ".ci") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if event := eventOf(call); event != "" {
					if _, ok := want[event]; !ok {
						t.Errorf("%s: docs/OPERATIONS.md lacks the event %s", f.set.Position(n.Pos()), event)
					}
					want[event] = true
				}
			}
			return true
		})
	}
	for event, found := range want {
		require.True(t, found, "docs/OPERATIONS.md has the event %s, which no library logs", event)
	}
}

// eventOf returns the message and keys of a call that logs, if it names both.
func eventOf(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	at, ok := map[string]int{"log": 0, "LogAttrs": 2, "InfoContext": 1, "Warn": 0, "WarnContext": 1, "Error": 0, "ErrorContext": 1}[f.Sel.Name]
	of, _ := f.X.(*ast.Ident)
	ofClient := ok && of != nil && f.Sel.Name == "log" && of.Name == "c" // about a URL
	if ofClient {
		at = 2
	}
	if !ok || at+1 >= len(call.Args) || literal(call.Args[at]) == "" {
		return ""
	}
	var keys []string
	rest := call.Args[at+1:]
	if ofClient {
		keys, rest = []string{"url"}, rest[1:]
	}
	for i, arg := range rest {
		switch arg := arg.(type) {
		case *ast.CallExpr: // slog.Int("status", …)
			if len(arg.Args) > 0 && literal(arg.Args[0]) != "" {
				keys = append(keys, literal(arg.Args[0]))
			}
		case *ast.Ident:
			keys = append(keys, variables[arg.Name]...)
		default:
			if i%2 == 0 && literal(arg) != "" {
				keys = append(keys, literal(arg))
			}
		}
	}
	return literal(call.Args[at]) + ": " + strings.Join(keys, ", ")
}

// variables are the attributes that a call has in a variable.
var variables = map[string][]string{
	"attrs": {"bytes", "wire", "duration", "trailing", "error"}, "detail": {"error"}, "at": {"url"},
}

func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, _ := strconv.Unquote(lit.Value)
	return text
}
