package main

import "strings"

// This file writes the scripts for the shells. Each script finds the verb, which flags
// may precede. If a flag with fixed values precedes the cursor, the script offers these
// values; for a word that begins with a hyphen, it offers flags; otherwise it offers the
// words that can follow the verb, or files.

func (s *completionScript) bash() {
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
	s.print("\tesac\n\tcase $verb in\n\t'') words='%s' flags='%s' ;;\n", names(words(s.verbs)), names(flagWords(s.global)))
	for _, v := range s.verbs {
		s.print("\t%s) words='%s' flags='%s' ;;\n", v.name, names(v.words), names(flagWords(v.flags)))
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

func (s *completionScript) zsh() {
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
	list("words_", words(s.verbs))
	list("flags", flagWords(s.global))
	s.print("\t\t;;\n")
	for _, v := range s.verbs {
		s.print("\t%s)\n", v.name)
		list("words_", v.words)
		list("flags", flagWords(v.flags))
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

func (s *completionScript) fish() {
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
	offer("__fish_use_subcommand", words(s.verbs))
	for _, f := range s.global {
		s.print("complete -c feedhistory -n __fish_use_subcommand -l %s -d '%s'\n", f.Name, oneLine(f.Help))
	}
	for _, v := range s.verbs {
		seen := "__fish_seen_subcommand_from " + v.name
		offer(seen+"; and not __fish_seen_subcommand_from "+names(v.words), v.words)
		for _, f := range v.flags {
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
