package main

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

//go:generate sh -c "go run . man > feedhistory.1"
//go:generate sh -c "for shell in bash zsh fish; do go run . completion $shell > feedhistory.$shell; done"

// The verb completion.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is what --help says beyond the flags.
func (c *completionCommand) Help() string {
	return "bash: feedhistory completion bash > ~/.local/share/bash-completion/completions/feedhistory\n\n" +
		"zsh: feedhistory completion zsh > a file _feedhistory in a directory of $fpath\n\n" +
		"fish: feedhistory completion fish > ~/.config/fish/completions/feedhistory.fish"
}

// Run prints the script for a shell.
func (c *completionCommand) Run(w *world, call *kong.Context) error {
	out := bufio.NewWriter(w.stdout)
	verbs := verbsOf(call.Model.Node)
	switch c.Shell {
	case "bash":
		bashCompletion(out, verbs)
	case "zsh":
		zshCompletion(out, verbs)
	default:
		fishCompletion(out, verbs)
	}
	return out.Flush()
}

// A verb is what is completed after its name.
type verb struct {
	name, help string
	parts      []*kong.Node // such as the parts of conformance
	flags      []*kong.Flag // its own, those of its parts, and those of all verbs
}

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
			v.parts = append(v.parts, part)
			add(part.Flags)
		}
		add(app.Flags)
		verbs = append(verbs, v)
	}
	return verbs
}

// choices are the values that a flag can have; nil: any.
func choices(f *kong.Flag) []string {
	if f.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(strings.Split(f.Enum, ","), func(value string) bool { return value == "" })
}

// oneLine is a help text for a shell, in single quotes.
func oneLine(text string) string {
	text, _, _ = strings.Cut(clean(text), ". ")
	text = strings.NewReplacer("'", "’", "`", "", `\`, "", "[", "(", "]", ")", ":", " -").Replace(strings.TrimSuffix(text, "."))
	return cut(text, columns)
}

func bashCompletion(out *bufio.Writer, verbs []verb) {
	var names []string
	for _, v := range verbs {
		names = append(names, v.name)
	}
	fmt.Fprintf(out, "# bash completion of feedhistory\n_feedhistory() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"+
		"\tCOMPREPLY=()\n\tif [ \"$COMP_CWORD\" = 1 ]; then\n\t\tCOMPREPLY=($(compgen -W '%s' -- \"$cur\"))\n\t\treturn\n\tfi\n", strings.Join(names, " "))
	fmt.Fprint(out, "\tcase \"${COMP_WORDS[1]} $prev\" in\n")
	for _, v := range verbs {
		for _, f := range v.flags {
			if values := choices(f); values != nil {
				fmt.Fprintf(out, "\t'%s --%s') words='%s' ;;\n", v.name, f.Name, strings.Join(values, " "))
			}
		}
	}
	fmt.Fprint(out, "\tesac\n\tif [ -n \"$words\" ]; then\n\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase \"${COMP_WORDS[1]}\" in\n")
	for _, v := range verbs {
		var words []string
		for _, part := range v.parts {
			words = append(words, part.Name)
		}
		for _, f := range v.flags {
			words = append(words, "--"+f.Name)
		}
		if v.name == "completion" {
			words = append(words, "bash", "zsh", "fish")
		}
		fmt.Fprintf(out, "\t%s) words='%s' ;;\n", v.name, strings.Join(words, " "))
	}
	fmt.Fprint(out, "\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"+
		"\tcase \"$cur\" in -*) ;; *) COMPREPLY+=($(compgen -f -- \"$cur\")) ;; esac\n}\ncomplete -o filenames -F _feedhistory feedhistory\n")
}

func zshCompletion(out *bufio.Writer, verbs []verb) {
	fmt.Fprint(out, "#compdef feedhistory\n_feedhistory() {\n\tlocal -a verbs flags values\n\tif (( CURRENT == 2 )); then\n\t\tverbs=(\n")
	for _, v := range verbs {
		fmt.Fprintf(out, "\t\t\t'%s:%s'\n", v.name, oneLine(v.help))
	}
	fmt.Fprint(out, "\t\t)\n\t\t_describe verb verbs\n\t\treturn\n\tfi\n\tcase \"$words[2] $words[CURRENT-1]\" in\n")
	for _, v := range verbs {
		for _, f := range v.flags {
			if c := choices(f); c != nil {
				fmt.Fprintf(out, "\t'%s --%s') values=(%s) ;;\n", v.name, f.Name, strings.Join(c, " "))
			}
		}
	}
	fmt.Fprint(out, "\tesac\n\tif (( $#values )); then\n\t\tcompadd -a values\n\t\treturn\n\tfi\n\tcase $words[2] in\n")
	for _, v := range verbs {
		fmt.Fprintf(out, "\t%s)\n", v.name)
		if len(v.parts) > 0 {
			fmt.Fprint(out, "\t\tverbs=(\n")
			for _, part := range v.parts {
				fmt.Fprintf(out, "\t\t\t'%s:%s'\n", part.Name, oneLine(part.Help))
			}
			fmt.Fprint(out, "\t\t)\n")
		}
		if v.name == "completion" {
			fmt.Fprint(out, "\t\tverbs=(bash zsh fish)\n")
		}
		fmt.Fprint(out, "\t\tflags=(\n")
		for _, f := range v.flags {
			fmt.Fprintf(out, "\t\t\t'--%s:%s'\n", f.Name, oneLine(f.Help))
		}
		fmt.Fprint(out, "\t\t);;\n")
	}
	fmt.Fprint(out, "\tesac\n\tif [[ $PREFIX == -* ]]; then\n\t\t_describe -o flag flags\n\telse\n"+
		"\t\t(( $#verbs )) && _describe word verbs\n\t\t_files\n\tfi\n}\ncompdef _feedhistory feedhistory\n")
}

func fishCompletion(out *bufio.Writer, verbs []verb) {
	fmt.Fprint(out, "# fish completion of feedhistory\n")
	for _, v := range verbs {
		fmt.Fprintf(out, "complete -c feedhistory -n __fish_use_subcommand -f -a %s -d '%s'\n", v.name, oneLine(v.help))
	}
	for _, v := range verbs {
		seen := "-n '__fish_seen_subcommand_from " + v.name + "'"
		for _, part := range v.parts {
			fmt.Fprintf(out, "complete -c feedhistory %s -a %s -d '%s'\n", seen, part.Name, oneLine(part.Help))
		}
		if v.name == "completion" {
			fmt.Fprintf(out, "complete -c feedhistory %s -f -a 'bash zsh fish'\n", seen)
		}
		for _, f := range v.flags {
			fmt.Fprintf(out, "complete -c feedhistory %s -l %s", seen, f.Name)
			if f.Short != 0 {
				fmt.Fprintf(out, " -s %c", f.Short)
			}
			if values := choices(f); values != nil {
				fmt.Fprintf(out, " -x -a '%s'", strings.Join(values, " "))
			} else if !f.IsBool() {
				fmt.Fprint(out, " -r")
			}
			fmt.Fprintf(out, " -d '%s'\n", oneLine(f.Help))
		}
	}
}
