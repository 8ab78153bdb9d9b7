package terminal

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"
	"github.com/feedhistory/feedhistory"
	"golang.org/x/net/publicsuffix"
)

// WithoutUser removes the user and the password from a URL, for messages. From text
// other than a URL that may contain a password, it removes everything that may be one.
func WithoutUser(arg string) string {
	u, err := feedhistory.ParseURL(arg)
	switch {
	case err == nil && u.User != nil:
		u.User = nil
		return u.String()
	case err == nil && u.Opaque == "":
		return arg
	}
	scheme, rest := "", arg
	if i := strings.Index(arg, "://"); i >= 0 {
		scheme, rest = arg[:i+3], arg[i+3:]
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 || !strings.Contains(rest[:at], ":") && (scheme == "" || strings.ContainsAny(rest[:at], "/?#")) {
		return arg
	}
	return scheme + "…" + rest[at:]
}

// IsPublicHost reports whether the host of an address may be known to others than its own network.
func IsPublicHost(address string) bool {
	u, err := feedhistory.ParseURL(address)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsGlobalUnicast() && !ip.IsPrivate()
	}
	dot := strings.LastIndexByte(host, '.')
	return dot >= 0 && !slices.Contains([]string{"localhost", "local", "internal", "invalid", "test", "lan"}, host[dot+1:])
}

// SiteName returns the part common to all addresses of a site: the name registered by
// the site's owner or, if there is none, the host.
func SiteName(address string) string {
	host := feedhistory.HostOf(address)
	u, err := feedhistory.ParseURL(address)
	if err != nil {
		return host
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return host
	}
	site, err := publicsuffix.EffectiveTLDPlusOne(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
	if err != nil {
		return host
	}
	return site
}

// IsURL reports whether an argument is a URL rather than a file's name.
func IsURL(arg string) bool {
	scheme, _, ok := strings.Cut(arg, "://")
	return ok && scheme != "" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// IsWeb reports whether an address is an absolute URL of the web.
func IsWeb(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// WebAddress returns the URL people mean by example.org/feed, feed://example.org/ or pcast://example.org/; it
// returns other text unchanged. If there is no scheme, it is https, or http for this
// machine itself. For an account of the fediverse, such as @ada@example.org, it is the
// account's page, which names its feed.
func WebAddress(arg string) string {
	address := strings.TrimSpace(arg)
	if name, host, ok := account(address); ok {
		return WebAddress(host + "/@" + name)
	}
	address, isFeed := withoutFeedScheme(address)
	switch {
	case IsURL(address) && isFeed:
		return address
	case IsURL(address):
		return arg
	case isFeed || isHost(address):
		scheme := "https://"
		if host := hostOf(address); host == "localhost" || isLoopback(host) {
			scheme = "http://"
		}
		return scheme + address
	}
	return arg
}

// account returns the name and the host of an account, as in @ada@example.org or
// acct:ada@example.org.
func account(text string) (name, host string, ok bool) {
	rest, ok := strings.CutPrefix(text, "acct:")
	if !ok {
		rest, ok = strings.CutPrefix(text, "@")
	}
	name, host, found := strings.Cut(rest, "@")
	ok = ok && found && name != "" && !strings.ContainsAny(text, "/?#&% \t") && isHost(host)
	return name, host, ok
}

// IsAccount reports whether text is the address of an account, such as @ada@example.org.
func IsAccount(text string) bool {
	_, _, ok := account(strings.TrimSpace(text))
	return ok
}

// withoutFeedScheme returns an address without a scheme by which programs hand over feeds, and
// whether it had one; so has one between angle brackets.
func withoutFeedScheme(address string) (rest string, ok bool) {
	if inner, found := strings.CutPrefix(address, "<"); found && strings.HasSuffix(inner, ">") {
		address, ok = strings.TrimSpace(strings.TrimSuffix(inner, ">")), true
	}
	scheme, rest, found := strings.Cut(address, ":")
	switch strings.ToLower(scheme) {
	case "feed", "rss", "podcast", "pcast", "itpc", "itms-pcast":
		if found {
			return strings.TrimPrefix(rest, "//"), true
		}
	}
	return address, ok
}

// IsFeedAddress reports whether an address has a scheme by which programs hand over feeds.
func IsFeedAddress(address string) bool {
	_, ok := withoutFeedScheme(strings.TrimSpace(address))
	return ok
}

// isHost reports whether text begins with a host: a name below a public suffix, localhost,
// an IP address or, before a path other than a file's, any name.
func isHost(text string) bool {
	host := hostOf(text)
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	if !isName(host) {
		return false
	}
	if suffix, official := publicsuffix.PublicSuffix(host); official && suffix != host {
		return true
	}
	if !strings.Contains(text, "/") { // without a path, it may be anything
		return false
	}
	dir, _, _ := strings.Cut(text, "/") // such as nas.lan/feed and intranet/feed, unless a directory has the name
	_, err := os.Stat(dir)
	return err != nil
}

// isName reports whether text can be the name of a host.
func isName(text string) bool {
	for _, label := range strings.Split(text, ".") {
		if label == "" || strings.HasPrefix(label, "-") || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" && isASCII(label) {
			return false
		}
	}
	return true
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

// hostOf returns the host at the beginning of text, in lower case.
func hostOf(text string) string {
	host, _, _ := strings.Cut(text, "/")
	host, _, _ = strings.Cut(host, "?")
	host, _, _ = strings.Cut(host, "#")
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		if _, err := strconv.ParseUint(host[i+1:], 10, 16); err == nil {
			host = host[:i]
		}
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// SourceAddress returns the URL people mean by an argument that may also be the name of a
// file. It returns the argument itself, as a file's name, if the file exists or the name
// has no slash, unless the argument begins with feed: or its like.
func SourceAddress(arg string) string {
	if address := WebAddress(arg); address != arg {
		if _, err := os.Stat(arg); err != nil && (IsAccount(arg) || strings.Contains(arg, "/")) || IsFeedAddress(arg) {
			return address
		}
	}
	return arg
}

// CheckListed does the same as CheckURL for an address in a list, which has a scheme unless
// its host is known.
func CheckListed(address string) error {
	if !IsURL(address) && !IsFeedAddress(address) && WebAddress(address) != address {
		suffix, official := publicsuffix.PublicSuffix(hostOf(address))
		if !official || suffix == hostOf(address) {
			return UsageError(WithoutUser(address) + " is not a URL: a URL begins with https:// or http://")
		}
	}
	return CheckURL(address)
}

// CheckURL refuses URLs from which no feed can be fetched. The message does not contain a
// password.
func CheckURL(arg string) error {
	arg = WebAddress(arg)
	shown := WithoutUser(arg)
	u, err := feedhistory.ParseURL(arg)
	var why *url.Error
	switch {
	case arg == "":
		return UsageError("give a URL: it begins with https:// or http://")
	case !IsURL(arg):
		return UsageError(shown + " is not a URL: a URL begins with https:// or http://")
	case err != nil && shown != arg:
		return UsageError(shown + " is not a URL")
	case errors.As(err, &why):
		return UsageError(arg + " is not a URL: " + why.Err.Error())
	case err != nil:
		return UsageError(arg + " is not a URL: " + err.Error())
	case u.Scheme != "http" && u.Scheme != "https":
		return UsageError(fmt.Sprintf("%s: unsupported scheme %q: use https or http", shown, u.Scheme))
	case u.Hostname() == "":
		return UsageError(shown + " is not a URL: it has no host")
	case u.User != nil:
		return UsageError(shown + ": a user or password in the URL; take it out of the URL, and log in with --user")
	}
	return nil
}

// FeedName returns the URL by which the store names a feed.
func FeedName(arg string) string {
	arg, _, _ = strings.Cut(strings.TrimSpace(arg), "#")
	return WebAddress(arg)
}

// CheckTarget refuses a flag's file that cannot be written at the end, before any work is
// done: it is a directory, or in none.
func CheckTarget(flag, file string) error {
	if file == "" {
		return nil
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return UsageError(flag + ": " + file + " is a directory")
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return UsageError(flag + ": " + file + ": there is no directory " + filepath.Dir(file))
	}
	return nil
}

// A Listen is an address at which to listen: a host, which may be left out, and a port.
type Listen string

// UnmarshalText reads an address from the command line.
func (l *Listen) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return fmt.Errorf("%q is not an address such as 127.0.0.1:8005 or :8005", text)
	}
	*l = Listen(text)
	return nil
}

// A Maximum is a number of things, or "all". The zero value is not set.
type Maximum struct {
	N int // negative for "all"
}

// IsSet reports whether the command line gives the maximum.
func (m Maximum) IsSet() bool { return m.N != 0 }

// UnmarshalText reads a maximum from the command line.
func (m *Maximum) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	switch {
	case string(text) == "all":
		n = -1
	case err != nil || n < 1:
		return fmt.Errorf("%q is neither a number from 1 on nor all", text)
	}
	m.N = n
	return nil
}

// A Moment is a time on the command line: a time by RFC 3339, a date, which means midnight
// in UTC, today or yesterday, or how long ago the time was, such as 10y, 3mo, 7d or 48h.
type Moment struct{ time.Time }

// UnmarshalText reads a moment from the command line.
func (m *Moment) UnmarshalText(text []byte) (err error) {
	m.Time, err = parseMoment(string(text), time.Now())
	return err
}

// Period are the flags for entries of a period. Its tag says in the help what is chosen:
// `set:"choice=Show only entries"`.
type Period struct {
	Since Moment `placeholder:"TIME" help:"${choice} from this time on: 2003-12-13, 2003-12-13T18:30:02Z, yesterday, or how long ago, such as 48h, 7d, 3mo or 10y."`
	Until Moment `placeholder:"TIME" help:"${choice} from before this time."`
}

// Validate refuses an empty period.
func (p *Period) Validate() error {
	if !p.Until.IsZero() && !p.Since.Before(p.Until.Time) {
		return errors.New("--since must be before --until")
	}
	return nil
}

func parseMoment(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	today := now.UTC().Truncate(24 * time.Hour)
	switch strings.ToLower(text) {
	case "today":
		return today, nil
	case "yesterday":
		return today.AddDate(0, 0, -1), nil
	}
	for unit, size := range map[string]struct{ years, months, days int }{"d": {days: 1}, "w": {days: 7}, "mo": {months: 1}, "y": {years: 1}} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			if n, err := strconv.ParseUint(number, 10, 16); err == nil {
				n := -int(n)
				return now.AddDate(n*size.years, n*size.months, n*size.days), nil
			}
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2003-12-13, 2003-12-13T18:30:02Z, yesterday, 48h, 7d, 3mo or 10y", text)
}

// A Size is a number of bytes. On the command line it looks like 500, 10MB or 1.5GiB.
type Size int64

// UnmarshalText reads a size from the command line.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64 {
		return fmt.Errorf("%q is not a size such as 500kB, 10MB or 1GiB", text)
	}
	*s = Size(n)
	return nil
}

// SizeText returns a size for people, such as 16 MiB.
func SizeText(n int64) string {
	for _, unit := range []struct {
		Size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= unit.Size && n%unit.Size == 0 {
			return fmt.Sprintf("%d %s", n/unit.Size, unit.name)
		}
	}
	return Count(int(n), "byte", "bytes")
}

// RoughSize returns a size, rounded for people, such as 16.8 MB.
func RoughSize(n int64) string {
	switch {
	case n < 1e3:
		return Count(int(n), "byte", "bytes")
	case n < 1e6:
		return fmt.Sprintf("%d kB", (n+500)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// CheckLeast refuses values of flags below those in the tag `least` or not above those in
// the tag `above`, each a whole number or a length of time.
func CheckLeast(call *kong.Context) error {
	for _, p := range call.Path {
		for _, f := range p.Flags {
			if err := checkLeast(f); err != nil {
				return fmt.Errorf("--%s: %w", f.Name, err)
			}
		}
	}
	return nil
}

func checkLeast(f *kong.Flag) error {
	least, above := f.Tag.Get("least"), f.Tag.Get("above")
	if least == "" && above == "" {
		return nil
	}
	bound, err := strconv.ParseInt(least+above, 10, 64)
	what := "a number"
	if f.Target.Type() == reflect.TypeFor[time.Duration]() {
		var d time.Duration
		d, err = time.ParseDuration(least + above)
		bound, what = int64(d), "a time"
	}
	switch value := f.Target.Int(); {
	case err != nil:
		return err
	case above != "" && value <= bound:
		return errors.New("more than " + above)
	case above != "" || value >= bound:
		return nil
	case bound == 0:
		return errors.New(what + " cannot be negative")
	}
	return errors.New("at least " + least)
}

// IsGiven reports whether a flag or an argument has another value than its default.
func IsGiven(v *kong.Value) bool { return !v.Target.IsZero() && fmt.Sprint(v.Target) != v.Default }

// CheckProtocol refuses flags for other protocols than the given one: the tag `of` names theirs.
func CheckProtocol(call *kong.Context, protocol string) error {
	for _, f := range call.Selected().Flags {
		of := f.Tag.Get("of")
		if of != "" && IsGiven(f.Value) && !slices.Contains(strings.Split(of, ","), protocol) {
			return fmt.Errorf("--%s: %s has no such flag", f.Name, protocol)
		}
	}
	return nil
}

// wordings are the parser's messages about a flag or an argument, as expressions, and ours.
var wordings = [][2]string{
	{`^(--[\w-]+): expected [\w ]+ value but got "(-\d[^"]*)" \(short flag\).*$`, `$1: $2 is negative`},
	{`^(--[\w-]+): expected [\w ]+ value but got "([^"]*)" \((?:short|long) flag\).*$`, `$1: if its value begins with a hyphen, write $1=$2`},
	{`expected [\w ]+ value but got "EOL" \(<EOL>\)$`, `the value is missing`},
	{`expected a valid \d+ bit u?int but got "(-?\d+)"`, `$1 is too large`},
	{`expected a valid \d+ bit u?int but got (".*")`, `$1 is not a whole number`},
	{`expected duration but got (".*?")(: time: .*)?$`, `$1 is not a time such as 500ms, 10s or 1h`},
	{`bool value must be true, .* but got (".*")`, `$1 is neither true nor false; without a value, the flag means true`},
	{`^(\S+) must be one of (.*) but got (".*")$`, `$1: $3 is none of $2`},
	{`^(--\S+) and (--\S+) can't be used together$`, `$1 and $2 exclude each other`},
	{`^missing flags: (\S+)$`, `missing flag: $1`},
	{`^expected one of `, `name a verb: `},
	{`^(?:expected|missing positional arguments) "?(.*?)"?$`, `an argument is missing: $1`},
	{`^unknown flag `, `there is no flag `},
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
		if theirs := regexp.MustCompile(w[0]); theirs.MatchString(text) { // here, because nearly no run needs it
			return wordList(theirs.ReplaceAllString(text, w[1]))
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

// BehindVerb returns a command line with the flags before the verb behind it, as --db is often
// written. The flags of all verbs stay where they are.
func BehindVerb(app *kong.Node, args []string) []string {
	var front, moved []string
	i := 0
	for ; i < len(args) && strings.HasPrefix(args[i], "-") && args[i] != "--"; i++ {
		name, _, hasValue := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		takes, isVerbs := takesValue(app, name)
		switch {
		case !isVerbs || !strings.HasPrefix(args[i], "--"):
			front = append(front, args[i])
		case takes && !hasValue && i+1 < len(args):
			moved = append(moved, args[i], args[i+1])
			i++
		default:
			moved = append(moved, args[i])
		}
	}
	if i == len(args) {
		return front // which name no verb
	}
	if moved == nil {
		return args
	}
	for verb := app; i < len(args); i++ {
		at := slices.IndexFunc(verb.Children, func(n *kong.Node) bool { return n.Name == args[i] })
		if at < 0 && verb != app {
			break
		}
		front = append(front, args[i])
		if at < 0 { // the parser names what may be meant
			i++
			break
		}
		verb = verb.Children[at]
	}
	return slices.Concat(front, moved, args[i:])
}

// takesValue reports whether a flag of a verb takes a value, and whether there is such a flag,
// with one meaning for all verbs.
func takesValue(app *kong.Node, name string) (takes, ok bool) {
	isEach := true
	for _, verb := range app.Children {
		for _, node := range append([]*kong.Node{verb}, verb.Children...) {
			for _, f := range node.Flags {
				if f.Name != name {
					continue
				}
				isEach = isEach && (!ok || takes == !f.IsBool())
				takes, ok = !f.IsBool(), true
			}
		}
	}
	return takes, ok && isEach
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
	if v == feedhistory.VerdictPartial || v == feedhistory.VerdictUnknown {
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

// ErrInterrupted replaces the error of a context ended by an interrupt. It ends the command with
// the exit status for that.
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
