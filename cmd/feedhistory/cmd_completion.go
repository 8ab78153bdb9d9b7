package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A completionCommand is the verb completion.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help returns the text of --help before the flags.
func (c *completionCommand) Help() string {
	return "bash: feedhistory completion bash > ~/.local/share/bash-completion/completions/feedhistory\n\n" +
		"zsh: feedhistory completion zsh > DIR/_feedhistory, where DIR is a directory of $fpath\n\n" +
		"fish: feedhistory completion fish > ~/.config/fish/completions/feedhistory.fish"
}

// Run prints the script for a shell.
func (c *completionCommand) Run(w *command.World, call *kong.Context) error {
	s := &completionScript{Writer: bufio.NewWriter(w.Stdout), Verbs: completedVerbs(call.Model.Node), Global: call.Model.Flags}
	switch c.Shell {
	case "bash":
		s.Bash()
	case "zsh":
		s.Zsh()
	default:
		s.Fish()
	}
	return s.Flush()
}

// A completedVerb has the words a shell can complete after the verb's name.
type completedVerb struct {
	Name, help string
	words      []completedWord // words to follow it, such as the parts of conformance
	feeds      bool            // whether mirrored feeds follow it
	Flags      []*kong.Flag    // the flags of the verb, of its parts, and of all verbs
}

// A completedWord is a word for a shell to complete.
type completedWord struct{ name, help string }

// completedVerbs returns the visible verbs of an application.
func completedVerbs(app *kong.Node) (verbs []completedVerb) {
	for _, node := range app.Children {
		if node.Hidden {
			continue
		}
		v := completedVerb{Name: node.Name, help: node.Help}
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
			v.words = append(v.words, completedWord{part.Name, part.Help})
			add(part.Flags)
		}
		for _, arg := range node.Positional {
			v.feeds = v.feeds || arg.Name == feedName || node.Name == "sync"
			for _, value := range enumValues(arg.Enum) {
				v.words = append(v.words, completedWord{name: value})
			}
		}
		add(app.Flags)
		verbs = append(verbs, v)
	}
	others := slices.DeleteFunc(verbWords(verbs), func(w completedWord) bool { return w.name == "help" })
	for i := range verbs {
		if verbs[i].Name == "help" {
			verbs[i].words = others
		}
	}
	return verbs
}

// verbWords returns the verbs as words.
func verbWords(verbs []completedVerb) (all []completedWord) {
	for _, v := range verbs {
		all = append(all, completedWord{v.Name, v.help})
	}
	return all
}

// feedName is the name of arguments and values that are mirrored feeds.
const feedName = "FEED"

// A namesCommand is the verb names, by which completions know the feeds.
type namesCommand struct{ database.Location }

// Run prints the address of each feed as people type it, without a secret, and its title.
func (c *namesCommand) Run(w *command.World) error {
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer store.Close()
	p := terminal.NewPage(w.Stdout)
	for f, err := range store.Feeds(w.Ctx, mirror.FeedQuery{}) {
		if err != nil {
			return c.Failure(err)
		}
		address := strings.TrimPrefix(strings.TrimPrefix(f.URL, "https://"), "http://")
		if f.Private {
			address, _, _ = strings.Cut(address, "?")
		}
		if f.Alias == "" && !strings.ContainsFunc(address, unicode.IsSpace) {
			p.Line(terminal.Clean(address) + "\t" + terminal.Clean(cmp.Or(f.Named, f.Title)))
		}
	}
	return p.Err
}

// enumValues returns the values of an enumeration.
func enumValues(enum string) (values []string) {
	for value := range strings.SplitSeq(enum, ",") {
		if value = strings.TrimSpace(value); value != "" {
			values = append(values, value)
		}
	}
	return values
}

// A completionScript is a script in the making.
type completionScript struct {
	*bufio.Writer
	Verbs  []completedVerb
	Global []*kong.Flag
}

func (s *completionScript) print(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// choices yields the flags whose values are fixed. For each flag, it yields the verb and
// the flag as they precede the value on the command line, and the possible values.
func (s *completionScript) choices() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, v := range s.Verbs {
			for _, f := range v.Flags {
				if values := enumValues(f.Enum); len(values) > 0 && !yield(v.Name+" --"+f.Name, values) {
					return
				}
			}
		}
	}
}

// feedValues returns a pattern for the flags whose values are mirrored feeds, as they
// precede the value.
func (s *completionScript) feedValues(quote string) string {
	var all []string
	for _, v := range s.Verbs {
		for _, f := range v.Flags {
			if f.PlaceHolder == feedName {
				all = append(all, quote+v.Name+" --"+f.Name+quote)
			}
		}
	}
	return strings.Join(all, "|")
}

// feedVerbs returns the verbs that mirrored feeds follow.
func (s *completionScript) feedVerbs(separator string) string {
	var all []string
	for _, v := range s.Verbs {
		if v.feeds {
			all = append(all, v.Name)
		}
	}
	return strings.Join(all, separator)
}

// wordNames joins the names of words.
func wordNames(words []completedWord) string {
	var all []string
	for _, w := range words {
		all = append(all, w.name)
	}
	return strings.Join(all, " ")
}

// flagWords returns flags as words.
func flagWords(flags []*kong.Flag) (words []completedWord) {
	for _, f := range flags {
		if !f.Hidden {
			words = append(words, completedWord{"--" + f.Name, f.Help})
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
func (s *completionScript) Bash() {
	s.print(`# bash completion of feedhistory
_feedhistory() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb= words= flags= feeds= db=() i
	COMPREPLY=()
	case $prev in =) prev=${COMP_WORDS[COMP_CWORD-2]} ;; esac # --flag=value is three words
	case $cur in =) cur= ;; esac
	for ((i = COMP_CWORD - 1; i > 0; i--)); do
		case ${COMP_WORDS[i]} in
		--db) db=("--db=${COMP_WORDS[i+1]}"); [[ ${COMP_WORDS[i+1]} == = ]] && db=("--db=${COMP_WORDS[i+2]}") ;;
		-*) ;;
		*) verb=${COMP_WORDS[i]} ;;
		esac
	done
	case "$verb $prev" in
`)
	for flag, values := range s.choices() {
		s.print("\t'%s') COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", flag, strings.Join(values, " "))
	}
	s.print("\t%s) feeds=1 ;;\n\tesac\n\tcase $verb in %s) [[ $prev == -* ]] || feeds=1 ;; esac\n", s.feedValues("'"), s.feedVerbs("|"))
	s.print("\tcase $verb in\n\t'') words='%s' flags='%s' ;;\n", wordNames(verbWords(s.Verbs)), wordNames(flagWords(s.Global)))
	for _, v := range s.Verbs {
		s.print("\t%s) words='%s' flags='%s' ;;\n", v.Name, wordNames(v.words), wordNames(flagWords(v.Flags)))
	}
	s.print(`	esac
	case $cur in
	-*) ;;
	*) [[ $feeds ]] && words=$("${COMP_WORDS[0]}" names "${db[@]}" 2>/dev/null | cut -f1) ;;
	esac
	case $cur in
	-*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
	*) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;; # none: files
	esac
}
complete -o default -F _feedhistory feedhistory
`)
}

// Zsh writes the script for zsh.
func (s *completionScript) Zsh() {
	list := func(name string, words []completedWord) {
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
	local -a words_ flags values db feeds
	local verb word flag=$words[CURRENT-1]
	word=$words[(I)--db]
	(( word )) && db=(--db=${~words[word+1]})
	[[ -n ${(M)words:#--db=*} ]] && db=(${(M)words:#--db=*})
	for word in "${(@)words[2,CURRENT-1]}"; do
		[[ $word == -* ]] || { verb=$word; break }
	done
	compset -P '--[a-z0-9-]#=' && flag=${IPREFIX%%=}
	case "$verb $flag" in
`)
	for flag, values := range s.choices() {
		s.print("\t'%s') values=(%s) ;;\n", flag, strings.Join(values, " "))
	}
	s.print("\t%s) feeds=(1) ;;\n\tesac\n\tcase $verb in %s) [[ $flag == -* && $flag != *=* ]] || feeds=(1) ;;\n", s.feedValues("'"), s.feedVerbs("|"))
	s.print("\tesac\n\tif (( $#values )); then\n\t\tcompadd -a values\n\t\treturn\n\tfi\n\tcase $verb in\n\t'')\n")
	list("words_", verbWords(s.Verbs))
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
	elif (( $#feeds )); then
		feeds=(${(f)"$($words[1] names $db 2>/dev/null)"})
		compadd -d feeds -l -- ${feeds%%%%$'\t'*}
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
func (s *completionScript) Fish() {
	s.print(`# fish completion of feedhistory
function __feedhistory_feeds
	set -l words (commandline -opc)
	set -l db (string match -- '--db=*' $words)
	if set -l i (contains -i -- --db $words)
		set db --db=$words[(math $i + 1)]
	end
	$words[1] names $db 2>/dev/null
end
`)
	offer := func(condition string, words []completedWord) {
		for _, w := range words {
			s.print("complete -c feedhistory -n '%s' -f -a %s", condition, w.name)
			if w.help != "" {
				s.print(" -d '%s'", oneLine(w.help))
			}
			s.print("\n")
		}
	}
	offer("__fish_use_subcommand", verbWords(s.Verbs))
	for _, f := range s.Global {
		s.print("complete -c feedhistory -n __fish_use_subcommand -l %s -d '%s'\n", f.Name, oneLine(f.Help))
	}
	for _, v := range s.Verbs {
		seen := "__fish_seen_subcommand_from " + v.Name
		offer(seen+"; and not __fish_seen_subcommand_from "+wordNames(v.words), v.words)
		if v.feeds {
			s.print("complete -c feedhistory -n '%s' -f -a '(__feedhistory_feeds)'\n", seen)
		}
		for _, f := range v.Flags {
			s.print("complete -c feedhistory -n '%s' -l %s", seen, f.Name)
			if f.Short != 0 {
				s.print(" -s %c", f.Short)
			}
			if values := enumValues(f.Enum); len(values) > 0 {
				s.print(" -x -a '%s'", strings.Join(values, " "))
			} else if f.PlaceHolder == feedName {
				s.print(" -x -a '(__feedhistory_feeds)'")
			} else if !f.IsBool() {
				s.print(" -r")
			}
			s.print(" -d '%s'\n", oneLine(f.Help))
		}
	}
}

// A manCommand is the verb man, which prints the manual page for packages.
type manCommand struct{}

// Run prints the page.
func (c *manCommand) Run(w *command.World, call *kong.Context) error {
	p := manualPage{
		Name: "feedhistory", Title: "everything that a feed ever published", Version: feedhistory.Version,
		Description: description, Settings: settingsHelp, DB: database.DefaultDB(),
	}
	return p.Write(w.Stdout, call.Model)
}

// A manualPage is the manual page of a command.
type manualPage struct {
	Name, Title, Version string
	Description          string
	Settings             string // about the file of settings
	DB                   string // the default database on this computer
}

// Write writes the page for the verbs and flags of an application.
func (p *manualPage) Write(w io.Writer, app *kong.Application) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, ".TH %s 1 \"\" \"%s %s\" \"User Commands\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(p.Name), p.Name, p.Version, p.Name, p.Title)
	fmt.Fprintf(out, ".SH SYNOPSIS\n.B %s\n.I VERB\n[flags] [arguments]\n.SH DESCRIPTION\n", p.Name)
	p.roffText(out, p.Description)
	fmt.Fprint(out, ".SH VERBS\n")
	for _, node := range app.Children {
		p.manVerb(out, node, "")
	}
	fmt.Fprint(out, ".SH FLAGS OF ALL VERBS\n")
	p.manFlags(out, app.Flags)
	fmt.Fprint(out, ".SH FILES\n.TP\n.I ~/.config/feedhistory/config.toml\n")
	p.roffText(out, p.Settings)
	fmt.Fprint(out, ".TP\n.I ~/.local/share/feedhistory/feeds.db\nThe mirrored feeds, unless \\-\\-db says otherwise.\n")
	return out.Flush()
}

func (p *manualPage) manVerb(out *bufio.Writer, node *kong.Node, before string) {
	if node.Hidden {
		return
	}
	fmt.Fprintf(out, ".SS feedhistory %s%s", before, p.roff(node.Name))
	for _, arg := range node.Positional {
		fmt.Fprint(out, " "+p.roff(arg.Summary()))
	}
	fmt.Fprintln(out)
	p.roffText(out, node.Help)
	p.roffText(out, node.Detail)
	for _, arg := range node.Positional {
		fmt.Fprintf(out, ".TP\n.I %s\n", p.roff(arg.Name))
		p.roffText(out, arg.Help)
	}
	p.manFlags(out, node.Flags)
	for _, part := range node.Children {
		p.manVerb(out, part, before+node.Name+" ")
	}
}

func (p *manualPage) manFlags(out *bufio.Writer, flags []*kong.Flag) {
	for _, f := range flags {
		if !f.Hidden {
			fmt.Fprintf(out, ".TP\n.B %s\n", p.roff(f.String()))
			p.roffText(out, f.Help)
		}
	}
}

// roffText writes paragraphs.
func (p *manualPage) roffText(out *bufio.Writer, text string) {
	for i, para := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			fmt.Fprintln(out, ".PP")
		}
		if para = terminal.Clean(para); para != "" {
			fmt.Fprintln(out, p.roff(para))
		}
	}
}

// roff escapes text. The page is for every computer, so roff replaces the default
// database of this computer with any user's.
func (p *manualPage) roff(text string) string {
	if p.DB != "" {
		text = strings.ReplaceAll(text, p.DB, "~/.local/share/feedhistory/feeds.db")
	}
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
