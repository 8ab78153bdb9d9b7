// Package usage words the errors of the command line parser.
package usage

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// wordings are the parser's messages about a flag or an argument, and ours.
var wordings = []struct {
	theirs *regexp.Regexp
	ours   string
}{
	{regexp.MustCompile(`^(--[\w-]+): expected [\w ]+ value but got "(-\d[^"]*)" \(short flag\).*$`), `$1: $2 is negative`},
	{regexp.MustCompile(`^(--[\w-]+): expected [\w ]+ value but got "([^"]*)" \((?:short|long) flag\).*$`), `$1: if its value begins with a hyphen, write $1=$2`},
	{regexp.MustCompile(`expected [\w ]+ value but got "EOL" \(<EOL>\)$`), `the value is missing`},
	{regexp.MustCompile(`expected a valid \d+ bit u?int but got "(-?\d+)"`), `$1 is too large`},
	{regexp.MustCompile(`expected a valid \d+ bit u?int but got (".*")`), `$1 is not a whole number`},
	{regexp.MustCompile(`expected duration but got (".*?")(: time: .*)?$`), `$1 is not a time such as 500ms, 10s or 1h`},
	{regexp.MustCompile(`bool value must be true, .* but got (".*")`), `$1 is neither true nor false; without a value, the flag means true`},
	{regexp.MustCompile(`^(\S+) must be one of (.*) but got (".*")$`), `$1: $3 is none of $2`},
	{regexp.MustCompile(`^(--\S+) and (--\S+) can't be used together$`), `$1 and $2 exclude each other`},
	{regexp.MustCompile(`^missing flags: `), `give `},
	{regexp.MustCompile(`^expected one of `), `name a verb: `},
	{regexp.MustCompile(`^(?:expected|missing positional arguments) "?(.*?)"?$`), `an argument is missing: $1`},
	{regexp.MustCompile(`^unknown flag `), `there is no flag `},
}

// Text returns the message of an error, without the name of its verb, which the user has
// typed. setBy names the variable or file that has set a flag, "" for none; it may be nil.
func Text(err error, setBy func(flag string) string) string {
	text := err.Error()
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return text
	}
	text = inOurs(text, parse)
	flag, _, isFlag := strings.Cut(strings.TrimPrefix(text, "--"), ":")
	if setBy == nil || !isFlag || !strings.HasPrefix(text, "--") || setBy(flag) == "" {
		return text
	}
	return text + " (" + setBy(flag) + " sets it)"
}

func inOurs(text string, parse *kong.ParseError) string {
	selected := parse.Context.Selected()
	if selected != nil {
		_, verb, _ := strings.Cut(selected.FullPath(), " ")
		text = strings.TrimPrefix(text, verb+": ")
	}
	if selected == nil || !selected.Leaf() {
		if rest, ok := strings.CutPrefix(text, "unexpected argument "); ok {
			return "there is no verb " + rest
		}
	}
	for _, w := range wordings {
		if w.theirs.MatchString(text) {
			return list(w.theirs.ReplaceAllString(text, w.ours))
		}
	}
	return text
}

// list writes a list of quoted words as people do.
func list(text string) string {
	for _, before := range []string{" is none of ", "name a verb: "} {
		if head, words, ok := strings.Cut(text, before); ok {
			words = strings.ReplaceAll(strings.ReplaceAll(words, `"`, ""), ",", ", ")
			return head + before + strings.ReplaceAll(words, ",  ", ", ")
		}
	}
	return text
}

// AsFlags replaces the verbs help and version with the flags.
func AsFlags(args []string) []string {
	if len(args) > 0 && (args[0] == "help" || args[0] == "version") {
		return append(slices.Clone(args[1:]), "--"+args[0])
	}
	return args
}
