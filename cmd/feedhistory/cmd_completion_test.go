//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/stretchr/testify/require"
)

// completed has texts that are typed before Tab, each with words that the shell then
// offers, and words that it does not offer.
var completed = []struct {
	typed  string
	offers []string
	not    []string
}{
	{"feedhistory ", []string{"fetch", "conformance", "version"}, []string{"man", "--quiet"}},
	{"feedhistory ex", []string{"export"}, []string{"fetch"}},
	{"feedhistory --quiet ex", []string{"export"}, []string{"fetch"}},
	{"feedhistory help ex", []string{"export"}, []string{"fetch"}},
	{"feedhistory fetch --max-d", []string{"--max-documents", "--max-document-bytes"}, []string{"--max-bytes", "--quota"}},
	{"feedhistory --quiet fetch --max-d", []string{"--max-documents", "--max-document-bytes"}, []string{"--max-bytes"}},
	{"feedhistory fetch --format ", []string{"jsonl", "json", "atom", "rss", "csv"}, []string{"opml", "--format"}},
	{"feedhistory export --format=", []string{"jsonl", "json", "atom", "rss", "csv", "opml"}, []string{"--format"}},
	{"feedhistory export --format=n", []string{"nextcloud"}, []string{"jsonl"}},
	{"feedhistory conformance ", []string{"serve", "run", "page", "publisher"}, []string{"fetch"}},
	{"feedhistory conformance run --para", []string{"--parallel"}, []string{"--quiet"}},
	{"feedhistory completion ", []string{"bash", "zsh", "fish"}, nil},
	{"feedhistory import --from g", []string{"git"}, []string{"newsboat"}},
	{"feedhistory list --db=feeds.db ", []string{"go.example/feed.atom", "xkcd.example/atom.xml", "secret.example/rss"}, []string{"token", "https", "feed.one.atom"}},
	{"feedhistory rm --db feeds.db x", []string{"xkcd.example/atom.xml"}, []string{"go.example"}},
	{"feedhistory --db feeds.db rm x", []string{"xkcd.example/atom.xml"}, []string{"go.example"}},
	{"feedhistory erase --db feeds.db --feed g", []string{"go.example/feed.atom"}, []string{"xkcd"}},
	{"feedhistory export --db feeds.db --output fee", []string{"feed.one.atom"}, []string{"xkcd"}},
	{"feedhistory inspect feed.", []string{"feed.one.atom", "feed.two.rss"}, []string{"completion.sh"}},
}

// completionIn writes the script for a shell into a directory with a few files.
func completionIn(t *testing.T, shell, name string) (dir string) {
	dir = t.TempDir()
	store := created(t, filepath.Join(dir, "feeds.db"))
	for address, title := range map[string]string{"https://go.example/feed.atom": "", "https://xkcd.example/atom.xml": "", "https://secret.example/rss?token=abcdef123456": "", "https://log.example/a": "The Lighthouse's Log"} {
		feed := mirror.NewFeed(address)
		feed.Title = title
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
	}
	require.NoError(t, store.Close())
	for _, file := range []string{"feed.one.atom", "feed.two.rss"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(done(t, "", "completion", shell)), 0o600))
	return dir
}

// escapes matches the control sequences with which a shell draws.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;?=>]*[A-Za-z]|[=>])|\r|\x07`)

// complete types into a shell with a terminal, presses Tab, and returns the words
// that are shown from then on, once all that are to be offered are among them.
func (p *pseudoTerminal) complete(typed string, offers []string) []string {
	before := len(p.screen())
	_, err := p.pty.WriteString(typed + "\t")
	require.NoError(p.t, err)
	if len(offers) == 1 {
		offers = []string{strings.TrimPrefix(offers[0], lastWord(typed))} // the rest of the one that fits is put in
	}
	last, shown := "", ""
	require.Eventually(p.t, func() bool {
		last = shown
		_, shown, _ = strings.Cut(escapes.ReplaceAllString(p.screen()[before:], ""), typed)
		shown = strings.ReplaceAll(shown, strings.TrimSpace(typed), "") // shells show the line again
		return last == shown && !slices.ContainsFunc(offers, func(word string) bool { return !strings.Contains(shown, word) })
	}, patience, 100*time.Millisecond, "%q in %q", typed, p)
	_, err = p.pty.Write([]byte{21}) // Ctrl-U: the next one begins an empty line
	require.NoError(p.t, err)
	return strings.Fields(shown)
}

// Each shell offers what fits, as somebody types.
func TestCompletion(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	for _, shell := range []struct {
		name, script, setup string
		args                []string
	}{
		{"bash", "completion.sh", "bind 'set show-all-if-ambiguous on'; bind 'set completion-query-items 0'; bind 'set page-completions off'; source ./completion.sh",
			[]string{"--norc", "--noprofile", "-i"}},
		{"zsh", "_feedhistory", "LISTMAX=1000; setopt no_beep no_list_ambiguous; unsetopt zle_bracketed_paste; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D", []string{"-f", "-i"}},
		{"zsh", "completion.sh", "LISTMAX=1000; setopt no_beep no_list_ambiguous; autoload -Uz compinit; compinit -u -D; source ./completion.sh", []string{"-f", "-i"}},
	} {
		t.Run(shell.name+" "+shell.script, func(t *testing.T) {
			t.Parallel()
			if shell.name != "bash" {
				feedtest.Program(t, "FEEDHISTORY_SHELLS", shell.name)
			}
			dir := completionIn(t, shell.name, shell.script)
			cmd := exec.Command(shell.name, shell.args...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "TERM=xterm", "HOME="+dir, "PS1=ready> ", "INPUTRC=/dev/null", "LC_ALL=C.UTF-8")
			p := startTerminal(t, cmd, &pty.Winsize{Rows: 200, Cols: 200})
			p.await("ready> ")
			_, err := p.pty.WriteString(shell.setup + "; echo set''up\r")
			require.NoError(t, err)
			p.await("setup")
			for _, c := range completed {
				shown := p.complete(c.typed, c.offers)
				for _, word := range c.not {
					require.NotContains(t, shown, word, c.typed)
				}
			}
		})
	}
	t.Run("fish", func(t *testing.T) {
		t.Parallel()
		feedtest.Program(t, "FEEDHISTORY_SHELLS", "fish")
		dir := completionIn(t, "fish", "completion.sh")
		for _, c := range completed {
			cmd := exec.Command("fish", "--no-config", "-c", `source ./completion.sh; complete -C "$argv[1]"`, c.typed)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "LC_ALL=C.UTF-8")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			var offered []string
			for line := range strings.Lines(string(out)) {
				word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
				_, value, ok := strings.Cut(word, "=")
				if ok {
					word = value
				}
				offered = append(offered, word)
			}
			require.Subset(t, offered, c.offers, c.typed)
			for _, word := range c.not {
				require.NotContains(t, offered, word, c.typed)
			}
		}
	})
}

// By a title, a feed is offered in every shell as the shell has to be given it.
func TestCompletionOfTitles(t *testing.T) {
	t.Parallel()
	dir := completionIn(t, "bash", "completion.sh")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "line"), nil, 0o600))
	for typed, want := range map[string]string{
		"list --db feeds.db The": `The\ Lighthouse\'s\ Log`, `list --db feeds.db The\ Li`: `The\ Lighthouse\'s\ Log`,
		`list --db feeds.db "The Li`: `The Lighthouse's Log`, "rm --db=feeds.db log": "log.example/a",
	} {
		p := startTerminal(t, bashIn(dir), &pty.Winsize{Rows: 20, Cols: 200})
		p.await("ready> ")
		_, err := p.pty.WriteString("source ./completion.sh; echo set''up\r")
		require.NoError(t, err)
		p.await("setup")
		_, err = p.pty.WriteString("feedhistory " + typed + "\t")
		require.NoError(t, err)
		p.await(want)
	}
}

// bashIn returns a shell in a directory.
func bashIn(dir string) *exec.Cmd {
	cmd := exec.Command("bash", "--norc", "--noprofile", "-i")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TERM=xterm", "HOME="+dir, "PS1=ready> ", "INPUTRC=/dev/null", "LC_ALL=C.UTF-8")
	return cmd
}

// lastWord returns the word of a line that a shell completes.
func lastWord(line string) string {
	if i := strings.LastIndexAny(line, " ="); i >= 0 {
		return line[i+1:]
	}
	return line
}
