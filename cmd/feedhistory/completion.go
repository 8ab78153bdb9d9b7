package main

import (
	"bufio"

	"github.com/alecthomas/kong"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/completion"
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
	s := &completion.Script{Writer: bufio.NewWriter(w.Stdout), Verbs: completion.VerbsOf(call.Model.Node), Global: call.Model.Flags}
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
