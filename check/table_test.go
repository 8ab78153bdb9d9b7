package check

import (
	"strings"

	"github.com/feedhistory/feedhistory"
)

// table returns the rules as a table in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| code | level | seen in | formats | clause | what is wrong | what to write instead |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	escape := strings.NewReplacer("|", `\|`, "<", `\<`, "&", `\&`, "*", `\*`, "_", `\_`)
	for _, r := range rules {
		cells := []string{
			"`" + r.Code + "`", r.Level.String(), r.Scope.String(), formats(r.Formats), escape.Replace(r.Clause),
			escape.Replace(r.Summary), escape.Replace(r.Hint),
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

func formats(list []feedhistory.Format) string {
	if len(list) == 0 {
		return "multipart"
	}
	if len(list) == len(formatsAll) {
		return "all"
	}
	var names []string
	for _, f := range list {
		names = append(names, f.String())
	}
	return strings.Join(names, ", ")
}
