package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/feedhistory/feedhistory"
)

// A manCommand is the verb man, which prints the manual page for packages.
type manCommand struct{}

// Run prints the page.
func (c *manCommand) Run(w *world, call *kong.Context) error {
	out := bufio.NewWriter(w.stdout)
	fmt.Fprintf(out, ".TH FEEDHISTORY 1 \"\" \"feedhistory %s\" \"User Commands\"\n.SH NAME\nfeedhistory \\- everything that a feed ever published\n", feedhistory.Version)
	fmt.Fprint(out, ".SH SYNOPSIS\n.B feedhistory\n.I VERB\n[flags] [arguments]\n.SH DESCRIPTION\n")
	roffText(out, description)
	fmt.Fprint(out, ".SH VERBS\n")
	for _, node := range call.Model.Children {
		manVerb(out, node, "")
	}
	fmt.Fprint(out, ".SH FLAGS OF ALL VERBS\n")
	manFlags(out, call.Model.Flags)
	fmt.Fprint(out, ".SH FILES\n.TP\n.I ~/.config/feedhistory/config.toml\n")
	roffText(out, configHelp)
	fmt.Fprint(out, ".TP\n.I ~/.local/share/feedhistory/feeds.db\nThe mirrored feeds, unless \\-\\-db says otherwise.\n")
	return out.Flush()
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
		if para = clean(para); para != "" {
			fmt.Fprintln(out, roff(para))
		}
	}
}

// roff escapes text. The page is for every computer, so roff replaces the default
// database of this computer with that of a user in general.
func roff(text string) string {
	if file := defaultDB(); file != "" {
		text = strings.ReplaceAll(text, file, "~/.local/share/feedhistory/feeds.db")
	}
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
