// Command feedhistory reads the history of web feeds: everything a feed ever published,
// once each, with a verdict on its completeness.
//
// Results go to standard output and everything else to standard error. The exit
// status is 0 if nothing is known to be missing, 1 after a failure, 2 after wrong
// usage, 3 if the history has gaps, and 130 after an interrupt before there was
// anything to show.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

const description = `Everything that a feed ever published, and a verdict on what is missing.

Exit status: 0: nothing is known to be missing; 1: the command failed; 2: wrong usage; 3: something is missing; 130: interrupted before there was anything to show.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second signal kills
		time.Sleep(grace)
		os.Exit(terminal.ExitInterrupted)
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the command and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var line commandLine
	out := &terminal.StdoutWriter{Writer: stdout}
	w := &command.World{
		Globals: &line.Globals, NetworkFlags: &command.NetworkFlags{}, Ctx: ctx, Stdout: out,
		Voice: terminal.Voice{Command: "feedhistory", Stderr: stderr, Silent: &line.Quiet},
	}
	w.Stdin = &terminal.StdinReader{Ctx: ctx, In: stdin, Waits: func() { w.Tell("reading from the terminal; Ctrl-D ends it") }}
	ended := -1 // the status asked for by --help or --version
	config, err := readSettings(exclusive, formats)
	if err != nil {
		return w.Misused(err, nil)
	}
	w.SetBy = config.SetBy
	parser := kong.Must(&line,
		kong.Name("feedhistory"), kong.Description(description+settingsPlace()),
		kong.Vars{
			"version": terminal.Version("feedhistory"), "agent": "feedhistory/" + feedhistory.Version, "db": database.DefaultDB(), "kinds": readers.KindNames(),
		},
		kong.Resolvers(config), kong.Writers(out, stderr), kong.Exit(func(status int) { ended = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: terminal.Columns}),
	)
	if err := checkEmpty(args); err != nil {
		return w.Misused(err, nil)
	}
	call, err := parser.Parse(terminal.AsFlags(args))
	failed := out.Failed.Load()
	switch {
	case failed != nil: // the help, or the version, could not be printed
		return w.Status(*failed, call)
	case ended >= 0:
		return ended
	case err != nil:
		if i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }); i >= 0 && otherWords[args[i]] != "" {
			err = terminal.UsageError("there is no verb " + args[i] + ": " + otherWords[args[i]])
		}
		return w.Misused(err, call)
	}
	if verb, ok := call.Selected().Target.Addr().Interface().(interface{ Network() *command.NetworkFlags }); ok {
		w.NetworkFlags = verb.Network()
		if verb, ok := verb.(interface{ LoginFlags() *command.Login }); ok {
			w.Login = verb.LoginFlags()
		}
		err := w.Prepare()
		if err == nil && w.Login != nil {
			err = w.Login.Verify()
		}
		if err != nil {
			return w.Status(err, call)
		}
	}
	return w.Status(call.Run(w), call)
}

// checkEmpty refuses empty arguments and empty values of flags, which come from scripts
// with unset variables: with --user "", the command would not log in.
func checkEmpty(args []string) error {
	for i, arg := range args {
		flag, value, ok := strings.Cut(arg, "=")
		switch {
		case arg == "--": // the rest may be a command with its own arguments
			return nil
		case arg == "" && i > 0 && strings.HasPrefix(args[i-1], "-"):
			return terminal.UsageError(args[i-1] + ": the value is empty")
		case arg == "":
			return terminal.UsageError("an argument is empty")
		case ok && value == "" && strings.HasPrefix(flag, "--"):
			return terminal.UsageError(flag + ": the value is empty")
		}
	}
	return nil
}

// A commandLine has the verbs and their flags.
type commandLine struct {
	command.Globals

	Inspect  inspectCommand  `cmd:"" help:"Show one feed document."`
	Fetch    fetchCommand    `cmd:"" help:"Fetch a feed's whole history."`
	Check    checkCommand    `cmd:"" help:"Check a feed's history for faults."`
	Publish  publishCommand  `cmd:"" help:"Publish entries as a feed with its whole history."`
	Harvest  harvestCommand  `cmd:"" help:"Print the changes in a collection since the last harvest."`
	Produce  produceCommand  `cmd:"" help:"Publish records, entities or entries for others to harvest."`
	Serve    serveCommand    `cmd:"" help:"Serve published feeds, or the history server, over HTTP."`
	Demo     demoCommand     `cmd:"" help:"Show all this on a small website of its own, without a network."`
	Sync     syncCommand     `cmd:"" help:"Mirror feeds: poll them, and keep everything they publish."`
	List     listCommand     `cmd:"" help:"List the mirrored feeds, with a verdict on each."`
	Entries  entriesCommand  `cmd:"" help:"Show the entries in the mirror."`
	Entry    entryCommand    `cmd:"" help:"Show one entry as text."`
	New      newCommand      `cmd:"" help:"Print the entries not printed before."`
	Download downloadCommand `cmd:"" help:"Download the files of mirrored entries, such as episodes."`
	Export   exportCommand   `cmd:"" help:"Write mirrored feeds as JSON Lines, Atom, OPML or in other formats."`
	Import   importCommand   `cmd:"" help:"Import the output of export --raw, or the archives of feed readers and others."`
	Move     moveCommand     `cmd:"" help:"Give a mirrored feed another address."`
	Rm       rmCommand       `cmd:"" help:"Remove feeds from the mirror."`
	Erase    eraseCommand    `cmd:"" help:"Remove entries for good, from a mirror and from published feeds."`
	DB       dbCommand       `cmd:"" name:"db" help:"Check, describe, copy or rewrite the database of the mirrored feeds."`

	Handover handoverCommand `cmd:"" help:"Hand the mirrored history over to a feed reader."`

	Completion completionCommand `cmd:"" help:"Print a script that completes verbs and flags in a shell."`
	Help       helpCommand       `cmd:"" help:"Show how to use a verb."`
	Ver        versionCommand    `cmd:"" name:"version" help:"Print the version."`
	Man        manCommand        `cmd:"" hidden:""`
	Names      namesCommand      `cmd:"" hidden:""`

	Conformance conformanceCommand `cmd:"" help:"Test readers and publishers, in any language, against RFC 5005."`
}

// The verbs help and version do the same as the flags --help and --version; see terminal.AsFlags.
type (
	helpCommand struct {
		Verb []string `arg:"" optional:"" name:"VERB" help:"The verb (default: list all verbs)."`
	}
	versionCommand struct{}
)

// otherWords lead from words people try to the verbs.
var otherWords = map[string]string{
	"add":         syncsFeeds,
	"backup":      "feedhistory db backup FILE copies the database",
	"cat":         showsEntries,
	"delete":      removesFeeds,
	"feeds":       "feedhistory list lists the feeds",
	"find":        searches,
	"get":         "feedhistory fetch URL prints a feed's history, feedhistory sync URL mirrors it",
	"grep":        searches,
	"ls":          "feedhistory list lists the feeds",
	"open":        showsEntries,
	"poll":        pollsFeeds,
	"read":        showsEntries,
	"remove":      removesFeeds,
	"search":      searches,
	"show":        showsEntries,
	"status":      "feedhistory list lists the feeds",
	"subscribe":   syncsFeeds,
	"unsubscribe": removesFeeds,
	"update":      pollsFeeds,
	"view":        showsEntries,
}

const (
	searches     = "feedhistory entries --search WORDS finds entries"
	showsEntries = "feedhistory entry ID shows an entry, feedhistory entries lists them, feedhistory list FEED shows a feed"
	syncsFeeds   = "feedhistory sync URL adds a feed, and polls it"
	pollsFeeds   = "feedhistory sync polls the feeds that are due"
	removesFeeds = "feedhistory rm FEED removes a feed, feedhistory erase ID an entry"
)

// exclusive has, for each verb, the incompatible flags and arguments. If one is on the
// command line, settings of the others have no effect.
var exclusive = map[string][][]string{
	"check":    {{"digests", "save"}, {"digests", "against"}},
	"entries":  {{"json", "enclosures", "long"}},
	"export":   {{"deleted", "raw"}},
	"fetch":    {{"json", "format"}},
	"handover": {{"user", "token-env", "token-file"}},
	"import":   {{"from", "replace"}},
	"harvest":  {{"json", "format"}, {"db", "state"}, {"db", "fetch"}},
	"list":     {{"<FEED>", "due"}, {"<FEED>", "partial"}},
	"new":      {{"json", "maildir"}},
	"publish":  {{"size", "by"}},
	"serve":    {{"<DIR>", "base"}, {"<DIR>", "name"}, {"<DIR>", "private"}, {"<DIR>", "published"}},
	"sync":     {{"all", "every"}, {"all", "<URL>"}, {"all", "opml"}},
}

// formats has, for each verb and flag, the formats with which the flag has an effect. If
// the command line asks for another format, a setting of the flag has no effect.
var formats = map[string]map[string][]string{
	"export": {"raw": {"jsonl"}, "deleted": {"jsonl", "csv"}, "status": readerFormats, "starred": readerFormats},
	"fetch":  {"raw": {"jsonl"}},
}

var readerFormats = []string{"greader", "nextcloud"}

// grace is the time for a verb to end properly after an interrupt. Polls and servers need
// less.
const grace = 30 * time.Second

const settingsHelp = "Settings in TOML. The name of a flag and its value, such as allow-private = true, hold for all verbs that have the flag; " +
	"in a table with the name of a verb, they hold for that verb. The variable FEEDHISTORY_CONFIG can name another file. " +
	"An environment variable can also set a flag, such as FEEDHISTORY_ALLOW_PRIVATE=true. " +
	"Only the command line can set --header, --user, --token-env and publish --db. " +
	"The command line has precedence over the environment, and the environment over the file."

// A configuration has the values of flags in the file of settings. Resolve also reads the
// environment.
type configuration struct {
	file    string
	all     map[string]any
	origins map[string]string // by flag: the environment variable or the file it comes from

	exclusive map[string][][]string          // by verb: the incompatible flags and arguments
	formats   map[string]map[string][]string // by verb and flag: the formats with which the flag has an effect
}

// notSettings are the flags only the command line may set. Credentials are for one
// address, so no setting may send them to every address.
var notSettings = []string{"header", "user", "token-env", "help", "version"}

// isSetting reports whether a setting may give a flag its value. A tag forbids it where
// the flag of another verb with the same name has another meaning.
func isSetting(f *kong.Flag) bool {
	return !slices.Contains(notSettings, f.Name) && !f.Tag.Has("commandline")
}

// configFile returns the name of the user's file of settings; "" if the system has no
// directory for it.
func configFile() string {
	if file, ok := os.LookupEnv("FEEDHISTORY_CONFIG"); ok {
		return file
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
			dir, err = os.UserConfigDir()
		} else if dir, err = os.UserHomeDir(); err == nil {
			dir = filepath.Join(dir, ".config")
		}
		if err != nil {
			return ""
		}
	}
	return filepath.Join(dir, "feedhistory", "config.toml")
}

// settingsPlace says in the help where settings are.
func settingsPlace() string {
	file := configFile()
	if file == "" {
		return ""
	}
	return "\n\nSettings: flags for every run, such as allow-private = true, can be in " + file + " (TOML; a table [VERB] for one verb), or in variables such as FEEDHISTORY_ALLOW_PRIVATE."
}

// readSettings reads the settings. A missing or unreadable default file has none; a file named
// by FEEDHISTORY_CONFIG must exist.
func readSettings(exclusive map[string][][]string, formats map[string]map[string][]string) (*configuration, error) {
	c := &configuration{file: configFile(), origins: map[string]string{}, exclusive: exclusive, formats: formats}
	if c.file == "" {
		return c, nil
	}
	_, named := os.LookupEnv("FEEDHISTORY_CONFIG")
	_, err := toml.DecodeFile(c.file, &c.all)
	switch parse, ok := errors.AsType[toml.ParseError](err); {
	case !named && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)): // such as for another user
		return c, nil
	case ok:
		return nil, fmt.Errorf("%s:%d: %s", c.file, parse.Position.Line, parse.Message)
	}
	return c, err
}

// Validate implements kong.Resolver. It refuses names of no flag or verb, and flags only
// the command line may set.
func (c *configuration) Validate(app *kong.Application) error {
	if len(c.all) == 0 {
		return nil
	}
	verbs := map[string][]*kong.Flag{}
	var every []*kong.Flag
	for _, v := range completedVerbs(app.Node) {
		verbs[v.Name] = v.Flags
		every = append(every, v.Flags...)
	}
	for key, value := range c.all {
		table, isTable := value.(map[string]any)
		flags, isVerb := verbs[key]
		if !isTable {
			if err := c.check(key, every); err != nil {
				return err
			}
			continue
		}
		if !isVerb {
			return fmt.Errorf("%s: there is no verb %s", c.file, key)
		}
		for key := range table {
			if err := c.check(key, flags); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *configuration) check(key string, flags []*kong.Flag) error {
	named := slices.DeleteFunc(slices.Clone(flags), func(f *kong.Flag) bool { return f.Name != key })
	switch {
	case len(named) == 0:
		return fmt.Errorf("%s: there is no flag %s", c.file, key)
	case !slices.ContainsFunc(named, isSetting):
		return fmt.Errorf("%s: %s is for the command line only", c.file, key)
	}
	return nil
}

// yields reports whether the command line contradicts a setting of the flag, which then
// has no effect.
func (c *configuration) yields(call *kong.Context, verb string, flag *kong.Flag) bool {
	return slices.ContainsFunc(call.Path, func(p *kong.Path) bool {
		name := ""
		switch {
		case p.Positional != nil:
			name = "<" + p.Positional.Name + ">"
		case p.Flag != nil && p.Flag.Name == "format" && c.formats[verb][flag.Name] != nil:
			return !slices.Contains(c.formats[verb][flag.Name], call.FlagValue(p.Flag).(string))
		case p.Flag != nil:
			name = p.Flag.Name
		}
		return slices.ContainsFunc(c.exclusive[verb], func(group []string) bool {
			return slices.Contains(group, flag.Name) && slices.Contains(group, name)
		})
	})
}

// Resolve implements kong.Resolver.
func (c *configuration) Resolve(call *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	if !isSetting(flag) || c.yields(call, parent.Node().Name, flag) {
		return nil, nil
	}
	name := "FEEDHISTORY_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
	if value, ok := os.LookupEnv(name); ok {
		c.origins[flag.Name] = name
		return value, nil
	}
	for node := parent.Node(); node != nil; node = node.Parent {
		if table, ok := c.all[node.Name].(map[string]any); ok && node.Type == kong.CommandNode {
			if value, ok := table[flag.Name]; ok {
				c.origins[flag.Name] = c.file
				return settingText(value), nil
			}
		}
	}
	if value, ok := c.all[flag.Name]; ok {
		if _, isTable := value.(map[string]any); !isTable {
			c.origins[flag.Name] = c.file
			return settingText(value), nil
		}
	}
	return nil, nil
}

// SetBy returns the environment variable or the file that has set a flag; "" for none.
func (c *configuration) SetBy(flag string) string { return c.origins[flag] }

// settingText returns a value, or a list of values, as text on the command line would give
// it.
func settingText(value any) any {
	if list, ok := value.([]any); ok {
		return slices.Clone(list)
	}
	if t, ok := value.(time.Time); ok {
		if t.Location().String() == "date-local" { // as the package toml marks a date
			return t.Format(time.DateOnly)
		}
		return t.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value)
}

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
func verbWords(verbs []completedVerb) []completedWord {
	return show.Each(verbs, func(v completedVerb) completedWord { return completedWord{v.Name, v.help} })
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
func enumValues(enum string) []string {
	return strings.FieldsFunc(enum, func(r rune) bool { return r == ',' || r == ' ' })
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
	return strings.Join(show.Each(words, func(w completedWord) string { return w.name }), " ")
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
