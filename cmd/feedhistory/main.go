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
	"log"
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
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

var description = "Everything that a feed ever published, and a verdict on what is missing.\n\nExit status: " + statusList() + "."

func statusList() string {
	var list []string
	for _, s := range exitStatuses {
		list = append(list, s[0]+": "+s[1])
	}
	return strings.Join(list, "; ")
}

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
	log.SetOutput(io.Discard) // net/http writes there about connections, and servers here have loggers of their own
	var line commandLine
	w := command.NewWorld(ctx, "feedhistory", &line.Globals, stdin, stdout, stderr)
	config, err := readSettings()
	if err == nil {
		err = checkEmpty(args)
	}
	if err != nil {
		return w.Status(terminal.UsageError(err.Error()), nil)
	}
	w.SetBy, w.AllVerbs = config.SetBy, len(config.all) > 0
	call, err := w.Parse(&line, args, kong.Description(description+settingsPlace()), kong.Resolvers(config),
		kong.Vars{"db": database.DefaultDB(), "kinds": readers.KindNames()})
	if parse, wrong := errors.AsType[*kong.ParseError](err); wrong {
		given := parse.Context.Args
		i := slices.IndexFunc(given, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
		if i >= 0 && otherWords[given[i]] != "" {
			err = terminal.UsageError("there is no verb " + given[i] + ": " + otherWords[given[i]])
		}
	}
	if err == nil {
		target := call.Selected().Target.Addr().Interface()
		if verb, ok := target.(interface{ Network() *command.NetworkFlags }); ok {
			w.NetworkFlags, err = verb.Network(), verb.Network().Prepare()
		}
		if verb, ok := target.(interface{ LoginFlags() *command.Login }); ok && err == nil {
			w.Login, err = verb.LoginFlags(), verb.LoginFlags().Verify()
		}
	}
	if err == nil {
		err = call.Run(w)
	}
	return w.Status(err, call)
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

	Inspect inspectCommand `cmd:"" help:"Show one feed document."`
	Fetch   fetchCommand   `cmd:"" help:"Fetch a feed's whole history."`
	Check   checkCommand   `cmd:"" help:"Check a feed's history for faults."`
	Publish publishCommand `cmd:"" help:"Publish entries as a feed with its whole history."`
	Harvest harvestCommand `cmd:"" help:"Print the changes in a collection since the last harvest."`
	Produce produceCommand `cmd:"" help:"Publish records, entities or entries for others to harvest."`
	Serve   serveCommand   `cmd:"" help:"Serve published feeds, or the history server, over HTTP."`
	Demo    demoCommand    `cmd:"" help:"Show all this on a small website of its own, without a network."`
	Sync    syncCommand    `cmd:"" help:"Mirror feeds: poll them, and keep everything they publish."`
	List    listCommand    `cmd:"" help:"List the mirrored feeds, with a verdict on each."`
	Entries entriesCommand `cmd:"" help:"Show the entries in the mirror."`
	Entry   entryCommand   `cmd:"" help:"Show one entry as text."`
	New     newCommand     `cmd:"" help:"Print the entries not printed before."`
	Export  exportCommand  `cmd:"" help:"Write mirrored feeds as JSON Lines, Atom, OPML or in other formats."`
	Import  importCommand  `cmd:"" help:"Import the output of export --raw, or entries that feed readers and others have kept."`
	Move    moveCommand    `cmd:"" help:"Give a mirrored feed another address."`
	Rm      rmCommand      `cmd:"" help:"Remove feeds from the mirror."`
	Erase   eraseCommand   `cmd:"" help:"Remove entries for good, from a mirror and from published feeds."`
	DB      dbCommand      `cmd:"" name:"db" help:"Check, describe, copy or rewrite the database of the mirrored feeds."`

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
	"download":    "feedhistory entries --enclosures prints the addresses of files, for aria2c, wget and yt-dlp",
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
	"why":         "feedhistory list FEED says what is missing, and why",
}

const (
	searches     = "feedhistory entries --search WORDS finds entries"
	showsEntries = "feedhistory entry ID shows an entry, feedhistory entries lists them, feedhistory list FEED shows a feed"
	syncsFeeds   = "feedhistory sync URL adds a feed, and polls it"
	pollsFeeds   = "feedhistory sync polls the feeds that are due"
	removesFeeds = "feedhistory rm FEED removes a feed, feedhistory erase ID an entry"
)

// An exclusion is of flags and arguments: those in one list exclude those in the other.
type exclusion struct {
	these, others []string
	says          string // the answer to both; "" if the verb has its own
}

// exclusive has the exclusions of each verb. If one side is on the command line, settings of the
// other have no effect.
var exclusive = map[string][]exclusion{
	"check":    {{[]string{"digests"}, []string{"save", "against"}, "--digests both compares and saves: it excludes --save and --against"}},
	"entries":  {{[]string{"long"}, []string{"json", "enclosures"}, "--long is for text: it excludes --json and --enclosures"}, {[]string{"json"}, []string{"enclosures"}, ""}},
	"export":   {{[]string{"deleted"}, []string{"raw"}, "--raw includes deletions anyway"}},
	"fetch":    {{[]string{"json"}, []string{"format"}, ""}},
	"handover": {{[]string{"user"}, []string{"token-env", "token-file"}, oneLogin}, {[]string{"token-env"}, []string{"token-file"}, oneLogin}},
	"harvest": {
		{[]string{"json"}, []string{"format"}, ""},
		{[]string{"db"}, []string{"state", "fetch"}, "--db excludes --state, because a mirror records its own state, and --fetch, because it stores no records"},
	},
	"import":  {{[]string{"from"}, []string{"replace"}, "--from and --replace exclude each other: nothing is replaced"}},
	"list":    {{[]string{"<FEED>"}, []string{"due", "partial"}, "--due and --partial are for the list of all feeds"}},
	"new":     {{[]string{"json"}, []string{"maildir"}, "--json and --maildir exclude each other"}},
	"publish": {{[]string{"size"}, []string{"by"}, "--size and --by exclude each other"}},
	"serve":   {{[]string{"<DIR>"}, []string{"base", "name", "no-pictures", "private", "published", "trusted-proxy"}, "--base, --name, --no-pictures, --private, --published and --trusted-proxy are for the history server: leave out DIR"}},
	"sync": {
		{[]string{"all"}, []string{"every"}, "--all and --every exclude each other: --every polls all feeds, each when it is due"},
		{[]string{"all"}, []string{"<URL>", "opml"}, "--all is for the feeds of the database: leave out URL and --opml"},
	},
}

const oneLogin = "--token-env, --token-file and --user exclude each other"

// Validate refuses flags and arguments of the verb that exclude each other.
func (l *commandLine) Validate(call *kong.Context) error {
	if err := l.Globals.Validate(call); err != nil || call.Selected() == nil {
		return err
	}
	verb := call.Selected()
	given := func(name string) bool {
		return slices.ContainsFunc(verb.Flags, func(f *kong.Flag) bool { return f.Name == name && terminal.IsGiven(f.Value) }) ||
			slices.ContainsFunc(verb.Positional, func(p *kong.Positional) bool { return "<"+p.Name+">" == name && terminal.IsGiven(p) })
	}
	for _, e := range exclusive[verb.Name] {
		if e.says != "" && slices.ContainsFunc(e.these, given) && slices.ContainsFunc(e.others, given) {
			return errors.New(e.says)
		}
	}
	return nil
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
func readSettings() (*configuration, error) {
	c := &configuration{file: configFile(), origins: map[string]string{}}
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
	for _, v := range app.Children {
		if !v.Hidden {
			verbs[v.Name] = flagsOf(app.Node, v)
			every = append(every, verbs[v.Name]...)
		}
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
		case p.Flag != nil && p.Flag.Name == "format" && formats[verb][flag.Name] != nil:
			return !slices.Contains(formats[verb][flag.Name], call.FlagValue(p.Flag).(string))
		case p.Flag != nil:
			name = p.Flag.Name
		}
		return slices.ContainsFunc(exclusive[verb], func(e exclusion) bool {
			return slices.Contains(e.these, flag.Name) && slices.Contains(e.others, name) || slices.Contains(e.others, flag.Name) && slices.Contains(e.these, name)
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
func (c *completionCommand) Run(w *command.World) error {
	_, err := io.WriteString(w.Stdout, completions[c.Shell])
	return err
}

// completions are the scripts for the shells. They show the words printed by the verb names,
// or files if there are none.
var completions = map[string]string{
	"bash": `# bash completion of feedhistory
_feedhistory() {
	local word cur=${COMP_WORDS[COMP_CWORD]} form=%q # a word with spaces is escaped,
	COMPREPLY=()
	[[ $cur == = ]] && cur= # --flag=value is three words
	[[ $cur == [\"\']* ]] && cur=${cur:1} form=%s # unless it is quoted
	cur=${cur//\\/}
	while IFS=$'\t' read -r word _; do
		[[ $word == "$cur"* ]] && COMPREPLY+=("$(printf "$form" "$word")")
	done < <("${COMP_WORDS[0]}" names -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$cur" 2>/dev/null)
}
complete -o default -F _feedhistory feedhistory
`,
	"zsh": `#compdef feedhistory
_feedhistory() {
	local -a found
	found=(${(f)"$($words[1] names -- "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)"})
	compset -P '--[a-z0-9-]#='
	if (( $#found )); then
		found=("${(@)${(@)found//:/\\:}/$'\t'/:}")
		_describe word found
	else
		_files
	fi
}
if [[ $funcstack[1] == _feedhistory ]]; then # it is loaded by the first completion
	_feedhistory "$@"
else
	compdef _feedhistory feedhistory
fi
`,
	"fish": `# fish completion of feedhistory
function __feedhistory_names
	set -l words (commandline -opc) (commandline -ct)
	set -l flag (string match -r -- '^--[a-z0-9-]+=' $words[-1])
	set -g __feedhistory_found ($words[1] names -- $words[2..] 2>/dev/null | string replace -r -- '^' "$flag")
	test -n "$__feedhistory_found"
end
complete -c feedhistory -n __feedhistory_names -f -a '$__feedhistory_found'
`,
}

// feedName is the name of arguments and values that are mirrored feeds.
const feedName = "FEED"

// A namesCommand is the verb names, which tells the completions of all shells the words to
// come.
type namesCommand struct {
	database.Location
	Words []string `arg:"" optional:"" sep:"none" name:"WORD" help:"A command line, with the word to complete (default: none, which prints the feeds)."`
}

// Run prints the words to come next, each with its help. Of a feed, it prints the address
// as people type it, without a secret, and the title; the title comes first if it begins with
// the word that was typed.
func (c *namesCommand) Run(w *command.World, call *kong.Context) error {
	words, feeds := c.following(call.Model.Node)
	p := terminal.NewPage(w.Stdout)
	for _, word := range words {
		p.Line(word)
	}
	if !feeds {
		return p.Err
	}
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer store.Close()
	for f, err := range store.Feeds(w.Ctx, mirror.FeedQuery{}) {
		if err != nil {
			return c.Failure(err)
		}
		address := strings.TrimPrefix(strings.TrimPrefix(f.URL, "https://"), "http://")
		if f.Private {
			address, _, _ = strings.Cut(address, "?")
		}
		if f.Alias != "" {
			continue
		}
		address, title := terminal.Clean(address), terminal.Clean(cmp.Or(f.Named, f.Title))
		if typed := c.typed(); typed != "" && strings.HasPrefix(strings.ToLower(title), typed) {
			p.Line(title + "\t" + address)
		}
		if !strings.ContainsFunc(address, unicode.IsSpace) {
			p.Line(address + "\t" + title)
		}
	}
	return p.Err
}

// typed returns the word to complete, in lower case.
func (c *namesCommand) typed() string {
	if len(c.Words) == 0 {
		return ""
	}
	return strings.ToLower(c.Words[len(c.Words)-1])
}

// following returns the words to follow the command line, each with its help after a tab, and
// whether mirrored feeds can. It takes the database from there, too.
func (c *namesCommand) following(app *kong.Node) (words []string, feeds bool) {
	if len(c.Words) == 0 {
		return nil, true
	}
	current := strings.TrimPrefix(c.Words[len(c.Words)-1], "=") // bash makes three words of --flag=value
	before := slices.DeleteFunc(slices.Clone(c.Words[:len(c.Words)-1]), func(word string) bool { return word == "=" })
	if flag, _, ok := strings.Cut(current, "="); ok && strings.HasPrefix(flag, "--") {
		before, current = append(before, flag), ""
	}
	for i, word := range before {
		db, ok := strings.CutPrefix(word, "--db=")
		if word == "--db" && i+1 < len(before) {
			db, ok = before[i+1], true
		}
		if home, err := os.UserHomeDir(); ok && err == nil && strings.HasPrefix(db, "~/") { // the shell has not expanded it yet
			db = home + db[1:]
		}
		if ok {
			c.DB = db
		}
	}
	before = terminal.BehindVerb(app, before)
	verb, flags := app, app.Flags
	if i := slices.IndexFunc(before, func(word string) bool { return !strings.HasPrefix(word, "-") }); i >= 0 {
		at := slices.IndexFunc(app.Children, func(v *kong.Node) bool { return v.Name == before[i] && !v.Hidden })
		if at < 0 {
			return nil, false
		}
		verb, flags = app.Children[at], flagsOf(app, app.Children[at])
	}
	for _, f := range flags {
		if len(before) > 0 && before[len(before)-1] == "--"+f.Name && !f.IsBool() {
			return enumValues(f.Enum), f.PlaceHolder == feedName
		}
	}
	if strings.HasPrefix(current, "-") {
		for _, f := range flags {
			words = append(words, "--"+f.Name+"\t"+oneLine(f.Help))
			if f.Short != 0 {
				words = append(words, fmt.Sprintf("-%c\t%s", f.Short, oneLine(f.Help)))
			}
		}
		return words, false
	}
	parts := verb.Children
	if verb.Name == "help" {
		parts = app.Children
	}
	for _, part := range parts {
		if !part.Hidden && part != verb {
			words = append(words, part.Name+"\t"+oneLine(part.Help))
		}
	}
	for _, arg := range verb.Positional {
		words = append(words, enumValues(arg.Enum)...)
		feeds = feeds || arg.Name == feedName || verb.Name == "sync"
	}
	return words, feeds
}

// flagsOf returns the visible flags of a verb, of its parts, and of all verbs.
func flagsOf(app, verb *kong.Node) (flags []*kong.Flag) {
	for _, node := range slices.Concat([]*kong.Node{verb}, verb.Children, []*kong.Node{app}) {
		for _, f := range node.Flags {
			if !f.Hidden && !slices.ContainsFunc(flags, func(seen *kong.Flag) bool { return seen.Name == f.Name }) {
				flags = append(flags, f)
			}
		}
	}
	return flags
}

// enumValues returns the values of an enumeration.
func enumValues(enum string) []string {
	return strings.FieldsFunc(enum, func(r rune) bool { return r == ',' || r == ' ' })
}

// oneLine returns the first sentence of a help text.
func oneLine(text string) string {
	text, _, _ = strings.Cut(terminal.Clean(text), ". ")
	return terminal.Cut(strings.TrimSuffix(text, "."), terminal.Columns)
}

// A manCommand is the verb man, which prints the manual page for packages.
type manCommand struct{}

// Run prints the page.
func (c *manCommand) Run(w *command.World, call *kong.Context) error {
	out := bufio.NewWriter(w.Stdout)
	fmt.Fprintf(out, ".TH FEEDHISTORY 1 \"\" \"feedhistory %s\" \"User Commands\"\n.SH NAME\nfeedhistory \\- everything that a feed ever published\n", feedhistory.Version)
	fmt.Fprint(out, ".SH SYNOPSIS\n.B feedhistory\n.I VERB\n[flags] [arguments]\n.SH DESCRIPTION\n")
	about, _, _ := strings.Cut(description, "\n\n")
	roffText(out, about)
	roffText(out, "Results go to standard output, everything else to standard error.")
	fmt.Fprint(out, ".SH VERBS\n")
	for _, node := range call.Model.Children {
		manVerb(out, node, "")
	}
	fmt.Fprint(out, ".SH FLAGS OF ALL VERBS\n")
	manFlags(out, call.Model.Flags)
	fmt.Fprint(out, ".SH EXAMPLES\n")
	for _, e := range manExamples {
		roffText(out, e.does)
		fmt.Fprintf(out, ".PP\n.nf\n.RS\n%s\n.RE\n.fi\n.PP\n", roff(e.command))
	}
	manTable(out, "ENVIRONMENT", "B", manEnvironment)
	manTable(out, "FILES", "I", manFiles)
	manTable(out, "EXIT STATUS", "B", exitStatuses)
	return out.Flush()
}

// manExamples are the first commands of a newcomer.
var manExamples = []struct{ does, command string }{
	{"The whole history of a feed, as JSON Lines. The address may be that of a web page:", "feedhistory fetch https://example.org/ > entries.jsonl"},
	{"Mirror a feed, and the feeds of another reader; later, poll those that are due:", "feedhistory sync https://example.org/feed.atom\nfeedhistory sync --opml subscriptions.opml\nfeedhistory sync"},
	{"See what is mirrored, and what is missing of a feed:", "feedhistory list\nfeedhistory list example.org/feed.atom"},
	{"Find entries, and read one:", "feedhistory entries --since 10y --search 'storm petrel'\nfeedhistory entry 'Storm petrels'"},
	{"Read the mirror in a browser, and subscribe there to whole histories:", "feedhistory serve"},
	{"Mail what is new, from now on:", "feedhistory new --from-now --maildir ~/Maildir"},
	{"Publish entries as a feed with its whole history:", "feedhistory publish --out public --base https://example.net/ < entries.jsonl"},
	{"Check a feed with all its archives:", "feedhistory check --chain https://example.org/feed.atom"},
	{"Copy the database, remove a feed, and get it back from the copy:",
		"feedhistory db backup copy.db\nfeedhistory rm example.org/feed.atom\nfeedhistory export --raw --db copy.db example.org/feed.atom | feedhistory import"},
}

var manEnvironment = [][2]string{
	{"FEEDHISTORY_DB", "Where the mirrored feeds are, unless --db says otherwise."},
	{"FEEDHISTORY_CONFIG", "The file with the settings. If it is set and empty, there are none."},
	{"FEEDHISTORY_FLAG", "The value of a flag of that name, such as FEEDHISTORY_ALLOW_PRIVATE=true. The command line has precedence, and the environment over the file."},
	{"FEEDHISTORY_PASSWORD", "The password for --user."},
	{"FEEDHISTORY_TOKEN", "The token of the history server."},
	{"HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "The proxy, unless --proxy names another."},
	{"NETRC", "The file for --netrc, instead of ~/.netrc."},
	{"PAGER, LESS", "The program that shows long texts on a terminal (default: less)."},
	{"NO_COLOR", "If it is set and not empty, the output has no colours."},
	{"XDG_CONFIG_HOME, XDG_DATA_HOME", "Where settings and the default database are, instead of ~/.config and ~/.local/share."},
	{"TMPDIR", "Where import copies the databases of other readers."},
}

var manFiles = [][2]string{
	{"~/.config/feedhistory/config.toml", settingsHelp},
	{"~/.local/share/feedhistory/feeds.db", "The mirrored feeds, unless --db says otherwise."},
	{"~/.local/share/feedhistory/feeds.db.credentials", "The logins of private feeds, which only their owner can read."},
	{"~/.local/share/feedhistory/feeds.db.published", "The feeds that the history server republishes."},
}

// exitStatuses are the exit statuses with their meanings.
var exitStatuses = [][2]string{
	{"0", "nothing is known to be missing"},
	{"1", "the command failed"},
	{"2", "wrong usage"},
	{"3", "something is missing"},
	{"130", "interrupted before there was anything to show"},
}

// manTable writes a section of names in a font, each with its meaning.
func manTable(out *bufio.Writer, section, font string, rows [][2]string) {
	fmt.Fprintf(out, ".SH %s\n", section)
	for _, row := range rows {
		fmt.Fprintf(out, ".TP\n.%s %s\n", font, roff(row[0]))
		roffText(out, strings.ToUpper(row[1][:1])+strings.TrimSuffix(row[1][1:], ".")+".")
	}
}

func manVerb(out *bufio.Writer, node *kong.Node, before string) {
	if node.Hidden {
		return
	}
	fmt.Fprintf(out, ".SS feedhistory %s%s", before, roff(node.Name))
	for _, arg := range node.Positional {
		fmt.Fprint(out, " "+roff(arg.Summary()))
	}
	fmt.Fprintln(out)
	roffText(out, node.Help)
	roffText(out, node.Detail)
	for _, arg := range node.Positional {
		fmt.Fprintf(out, ".TP\n.I %s\n", roff(arg.Name))
		roffText(out, arg.Help)
	}
	manFlags(out, node.Flags)
	for _, part := range node.Children {
		manVerb(out, part, before+node.Name+" ")
	}
}

func manFlags(out *bufio.Writer, flags []*kong.Flag) {
	for _, f := range flags {
		if !f.Hidden {
			fmt.Fprintf(out, ".TP\n.B %s\n", roff(f.String()))
			roffText(out, f.Help)
		}
	}
}

// roffText writes paragraphs.
func roffText(out *bufio.Writer, text string) {
	for i, para := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			fmt.Fprintln(out, ".PP")
		}
		if para = terminal.Clean(para); para != "" {
			fmt.Fprintln(out, roff(para))
		}
	}
}

// roff escapes text. The page is for every computer, so roff replaces the default
// database of this computer with any user's.
func roff(text string) string {
	if db := database.DefaultDB(); db != "" {
		text = strings.ReplaceAll(text, db, "~/.local/share/feedhistory/feeds.db")
	}
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "'", `\(aq`, "…", `\[u2026]`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
