package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rivo/uniseg"
)

// Columns is the width a Page is made for.
const Columns = 80

// A Page writes text for people.
type Page struct {
	W     io.Writer
	Width int   // Width is the number of columns of the terminal; 0 means there is none.
	Err   error // Err is the first error of W; nothing is written after it.
}

// NewPage returns a page written to w.
func NewPage(w io.Writer) *Page { return &Page{W: w, Width: Width(w)} }

// Line writes one line.
func (p *Page) Line(text string) {
	if p.Err == nil {
		_, p.Err = fmt.Fprintln(p.W, strings.TrimRight(text, " "))
	}
}

// Para writes text in as many lines as it takes, after a first and a further indent. A
// word too long for a line, such as a URL, stays whole.
func (p *Page) Para(first, further, text string) {
	line, n := first, uniseg.StringWidth(first)
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

// Count returns a number with its noun.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
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
