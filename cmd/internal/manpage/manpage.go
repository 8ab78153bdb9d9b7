// Package manpage writes the manual page of a command.
package manpage

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// A Page is the manual page of a command.
type Page struct {
	Name, Title, Version string
	Description          string
	Settings             string // about the file of settings
	DB                   string // the default database on this computer
}

// Write writes the page for the verbs and flags of an application.
func (p *Page) Write(w io.Writer, app *kong.Application) error {
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

func (p *Page) manVerb(out *bufio.Writer, node *kong.Node, before string) {
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

func (p *Page) manFlags(out *bufio.Writer, flags []*kong.Flag) {
	for _, f := range flags {
		if !f.Hidden {
			fmt.Fprintf(out, ".TP\n.B %s\n", p.roff(f.String()))
			p.roffText(out, f.Help)
		}
	}
}

// roffText writes paragraphs.
func (p *Page) roffText(out *bufio.Writer, text string) {
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
func (p *Page) roff(text string) string {
	if p.DB != "" {
		text = strings.ReplaceAll(text, p.DB, "~/.local/share/feedhistory/feeds.db")
	}
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
