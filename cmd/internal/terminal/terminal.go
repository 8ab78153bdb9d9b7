// Package terminal is how a command speaks with the person at its terminal: arguments and
// the values of flags, as people type them; wrong usage and exit statuses; and text of
// unknown origin, made safe to show.
package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// Clean makes text fit for one line: white space becomes one space, and control
// characters and those that change the direction of text are removed.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return unicode.ReplacementChar
		case turns(r):
			return -1
		}
		return r // strings.Map has replaced invalid UTF-8
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// turns reports whether a character changes the direction of the text around
// it, which can make one text look like another.
func turns(r rune) bool {
	return r == 0x61c || r >= 0x200e && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// JSON escapes those characters in JSON that could control a terminal but are not
// escaped by encoding/json: DEL, C1 controls, and those that change the direction of
// text. They occur only in strings, so the value stays the same.
func JSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, drives) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if drives(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

func drives(r rune) bool { return r >= 0x7f && r <= 0x9f || turns(r) }

// Cut shortens text to a width in columns.
func Cut(s string, width int) string {
	if uniseg.StringWidth(s) <= width {
		return s
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		if used += g.Width(); used > width-1 {
			break
		}
		b.WriteString(g.Str())
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// CutStart shortens text to a width in columns by its beginning.
func CutStart(s string, width int) string {
	if uniseg.StringWidth(s) <= width {
		return s
	}
	left := uniseg.StringWidth(s)
	g := uniseg.NewGraphemes(s)
	for left > width-1 && g.Next() {
		left -= g.Width()
	}
	_, to := g.Positions()
	return "…" + s[to:]
}

// A JSONFlag is the flag --json of a verb. Its tag names a record in the help:
// `set:"record=each feed"`.
type JSONFlag struct {
	JSON bool `name:"json" xor:"json" help:"Print JSON Lines (one object a line): ${record}."`
}

// WriteJSON writes a value as a line of JSON Lines.
func WriteJSON(w io.Writer, value any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := w.Write(JSON(b.Bytes()))
	return err
}

// Password asks for a password, which the terminal does not show. It returns false if nobody
// is at a terminal, or after an interrupt.
func Password(question string) (string, bool) {
	in := int(os.Stdin.Fd())
	state, err := term.GetState(in)
	if err != nil || !term.IsTerminal(int(os.Stderr.Fd())) {
		return "", false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fmt.Fprint(os.Stderr, question)
	defer fmt.Fprintln(os.Stderr)
	answers := make(chan string, 1)
	go func() {
		if text, err := term.ReadPassword(in); err == nil {
			answers <- string(text)
		}
		stop()
	}()
	select {
	case text := <-answers:
		return text, true
	case <-ctx.Done():
		_ = term.Restore(in, state)
		select {
		case text := <-answers:
			return text, true
		default:
			return "", false
		}
	}
}

// A StdinReader reads standard input until the context ends, so one interrupt is enough
// to end a command waiting for input.
type StdinReader struct {
	Ctx   context.Context
	In    io.Reader
	Asked bool   // a question tells people the command is waiting
	Waits func() // called before the first read from a terminal

	once   sync.Once
	chunks chan chunk
	rest   []byte
	err    error
}

type chunk struct {
	data []byte
	err  error
}

// Read implements io.Reader. After the context has ended, it returns the context's error.
func (r *StdinReader) Read(p []byte) (int, error) {
	r.once.Do(r.begin)
	if len(r.rest) == 0 && r.err == nil {
		select {
		case c := <-r.chunks:
			r.rest, r.err = c.data, c.err
		case <-r.Ctx.Done():
			r.err = r.Ctx.Err()
		}
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// IsTerminal reports whether the input is a terminal.
func (r *StdinReader) IsTerminal() bool {
	f, ok := r.In.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// begin starts a goroutine for reading. A read waiting for input cannot be interrupted,
// so the goroutine may last until the process ends.
func (r *StdinReader) begin() {
	if r.IsTerminal() && !r.Asked {
		r.Waits()
	}
	r.chunks = make(chan chunk)
	go func() {
		var buffers [2][64 << 10]byte // Read takes a chunk when it has copied the one before
		for i := 0; ; i++ {
			data := buffers[i%2][:]
			n, err := r.In.Read(data)
			select {
			case r.chunks <- chunk{data[:n], err}:
			case <-r.Ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
}

// A StdoutWriter writes to standard output, and records whether anything was written. On a
// terminal it replaces all control characters but the end of a line, a tab and, if there is a
// Page on it, those of a Style.
type StdoutWriter struct {
	io.Writer
	Written atomic.Bool
	Failed  atomic.Pointer[error] // the error of the last failed write; nil if none failed

	styled atomic.Bool // a Page on it has colours: other output may quote text with a Style of its own

	mu   sync.Mutex
	rest []byte // the beginning of a character, of a style or of the end of a line
}

// Write implements io.Writer.
func (w *StdoutWriter) Write(p []byte) (n int, err error) {
	if len(p) > 0 {
		w.Written.Store(true)
	}
	if IsTerminal(w) {
		if _, err = w.Writer.Write(w.obeyed(p)); err == nil {
			n = len(p)
		}
	} else {
		n, err = w.Writer.Write(p)
	}
	if err != nil {
		w.Failed.Store(&err)
	}
	return n, err
}

// obeyed returns text a terminal may get. It keeps back an incomplete character at its end.
func (w *StdoutWriter) obeyed(p []byte) (out []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	colours := w.styled.Load()
	for w.rest = nil; len(text) > 0; {
		r, n := utf8.DecodeRune(text)
		if style, begun := styleOf(text); begun && colours {
			if style == "" {
				w.rest = text
				return out
			}
			out, text = append(out, style...), text[len(style):]
			continue
		}
		switch {
		case !utf8.FullRune(text), r == '\r' && len(text) == 1:
			w.rest = text
			return out
		case r == '\r' && text[1] == '\n', r == '\n', r == '\t':
			out = append(out, text[:n]...)
		case unicode.IsControl(r), r == utf8.RuneError:
			out = utf8.AppendRune(out, unicode.ReplacementChar)
		case !turns(r):
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

// A Style is how a word stands out on a terminal with colours.
type Style string

// The styles. No text from elsewhere has one: Clean replaces what begins them.
const (
	Good     Style = "\x1b[32m"
	Doubtful Style = "\x1b[33m"
	Bad      Style = "\x1b[31m"
	Strong   Style = "\x1b[1m"

	plain Style = "\x1b[0m" // ends the others
)

var styles = []Style{Good, Doubtful, Bad, Strong, plain}

// styleOf returns the style with which a text begins, and whether the text may be the beginning
// of one; "" and false for neither.
func styleOf(text []byte) (style Style, begun bool) {
	for _, s := range styles {
		if bytes.HasPrefix(text, []byte(s)) {
			return s, true
		}
		begun = begun || bytes.HasPrefix([]byte(s), text)
	}
	return "", begun
}

// HasColours reports whether a stream is a terminal with colours whose user wants them
// (no-color.org).
func HasColours(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && !IsDumb() && IsTerminal(w)
}

// IsTerminal reports whether the stream is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := fileOf(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

// IsDumb reports whether the terminal can only print line after line.
func IsDumb() bool { return os.Getenv("TERM") == "dumb" }

// Width returns the number of columns of a terminal; 0 if w is not one, or does not know.
func Width(w io.Writer) int {
	f, ok := fileOf(w)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func fileOf(w io.Writer) (*os.File, bool) {
	if out, ok := w.(*StdoutWriter); ok {
		w = out.Writer
	}
	f, ok := w.(*os.File)
	return f, ok
}

// A Voice prints a command's messages to people on standard error.
type Voice struct {
	Command string
	Stderr  io.Writer
	Silent  *bool // Silent is whether to print only errors and gaps.
}

// Asides returns where information goes: nowhere if Silent is set. Errors and gaps
// always go to Stderr.
func (v *Voice) Asides() io.Writer {
	if *v.Silent {
		return io.Discard
	}
	return v.Stderr
}

// Tell prints information, unless Silent is set.
func (v *Voice) Tell(message string) {
	if !*v.Silent {
		v.Say(message)
	}
}

// Say prints a message, even if Silent is set.
func (v *Voice) Say(message string) {
	fmt.Fprintln(v.Stderr, v.Command+":", Clean(message))
}

// A Bar shows on one line of a terminal how far a verb is. Its nil value shows nothing.
type Bar struct {
	Total   int           // Total is the number of steps; 0 if it is unknown.
	Waiting func() string // Waiting names the host the verb is waiting for, or returns ""; nil means there is none.

	w     io.Writer
	began time.Time
	stop  chan struct{}
	ended sync.WaitGroup

	mu    sync.Mutex
	text  string
	now   func() string // the text, if it is not text
	done  int
	shown bool
}

// redraw is the time between two drawings.
const redraw = 200 * time.Millisecond

// Start shows the bar on a terminal until End is called.
func (b *Bar) Start(w io.Writer, text string) {
	b.w, b.text, b.began, b.stop = w, text, time.Now(), make(chan struct{})
	b.draw()
	b.ended.Go(func() {
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		for {
			select {
			case <-b.stop:
				return
			case <-tick.C:
				b.draw()
			}
		}
	})
}

// locked changes a bar, if there is one.
func (b *Bar) locked(change func()) {
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		change()
	}
}

// Describe changes the text.
func (b *Bar) Describe(text string) { b.locked(func() { b.text = text }) }

// Update makes the bar ask for its text each time it is drawn.
func (b *Bar) Update(text func() string) { b.locked(func() { b.now = text }) }

// Step counts a step.
func (b *Bar) Step() { b.locked(func() { b.done++ }) }

// Clear removes the bar from its line until it is drawn again, to make room for a message.
func (b *Bar) Clear() {
	b.locked(func() {
		if b.shown {
			fmt.Fprint(b.w, "\r\x1b[K")
			b.shown = false
		}
	})
}

// End removes the bar.
func (b *Bar) End() {
	if b == nil {
		return
	}
	close(b.stop)
	b.ended.Wait()
	b.Clear()
}

func (b *Bar) draw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	width := Width(b.w)
	if width == 0 {
		width = Columns
	}
	fmt.Fprint(b.w, "\r\x1b[K"+b.line(width, time.Since(b.began)))
	b.shown = true
}

// line returns the bar for a terminal, without the last column: some terminals go to the
// next line after it.
func (b *Bar) line(width int, since time.Duration) string {
	const cells, wide = 10, 60
	text := b.text
	if b.now != nil {
		text = b.now()
	}
	if b.Waiting != nil {
		if host := b.Waiting(); host != "" {
			text = "waiting for " + host + " · " + text
		}
	}
	text += " · " + Span(since)
	if b.Total > 0 {
		part := min(b.done, b.Total) * cells / b.Total
		graph := ""
		if width >= wide {
			graph = strings.Repeat("█", part) + strings.Repeat("░", cells-part) + " "
		}
		text = fmt.Sprintf("%3d%% %s%s", min(b.done, b.Total)*100/b.Total, graph, text)
	} else {
		frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
		text = string(frames[int(since/redraw)%len(frames)]) + " " + text
	}
	return Cut(Clean(text), width-1)
}

// Columns is the width a Page is made for.
const Columns = 80

// A Page writes text for people.
type Page struct {
	W     io.Writer
	Width int   // Width is the number of columns of the terminal; 0 means there is none.
	Err   error // Err is the first error of W; nothing is written after it.

	colours bool
}

// NewPage returns a page written to w.
func NewPage(w io.Writer) *Page { return PageOn(w, w) }

// PageOn returns a page for a screen, written to w, which passes it on.
func PageOn(screen, w io.Writer) *Page {
	p := &Page{W: w, Width: Width(screen), colours: HasColours(screen)}
	if out, ok := screen.(*StdoutWriter); ok && p.colours {
		out.styled.Store(true)
	}
	return p
}

// PagedOn returns a page for a screen, written to a pager, which may show no colours.
func PagedOn(screen, w io.Writer) *Page { return &Page{W: w, Width: Width(screen)} }

// Styled returns a text in a style, where the page has colours. Clean would undo it.
func (p *Page) Styled(text string, style Style) string {
	if !p.colours || style == "" {
		return text
	}
	return string(style) + text + string(plain)
}

// Line writes one line.
func (p *Page) Line(text string) {
	if p.Err == nil {
		_, p.Err = fmt.Fprintln(p.W, strings.TrimRight(text, " "))
	}
}

// JSON writes a value as a line of JSON Lines.
func (p *Page) JSON(value any) {
	if p.Err == nil {
		p.Err = WriteJSON(p.W, value)
	}
}

// Para writes text in as many lines as it takes, after a first and a further indent. A
// word too long for a line, such as a URL, stays whole.
func (p *Page) Para(first, further, text string) {
	line, n := first, uniseg.StringWidth(unstyled(first))
	most := p.Columns()
	for i, word := range strings.Fields(Clean(text)) {
		size := uniseg.StringWidth(word)
		if i > 0 && n+1+size > most {
			p.Line(line)
			line, n = further+word, uniseg.StringWidth(further)+size
			continue
		}
		if i > 0 {
			line, n = line+" ", n+1
		}
		line, n = line+word, n+size
	}
	p.Line(line)
}

// unstyled returns text without its styles.
func unstyled(text string) string {
	for _, s := range styles {
		text = strings.ReplaceAll(text, string(s), "")
	}
	return text
}

// Fits reports whether a table of that many columns, apart from an address at the end of
// each line, fits the terminal.
func (p *Page) Fits(columns int) bool { return p.Width <= 0 || p.Width >= columns }

// Text writes lines made for a wide terminal. On a narrow one, the rows of a table become
// paragraphs, and other lines are wrapped. Columns have three spaces between them.
func (p *Page) Text(text string) {
	var table []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if columnBreak.MatchString(strings.TrimSpace(line)) {
			table = append(table, line)
			continue
		}
		p.table(table)
		table = nil
		if p.Width <= 0 || line == "" {
			p.Line(line)
			continue
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		p.Para(indent, indent, line)
	}
	p.table(table)
}

// table writes rows, of which the first has the headings.
func (p *Page) table(rows []string) {
	fits := !slices.ContainsFunc(rows, func(row string) bool { return !p.Fits(uniseg.StringWidth(row)) })
	for i, row := range rows {
		cells := columnBreak.Split(strings.TrimSpace(row), -1)
		headings := columnBreak.Split(strings.TrimSpace(rows[0]), -1)
		switch {
		case fits || len(cells) != len(headings):
			p.Line(row)
		case i > 0:
			for j := range cells[1:] {
				cells[j+1] = headings[j+1] + " " + cells[j+1]
			}
			p.Para("", "  ", cells[0]+": "+strings.Join(cells[1:], " · "))
		}
	}
}

var columnBreak = regexp.MustCompile(` {3,}`)

// Columns returns the width of paragraphs.
func (p *Page) Columns() int {
	if p.Width <= 0 {
		return Columns
	}
	return min(p.Width, Columns)
}

// Title shortens the title of an entry so a line has room for a date before it and an
// address after it. Without a terminal, it returns the whole title, because programs read
// the line.
func (p *Page) Title(title string) string {
	const others, least = 36, 16
	if p.Width <= 0 {
		return title
	}
	most := max(p.Width-others, least)
	title = Cut(title, most)
	return title + strings.Repeat(" ", max(most-uniseg.StringWidth(title), 0))
}

// Field writes a label and its value; nothing if there is no value.
func (p *Page) Field(label, value string) {
	if value != "" {
		p.Para(fmt.Sprintf("  %-9s ", label), strings.Repeat(" ", 12), value)
	}
}

// Command prints a labelled value ending in a command, on one line, so people can copy it.
// Without a value, it prints nothing.
func (p *Page) Command(label, value string) {
	if value != "" {
		p.Line(fmt.Sprintf("  %-9s %s", label, Clean(value)))
	}
}

// Count returns a number with its noun.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// A Part is a number of things, with their name for any number.
type Part struct {
	N    int
	Says string
}

// Counts returns text, and after it the parts that are not empty: "3 new · 2 deleted".
func Counts(text string, parts ...Part) string {
	return strings.Join(append([]string{text}, Texts(parts...)...), " · ")
}

// Texts returns the parts that are not empty: "3 new".
func Texts(parts ...Part) (texts []string) {
	for _, part := range parts {
		if part.N > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", part.N, part.Says))
		}
	}
	return texts
}

// Span returns a length of time: rounded, in the largest unit it fills.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		size, most time.Duration
		name       string
	}{{time.Second, time.Minute, "s"}, {time.Minute, time.Hour, "m"}, {time.Hour, day, "h"}, {day, 365 * day, "d"}} {
		if rounded := max(d, 0).Round(unit.size); rounded < unit.most {
			return fmt.Sprintf("%d%s", rounded/unit.size, unit.name)
		}
	}
	const year = 365 * day
	return fmt.Sprintf("%dy", d.Round(year)/year)
}

// Until returns when a time comes.
func Until(t, now time.Time) string {
	if !t.After(now) {
		return "now"
	}
	return "in " + Span(t.Sub(now))
}

// Time returns a time to the second, in UTC; "" for the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// PagerFlags are the flags of verbs that may show much text.
type PagerFlags struct {
	NoPager bool `help:"Do not use a pager, which is the program that PAGER names (default: less, if it is installed)."`
}

// A Pager shows the text written to it, page by page.
type Pager struct {
	io.Writer
	cmd  *exec.Cmd      // the pager program; nil if there is none
	pipe io.WriteCloser // the program's standard input
	gone bool           // the user has left the program
}

// Pager returns the user's pager if standard output is a terminal, else a mere writer to
// standard output.
func (f *PagerFlags) Pager(stdout io.Writer) *Pager {
	plain := &Pager{Writer: stdout}
	name, set := os.LookupEnv("PAGER")
	if !set {
		name = "less"
	}
	if out, ok := stdout.(*StdoutWriter); f.NoPager || IsDumb() || strings.TrimSpace(name) == "" || name == "cat" || !ok || !IsTerminal(out) {
		return plain
	}
	words := strings.Fields(name)
	path, err := exec.LookPath(words[0])
	if err != nil {
		return plain
	}
	cmd := exec.Command(path, words[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	if _, ok := os.LookupEnv("LESS"); !ok {
		cmd.Env = append(cmd.Env, "LESS=FRX") // less ends at once if the text fits on the screen
	}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return plain
	}
	leaveInterrupts()
	if cmd.Start() != nil {
		signal.Reset(os.Interrupt)
		return plain
	}
	return &Pager{Writer: pipe, cmd: cmd, pipe: pipe}
}

// leaveInterrupts leaves interrupts to the pager: when that ends, the command ends. It comes
// before the pager's start, because the user may be quick. The pager does not inherit this:
// a signal that a program receives, unlike one it ignores, is reset in those it starts.
func leaveInterrupts() {
	signal.Ignore(os.Interrupt) // ends any other handling
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
}

// Write implements io.Writer. After the user has left the pager, it returns errPagerLeft,
// which ends the output; the command does not report this error.
func (p *Pager) Write(b []byte) (int, error) {
	if p.gone {
		return 0, errPagerLeft
	}
	n, err := p.Writer.Write(b)
	if p.cmd != nil && errors.Is(err, syscall.EPIPE) {
		p.gone = true
		return n, errPagerLeft
	}
	return n, err
}

// errPagerLeft is the error of writing to a pager after the user has left it.
var errPagerLeft = errors.New("the user has left the pager")

// Close waits until the user leaves the pager.
func (p *Pager) Close() error {
	if p.cmd == nil {
		return nil
	}
	_ = p.pipe.Close()
	_ = p.cmd.Wait() // the pager's exit status says nothing about the output
	return nil
}

// UnlessLeft returns an error unless it is errPagerLeft.
func UnlessLeft(err error) error {
	if errors.Is(err, errPagerLeft) {
		return nil
	}
	return err
}

// ListenAt listens at the address that --listen gives.
func ListenAt(address Listen) (net.Listener, error) {
	listener, err := net.Listen("tcp", string(address))
	if err == nil {
		return listener, nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if system, ok := errors.AsType[*os.SyscallError](err); ok {
		err = system.Err
	}
	text := "--listen: " + string(address) + ": " + err.Error()
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		text += "; another program listens there: give another port, or 0 for any free one"
	case errors.Is(err, syscall.EACCES):
		text += "; give a port from 1024 on"
	}
	return nil, errors.New(text)
}

// AddressOf returns where a listener can be reached from this machine.
func AddressOf(l net.Listener) string {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return l.Addr().String()
}

// ShellWord returns a word of a command as a shell has to be given it.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("/._-+:,@%=", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// serverPatience is how long answers under way may take when a server ends.
const serverPatience = 10 * time.Second

// Serve serves until the context ends; then it calls ending, and lets answers under way
// come to their end. Only then do their contexts end.
func Serve(ctx context.Context, server *http.Server, l net.Listener, ending func()) error {
	answers, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server.BaseContext = func(net.Listener) context.Context { return answers }
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ending()
	ctx, cancel := context.WithTimeout(context.Background(), serverPatience)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		end()
		return server.Close()
	}
	return nil
}
