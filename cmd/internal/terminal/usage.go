package terminal

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/feedhistory/feedhistory"
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

// UsageText returns the message of an error, without the name of its verb, which the user has
// typed. setBy names the variable or file that has set a flag, "" for none; it may be nil.
func UsageText(err error, setBy func(flag string) string) string {
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
			return wordList(w.theirs.ReplaceAllString(text, w.ours))
		}
	}
	return text
}

// wordList writes a list of quoted words as people do.
func wordList(text string) string {
	for _, before := range []string{" is none of ", "name a verb: "} {
		if head, words, ok := strings.Cut(text, before); ok {
			words = strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(words, `"",`), `"`, ""), ",", ", ")
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

// The exit statuses.
const (
	ExitOK      = 0 // nothing is known to be missing
	ExitFailed  = 1
	ExitUsage   = 2
	ExitPartial = 3 // something is missing, and the command has said so

	ExitInterrupted = 130 // interrupted before there was anything to show
)

// ExitOf returns the exit status for a verdict. An unknown one is no better than partial.
func ExitOf(v feedhistory.Verdict) int {
	if v == feedhistory.Partial || v == feedhistory.Unknown {
		return ExitPartial
	}
	return ExitOK
}

// WorseExit returns the exit status for two outcomes.
func WorseExit(a, b int) int {
	for _, status := range []int{ExitFailed, ExitPartial, ExitInterrupted} {
		if a == status || b == status {
			return status
		}
	}
	return ExitOK
}

// A UsageError is a mistake on the command line.
type UsageError string

// Error returns the message.
func (e UsageError) Error() string { return string(e) }

// A ChoiceError is an argument that may mean several things.
type ChoiceError struct {
	Text    string
	Choices []string
}

// Error returns the text with the choices.
func (e *ChoiceError) Error() string { return e.Text + " " + strings.Join(e.Choices, ", ") }

// A StatusError ends the command with an exit status, after the command has said why.
type StatusError int

// Error returns the status as text.
func (e StatusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// An InterruptedError ends the command with the exit status for an interrupt.
type InterruptedError struct {
	Err error // Err describes the interrupted action.
}

// Error returns the message of Err.
func (e InterruptedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e InterruptedError) Unwrap() error { return e.Err }

// ErrInterrupted replaces the error of a context ended by an interrupt.
var ErrInterrupted = errors.New("interrupted")

// An OutputError is an error of writing to standard output.
type OutputError struct{ Err error }

// Error returns the message of Err.
func (e *OutputError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *OutputError) Unwrap() error { return e.Err }

// IsOutputError reports whether an error is one of writing to standard output.
func IsOutputError(err error) bool {
	_, ok := errors.AsType[*OutputError](err)
	return ok
}

// Version returns a command's name with the library's version, or its module's if it
// was installed by one; the revision, if the build knows it; and the Go version.
func Version(command string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return command + " " + describeBuild(info)
}

func describeBuild(info *debug.BuildInfo) string {
	number := info.Main.Version
	if number == "" || number == "(devel)" {
		number = "v" + feedhistory.Version
	}
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	details := cmp.Or(info.GoVersion, runtime.Version())
	if revision := settings["vcs.revision"]; revision != "" {
		revision = "revision " + revision[:min(12, len(revision))]
		if settings["vcs.modified"] == "true" {
			revision += ", modified"
		}
		details = revision + ", " + details
	}
	return fmt.Sprintf("%s (%s)", number[1:], details)
}
