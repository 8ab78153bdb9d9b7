package main

import (
	"bufio"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A completionCommand is the verb completion.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help returns the text of --help that precedes the flags.
func (c *completionCommand) Help() string {
	return "bash: feedhistory completion bash > ~/.local/share/bash-completion/completions/feedhistory\n\n" +
		"zsh: feedhistory completion zsh > DIR/_feedhistory, where DIR is a directory of $fpath\n\n" +
		"fish: feedhistory completion fish > ~/.config/fish/completions/feedhistory.fish"
}

// Run prints the script for a shell.
func (c *completionCommand) Run(w *world, call *kong.Context) error {
	s := &completionScript{Writer: bufio.NewWriter(w.stdout), verbs: verbsOf(call.Model.Node), global: call.Model.Flags}
	switch c.Shell {
	case "bash":
		s.bash()
	case "zsh":
		s.zsh()
	default:
		s.fish()
	}
	return s.Flush()
}

// A verb has what a shell can complete after the verb's name.
type verb struct {
	name, help string
	words      []word       // words that can follow it, such as the parts of conformance
	flags      []*kong.Flag // the flags of the verb, of its parts, and of all verbs
}

// A word is a word that a shell can complete.
type word struct{ name, help string }

func verbsOf(app *kong.Node) (verbs []verb) {
	for _, node := range app.Children {
		if node.Hidden {
			continue
		}
		v := verb{name: node.Name, help: node.Help}
		seen := map[string]bool{}
		add := func(flags []*kong.Flag) {
			for _, f := range flags {
				if !f.Hidden && !seen[f.Name] {
					seen[f.Name] = true
					v.flags = append(v.flags, f)
				}
			}
		}
		add(node.Flags)
		for _, part := range node.Children {
			v.words = append(v.words, word{part.Name, part.Help})
			add(part.Flags)
		}
		for _, arg := range node.Positional {
			for _, value := range split(arg.Enum) {
				v.words = append(v.words, word{name: value})
			}
		}
		add(app.Flags)
		verbs = append(verbs, v)
	}
	others := slices.DeleteFunc(words(verbs), func(w word) bool { return w.name == "help" })
	for i := range verbs {
		if verbs[i].name == "help" {
			verbs[i].words = others
		}
	}
	return verbs
}

// words returns the verbs as words.
func words(verbs []verb) (all []word) {
	for _, v := range verbs {
		all = append(all, word{v.name, v.help})
	}
	return all
}

// split returns the values of an enumeration.
func split(enum string) []string {
	return slices.DeleteFunc(strings.Split(enum, ","), func(value string) bool { return value == "" })
}

// A completionScript is a script in the making.
type completionScript struct {
	*bufio.Writer
	verbs  []verb
	global []*kong.Flag
}

func (s *completionScript) print(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// choices yields the flags whose values are fixed. For each flag, it yields the verb and
// the flag as they precede the value on the command line, and the possible values.
func (s *completionScript) choices() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, v := range s.verbs {
			for _, f := range v.flags {
				if values := split(f.Enum); len(values) > 0 && !yield(v.name+" --"+f.Name, values) {
					return
				}
			}
		}
	}
}

// names joins the names of words.
func names(words []word) string {
	var all []string
	for _, w := range words {
		all = append(all, w.name)
	}
	return strings.Join(all, " ")
}

// flagWords returns flags as words.
func flagWords(flags []*kong.Flag) (words []word) {
	for _, f := range flags {
		if !f.Hidden {
			words = append(words, word{"--" + f.Name, f.Help})
		}
	}
	return words
}

// oneLine returns the first sentence of a help text, fit for single quotes in a script.
func oneLine(text string) string {
	text, _, _ = strings.Cut(clean(text), ". ")
	text = strings.NewReplacer("'", "’", "`", "", `\`, "", "[", "(", "]", ")", ":", " -").Replace(strings.TrimSuffix(text, "."))
	return cut(text, columns)
}
