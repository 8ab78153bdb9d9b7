// Package completion writes the scripts with which shells complete verbs and flags.
package completion

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A verb has the words a shell can complete after the verb's name.
type verb struct {
	Name, help string
	words      []word       // words to follow it, such as the parts of conformance
	Flags      []*kong.Flag // the flags of the verb, of its parts, and of all verbs
}

// A word is a word for a shell to complete.
type word struct{ name, help string }

// VerbsOf returns the visible verbs of an application.
func VerbsOf(app *kong.Node) (verbs []verb) {
	for _, node := range app.Children {
		if node.Hidden {
			continue
		}
		v := verb{Name: node.Name, help: node.Help}
		seen := map[string]bool{}
		add := func(flags []*kong.Flag) {
			for _, f := range flags {
				if !f.Hidden && !seen[f.Name] {
					seen[f.Name] = true
					v.Flags = append(v.Flags, f)
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
		if verbs[i].Name == "help" {
			verbs[i].words = others
		}
	}
	return verbs
}

// words returns the verbs as words.
func words(verbs []verb) (all []word) {
	for _, v := range verbs {
		all = append(all, word{v.Name, v.help})
	}
	return all
}

// split returns the values of an enumeration.
func split(enum string) []string {
	return slices.DeleteFunc(strings.Split(enum, ","), func(value string) bool { return value == "" })
}
