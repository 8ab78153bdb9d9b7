package completion

import (
	"bufio"
	"fmt"
	"iter"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// A Script is a script in the making.
type Script struct {
	*bufio.Writer
	Verbs  []verb
	Global []*kong.Flag
}

func (s *Script) print(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// choices yields the flags whose values are fixed. For each flag, it yields the verb and
// the flag as they precede the value on the command line, and the possible values.
func (s *Script) choices() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, v := range s.Verbs {
			for _, f := range v.Flags {
				if values := split(f.Enum); len(values) > 0 && !yield(v.Name+" --"+f.Name, values) {
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
	text, _, _ = strings.Cut(terminal.Clean(text), ". ")
	text = strings.NewReplacer("'", "’", "`", "", `\`, "", "[", "(", "]", ")", ":", " -").Replace(strings.TrimSuffix(text, "."))
	return terminal.Cut(text, terminal.Columns)
}

// Bash writes the script for bash.
func (s *Script) Bash() {
	s.print(`# bash completion of feedhistory
_feedhistory() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb= words= flags= i
	COMPREPLY=()
	case $prev in =) prev=${COMP_WORDS[COMP_CWORD-2]} ;; esac # --flag=value is three words
	case $cur in =) cur= ;; esac
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in -*) ;; *) verb=${COMP_WORDS[i]}; break ;; esac
	done
	case "$verb $prev" in
`)
	for flag, values := range s.choices() {
		s.print("\t'%s') COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", flag, strings.Join(values, " "))
	}
	s.print("\tesac\n\tcase $verb in\n\t'') words='%s' flags='%s' ;;\n", names(words(s.Verbs)), names(flagWords(s.Global)))
	for _, v := range s.Verbs {
		s.print("\t%s) words='%s' flags='%s' ;;\n", v.Name, names(v.words), names(flagWords(v.Flags)))
	}
	s.print(`	esac
	case $cur in
	-*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
	*) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;; # none: files
	esac
}
complete -o default -F _feedhistory feedhistory
`)
}

// Zsh writes the script for zsh.
func (s *Script) Zsh() {
	list := func(name string, words []word) {
		if len(words) == 0 {
			return
		}
		s.print("\t\t%s=(\n", name)
		for _, w := range words {
			s.print("\t\t\t'%s'\n", strings.TrimSuffix(w.name+":"+oneLine(w.help), ":"))
		}
		s.print("\t\t)\n")
	}
	s.print(`#compdef feedhistory
_feedhistory() {
	local -a words_ flags values
	local verb word flag=$words[CURRENT-1]
	for word in "${(@)words[2,CURRENT-1]}"; do
		[[ $word == -* ]] || { verb=$word; break }
	done
	compset -P '--[a-z0-9-]#=' && flag=${IPREFIX%%=}
	case "$verb $flag" in
`)
	for flag, values := range s.choices() {
		s.print("\t'%s') values=(%s) ;;\n", flag, strings.Join(values, " "))
	}
	s.print("\tesac\n\tif (( $#values )); then\n\t\tcompadd -a values\n\t\treturn\n\tfi\n\tcase $verb in\n\t'')\n")
	list("words_", words(s.Verbs))
	list("flags", flagWords(s.Global))
	s.print("\t\t;;\n")
	for _, v := range s.Verbs {
		s.print("\t%s)\n", v.Name)
		list("words_", v.words)
		list("flags", flagWords(v.Flags))
		s.print("\t\t;;\n")
	}
	s.print(`	esac
	if [[ $PREFIX == -* ]]; then
		_describe -o flag flags
	elif (( $#words_ )); then
		_describe word words_
	else
		_files
	fi
}
if [[ $funcstack[1] == _feedhistory ]]; then # it is loaded by the first completion
	_feedhistory "$@"
else
	compdef _feedhistory feedhistory
fi
`)
}

// Fish writes the script for fish.
func (s *Script) Fish() {
	s.print("# fish completion of feedhistory\n")
	offer := func(condition string, words []word) {
		for _, w := range words {
			s.print("complete -c feedhistory -n '%s' -f -a %s", condition, w.name)
			if w.help != "" {
				s.print(" -d '%s'", oneLine(w.help))
			}
			s.print("\n")
		}
	}
	offer("__fish_use_subcommand", words(s.Verbs))
	for _, f := range s.Global {
		s.print("complete -c feedhistory -n __fish_use_subcommand -l %s -d '%s'\n", f.Name, oneLine(f.Help))
	}
	for _, v := range s.Verbs {
		seen := "__fish_seen_subcommand_from " + v.Name
		offer(seen+"; and not __fish_seen_subcommand_from "+names(v.words), v.words)
		for _, f := range v.Flags {
			s.print("complete -c feedhistory -n '%s' -l %s", seen, f.Name)
			if f.Short != 0 {
				s.print(" -s %c", f.Short)
			}
			if values := split(f.Enum); len(values) > 0 {
				s.print(" -x -a '%s'", strings.Join(values, " "))
			} else if !f.IsBool() {
				s.print(" -r")
			}
			s.print(" -d '%s'\n", oneLine(f.Help))
		}
	}
}
