//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"
)

// A pseudoTerminal runs the command on a pseudo-terminal.
type pseudoTerminal struct {
	t   *testing.T
	cmd *exec.Cmd
	pty *os.File

	mu    sync.Mutex
	shown bytes.Buffer
	ended chan struct{}
}

// onTerminal runs the command with a terminal as each standard stream that is not set.
func onTerminal(t *testing.T, set func(cmd *exec.Cmd), args ...string) *pseudoTerminal {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Args[0] = "feedhistory"
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=10", "TERM=xterm", "PAGER=cat", "XDG_CONFIG_HOME="+t.TempDir())
	if set != nil {
		set(cmd)
	}
	return startTerminal(t, cmd, &pty.Winsize{Rows: 24, Cols: 80})
}

// startTerminal runs a program on a pseudo-terminal.
func startTerminal(t *testing.T, cmd *exec.Cmd, size *pty.Winsize) *pseudoTerminal {
	f, err := pty.StartWithSize(cmd, size)
	require.NoError(t, err)
	p := &pseudoTerminal{t: t, cmd: cmd, pty: f, ended: make(chan struct{})}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = f.Close() })
	go func() {
		defer close(p.ended)
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			p.mu.Lock()
			p.shown.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

// screen returns everything that the terminal has shown so far.
func (p *pseudoTerminal) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.ReplaceAll(p.shown.String(), "\r\n", "\n")
}

// await waits until the terminal shows a text.
func (p *pseudoTerminal) await(what string) {
	require.Eventually(p.t, func() bool { return strings.Contains(p.screen(), what) }, patience, 5*time.Millisecond, "%q in %q", what, p)
}

// awaitSilence waits until the terminal no longer shows keys: its state differs from a new one's.
func (p *pseudoTerminal) awaitSilence() {
	other, tty, err := pty.Open()
	require.NoError(p.t, err)
	defer other.Close()
	defer tty.Close()
	fresh, err := term.GetState(int(other.Fd()))
	require.NoError(p.t, err)
	require.Eventually(p.t, func() bool {
		state, err := term.GetState(int(p.pty.Fd()))
		return err == nil && *state != *fresh
	}, patience, 5*time.Millisecond)
}

func (p *pseudoTerminal) String() string { return p.screen() }

// wait waits for the end, and returns the exit status.
func (p *pseudoTerminal) wait() int {
	_ = p.cmd.Wait()
	<-p.ended
	return p.cmd.ProcessState.ExitCode()
}

// The command says that it waits for somebody to type, and one interrupt ends it.
func TestTerminalInput(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"inspect", "-"}, {"check", "-"},
		{"publish", "--out", filepath.Join(dir, "pub"), "--base", "https://example.org/"},
		{"produce", "--protocol", "modified-range", "--listen", "127.0.0.1:0"},
		{"sync", "--db", filepath.Join(dir, "feeds.db"), "--opml", "-"},
	} {
		t.Run(args[0], func(t *testing.T) {
			p := onTerminal(t, nil, args...)
			p.await("reading from the terminal; Ctrl-D ends it")
			_, err := p.pty.Write([]byte{3})
			require.NoError(t, err)
			require.Equal(t, terminal.ExitInterrupted, p.wait(), p.screen())
			require.Contains(t, p.screen(), "interrupted")
			require.Equal(t, 1, strings.Count(p.screen(), "interrupted"), p.screen())
		})
	}
}

// Without a password in the environment, a terminal asks for it and does not show it.
func TestPasswordAsked(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>Locked</title></channel></rss>`)
	}))
	p := onTerminal(t, nil, "inspect", "--allow-private", "--user", "ann", server.URL+"/feed.rss")
	p.await("password of ann: ")
	p.awaitSilence()
	_, err := io.WriteString(p.pty, "s3cret\n")
	require.NoError(t, err)
	require.Zero(t, p.wait(), p)
	require.Contains(t, p.screen(), "Locked")
	require.NotContains(t, p.screen(), "s3cret")
}

// A terminal that can only print line after line gets no control sequences.
func TestDumbTerminal(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>Plain</title><item><guid>1</guid></item></channel></rss>`)
	}))
	db := filepath.Join(t.TempDir(), "feeds.db")
	for _, args := range [][]string{{"sync", "--allow-private", "--db", db, server.URL + "/feed.rss"}, {"fetch", "--allow-private", server.URL + "/feed.rss"}, {"entries", "--db", db}} {
		p := onTerminal(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "TERM=dumb", "PAGER=less") }, args...)
		require.Zero(t, p.wait(), p)
		require.NotContains(t, p.screen(), "\x1b")
		require.NotContains(t, p.screen(), "\r")
	}
}

// Verdicts have colours on a terminal, unless the user wants none; nothing from a feed has.
func TestColours(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/feed+json")
		_, _ = io.WriteString(w, `{"version":"https://jsonfeed.org/version/1.1","title":"R\u001b[31med","items":[{"id":"1","title":"R\u001b[31med","content_text":"r\u001b[31med"},{"content_text":"without an id"}]}`)
	}))
	db, url := filepath.Join(t.TempDir(), "feeds.db"), server.URL+"/feed.json"
	done(t, "", "sync", "--db", db, "--allow-private", url)
	done(t, "", "sync", "--db", db, "--allow-private", "--public", server.URL+"/other.json")
	for _, args := range [][]string{{"list", "--db", db}, {"list", "--db", db, url}, {"entry", "--db", db, "--feed", url, "1"}, {"entries", "--db", db}, {"fetch", "--allow-private", url}, {"inspect", "--allow-private", url}, {"check", "--allow-private", url}} {
		p := onTerminal(t, nil, args...)
		p.wait()
		require.NotContains(t, strings.ReplaceAll(p.screen(), "\x1b[31merror\x1b[0m", ""), "\x1b[31m", args)
		require.NotContains(t, p.screen(), "R[31med", args)
	}
	p := onTerminal(t, nil, "list", "--db", db, url)
	require.Zero(t, p.wait(), p)
	require.Contains(t, p.screen(), "\x1b[1mR\uFFFD[31med\x1b[0m\n")
	p = onTerminal(t, nil, "check", "--allow-private", url)
	p.wait()
	require.Contains(t, p.screen(), "\x1b[31merror\x1b[0m: ")
	p = onTerminal(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "NO_COLOR=1") }, "list", "--db", db)
	require.Zero(t, p.wait(), p)
	require.NotContains(t, p.screen(), "\x1b")
}

// With piped input, the command does not say that it reads from a terminal.
func TestPipedInput(t *testing.T) {
	p := onTerminal(t, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Ctty: 1}
		cmd.Stdin = strings.NewReader(`<rss version="2.0"><channel><title>Piped</title></channel></rss>`)
	}, "inspect", "-")
	require.Zero(t, p.wait(), p.screen())
	require.Contains(t, p.screen(), "Piped")
	require.NotContains(t, p.screen(), "reading from the terminal")
}

// One interrupt ends a fetch: with 130 where there is nothing, else with 3.
func TestInterruptOnce(t *testing.T) {
	asked := make(chan string, 10)
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		if r.URL.Path == "/slow.atom" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id></entry><link rel="prev-archive" href="slow.atom"/></feed>`)
	}))
	db := filepath.Join(t.TempDir(), "feeds.db")
	for _, test := range []struct {
		path string
		args []string
		want int
	}{
		{"/slow.atom", []string{"fetch"}, terminal.ExitInterrupted},
		{"/feed.atom", []string{"fetch"}, terminal.ExitPartial},
		{"/slow.atom", []string{"inspect"}, terminal.ExitInterrupted},
		{"/slow.atom", []string{"check"}, terminal.ExitInterrupted},
		{"/slow.atom", []string{"sync", "--db", db}, terminal.ExitInterrupted},
		{"/feed.atom", []string{"sync", "--db", db}, terminal.ExitPartial},
		{"/feed.atom", []string{"check", "--chain"}, terminal.ExitPartial},
	} {
		t.Run(test.args[0]+test.path, func(t *testing.T) {
			p := onTerminal(t, nil, append(test.args, "--allow-private", server.URL+test.path)...)
			for path := range asked {
				if path == "/slow.atom" {
					break
				}
			}
			if test.want == terminal.ExitPartial && test.args[0] == "fetch" {
				p.await("urn:1")
			}
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
			require.Equal(t, test.want, p.wait(), p.screen())
			if test.args[0] == "check" && test.want == terminal.ExitPartial {
				require.Contains(t, p.screen(), "1 document checked", "the part that was read")
			}
		})
	}
}

// A long list of feeds is worked on visibly from the beginning, and one interrupt ends it.
func TestInterruptedList(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	var list strings.Builder
	list.WriteString("<opml><body>")
	for n := range 10_000 {
		fmt.Fprintf(&list, "<outline xmlUrl='%s/%d'/>", server.URL, n)
	}
	list.WriteString("</body></opml>")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "list.opml"), []byte(list.String()), 0o600))
	p := onTerminal(t, nil, "sync", "--db", filepath.Join(dir, "feeds.db"), "--allow-private", "--opml", filepath.Join(dir, "list.opml"))
	p.await("adding feeds")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	require.Equal(t, terminal.ExitInterrupted, p.wait(), p)
	require.Contains(t, p.screen(), "interrupted")
}

// An interrupt in a pager is for the pager: the command does not leave it alone with
// the terminal, and cuts nothing off.
func TestInterruptedPager(t *testing.T) {
	db := filepath.Join(t.TempDir(), "feeds.db")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>F</title><item><guid>urn:1</guid><title>One</title></item></channel></rss>`)
	}))
	defer server.Close()
	done(t, "", "sync", "--db", db, "--allow-private", server.URL)
	program := filepath.Join(t.TempDir(), "pager")
	script := "#!/bin/sh\ntrap 'echo interrupted' INT\necho ready\nwhile ! test -e " + program + ".go; do sleep 0.05; done\nexec cat\n"
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
	p := onTerminal(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "PAGER="+program) }, "entries", "--db", db)
	p.await("ready")
	for n := 1; n <= 3; n++ {
		_, err := p.pty.WriteString("\x03")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return strings.Count(p.screen(), "interrupted") >= n }, patience, 5*time.Millisecond, p)
	}
	require.NoError(t, os.WriteFile(program+".go", nil, 0o600))
	require.Zero(t, p.wait(), p.screen())
	require.Contains(t, p.screen(), "urn:1")
	require.NotContains(t, p.screen(), "feedhistory: interrupted")
}

// Output on a terminal goes through the user's pager; piped output does not.
func TestPager(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>F</title><item><guid>urn:1</guid><title>One</title></item></channel></rss>`)
	}))
	db := filepath.Join(t.TempDir(), "feeds.db")
	status, _, stderr := call(t.Context(), "", "sync", "--db", db, "--allow-private", server.URL)
	require.Zero(t, status, stderr)
	pager := func(program string) func(*exec.Cmd) {
		return func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "PAGER="+program) }
	}
	for _, args := range [][]string{{"entries"}, {"entry", "urn:1"}} {
		args = append(args, "--db", db)
		p := onTerminal(t, pager("sed s/One/paged/"), args...)
		require.Zero(t, p.wait(), p.screen())
		require.Contains(t, p.screen(), "paged")
		p = onTerminal(t, pager("sed s/One/paged/"), append(args, "--no-pager")...)
		require.Zero(t, p.wait(), p.screen())
		require.Contains(t, p.screen(), "One")
		p = onTerminal(t, pager("true"), args...) // is left at once
		require.Zero(t, p.wait(), p.screen())
		require.NotContains(t, p.screen(), "feedhistory:")
		_, stdout, _ := call(t.Context(), "", args...)
		require.Contains(t, stdout, "One")
	}
}

// narrow is a terminal of 30 columns.
func narrow(t *testing.T, args ...string) *pseudoTerminal { return ofColumns(t, 30, args...) }

// ofColumns runs the command on a terminal of that width.
func ofColumns(t *testing.T, columns uint16, args ...string) *pseudoTerminal {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Args[0] = "feedhistory"
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=10", "TERM=xterm", "PAGER=cat", "XDG_CONFIG_HOME="+t.TempDir())
	return startTerminal(t, cmd, &pty.Winsize{Rows: 24, Cols: columns})
}

// On a terminal, fetch prints a table; neither it nor the bar is torn by 30 columns, and
// 120 show more of a title. With a format or an output file, the output is as in a pipe.
func TestTable(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><entry><id>urn:1</id><updated>2003-12-13T00:00:00Z</updated>
<title>A title that is much longer than any terminal of thirty columns</title><link href="https://example.org/1"/></entry></feed>`)
	}))
	url := server.URL + "/feed.atom"
	p := onTerminal(t, nil, "fetch", "--allow-private", url)
	require.Zero(t, p.wait(), p)
	require.Contains(t, p.screen(), "2003-12-13  A title that is much longer than any termin…  https://example.org/1\n")
	p = narrow(t, "fetch", "--allow-private", url)
	require.Zero(t, p.wait(), p)
	require.Contains(t, p.screen(), "2003-12-13  A title that is…  https://example.org/1\n")
	db := filepath.Join(t.TempDir(), "feeds.db")
	done(t, "", "sync", "--db", db, "--allow-private", url)
	p = narrow(t, "list", "--db", db)
	require.Zero(t, p.wait(), p)
	require.Regexp(t, `^\x1b\[1mT\x1b\[0m\n  `+url+`\n  window · 1 entry · newest\n  2003-12-13 · polled \S+ ·\n  next \S+\n$`, p.screen())
	p = narrow(t, "entries", "--db", db, "--long")
	require.Zero(t, p.wait(), p)
	require.Contains(t, p.screen(), "    A title that is much long…\n      2003-12-13 00:00:00Z\n")
	_, piped, _ := call(t.Context(), "", "entries", "--db", db, "--long")
	require.Contains(t, piped, "    A title that is much longer than any terminal of thirty columns\n")
	p = narrow(t, "check", "--allow-private", url)
	require.Equal(t, terminal.ExitFailed, p.wait(), p)
	screen := escapes.ReplaceAllString(p.screen(), "")
	require.Contains(t, screen, "error: ")
	for line := range strings.Lines(screen) {
		require.True(t, strings.Contains(line, url) || len([]rune(line)) <= 31, line)
	}
	p = ofColumns(t, 120, "fetch", "--allow-private", url)
	require.Zero(t, p.wait(), p)
	require.Regexp(t, "2003-12-13  A title that is much longer than any terminal of thirty columns +https://example.org/1\n", p.screen())
	for _, args := range [][]string{{"--json"}, {"--format", "jsonl"}} {
		p = onTerminal(t, nil, append([]string{"fetch", "--allow-private", url}, args...)...)
		require.Zero(t, p.wait(), p)
		require.Contains(t, p.screen(), `{"feed":`)
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	p = onTerminal(t, nil, "fetch", "--allow-private", "-o", out, url)
	require.Zero(t, p.wait(), p)
	require.Contains(t, p.screen(), "looking for the feed")
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Contains(t, string(text), `{"feed":`)
}

// A host that keeps the command waiting is named, on a line that the terminal does not
// break.
func TestHangingHost(t *testing.T) {
	feedtest.Long(t)
	end := make(chan struct{})
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	defer close(end)
	host := strings.TrimPrefix(server.URL, "http://")
	db := filepath.Join(t.TempDir(), "feeds.db")
	for _, args := range [][]string{{"fetch", "-o", filepath.Join(t.TempDir(), "x")}, {"check", "--chain"}, {"sync", "--db", db}} {
		p := narrow(t, append(args, "--allow-private", server.URL+"/feed.atom")...)
		p.await("waiting for " + host[:10])
		_, err := p.pty.Write([]byte{3})
		require.NoError(t, err)
		require.Equal(t, terminal.ExitInterrupted, p.wait(), p)
		for _, line := range strings.FieldsFunc(p.screen(), func(r rune) bool { return r == '\r' || r == '\n' }) {
			if strings.Contains(line, "waiting for") {
				require.LessOrEqual(t, len([]rune(strings.TrimSuffix(strings.TrimPrefix(line, "\x1b[K"), "^C"))), 30, line)
			}
		}
	}
}

// On a terminal, rm and erase ask.
func TestRemovalAsks(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><entry><id>urn:1</id></entry></feed>`)
	}))
	url, db := server.URL+"/feed.atom", filepath.Join(t.TempDir(), "feeds.db")
	status, _, stderr := call(t.Context(), "", "sync", "--db", db, "--allow-private", url)
	require.Zero(t, status, stderr)
	status, stdout, _ := call(t.Context(), "", "rm", "--db", db, "--dry-run", url)
	require.Zero(t, status)
	require.Equal(t, url+" and its 1 entry\n", stdout)
	for _, args := range [][]string{{"erase", "--db", db, "urn:1"}, {"rm", "--db", db, url}} {
		for _, answer := range []string{"\n", "n\n", "y\n"} {
			p := onTerminal(t, nil, args...)
			p.await("remove for good? [y/N] ")
			require.Contains(t, p.screen(), url)
			_, err := io.WriteString(p.pty, answer)
			require.NoError(t, err)
			require.Equal(t, map[bool]int{true: terminal.ExitOK, false: terminal.ExitFailed}[answer == "y\n"], p.wait(), p)
		}
	}
	status, _, _ = call(t.Context(), "", "rm", "--db", db, url)
	require.Equal(t, terminal.ExitFailed, status)
}

// A full is standard output on a full disk.
type full struct{}

// Write implements io.Writer.
func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// Output that cannot be written is an error. The command reports it once, and blames
// nothing else.
func TestFullOutput(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`<rss version="2.0"><channel><title>F</title>`))
		for range 2000 {
			_, _ = w.Write([]byte(`<item><title>One ` + strings.Repeat("x", 100) + `</title></item>`))
		}
		_, _ = w.Write([]byte(`<item><guid>urn:1</guid><title>One</title></item></channel></rss>`))
	}))
	defer server.Close()
	db := filepath.Join(t.TempDir(), "feeds.db")
	done(t, "", "sync", "--db", db, "--allow-private", server.URL)
	for _, args := range []string{
		"entries", "entries --json", "entries --long", "entry urn:1", "entry --json urn:1", "list", "list --json",
		"export", "export --raw", "export --format csv", "export --format opml", "export --format json " + server.URL, "export --format rss " + server.URL,
		"export --format greader", "export --format nextcloud", "fetch", "fetch --format json", "fetch --format rss", "fetch --raw", "inspect", "check --json",
		"sync --all", "help", "help list", "version", "--version", "man", "completion fish",
	} {
		words := strings.Fields(args)
		switch words[0] {
		case "entries", "entry", "list", "export", "sync":
			words = append(words, "--db", db)
		}
		switch words[0] {
		case "fetch", "inspect", "check":
			words = append(words, server.URL)
		}
		switch words[0] {
		case "fetch", "inspect", "check", "sync":
			words = append(words, "--allow-private")
		}
		var stderr strings.Builder
		status := run(t.Context(), words, strings.NewReader(""), full{}, &stderr)
		require.Equal(t, terminal.ExitFailed, status, "%s: %s", args, stderr.String())
		require.Equal(t, "feedhistory: no space left on device\n", stderr.String(), args)
	}
}

// In no format does the text of a feed control the terminal; into a pipe it goes as it is.
func TestTerminalText(t *testing.T) {
	const title = "One\u009b31m\x1b]0;mine\a\x1b[31m\rtwo\u202e"
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, _ := json.Marshal(map[string]any{
			"version": "https://jsonfeed.org/version/1.1", "title": title,
			"items": []any{map[string]any{"id": "1", "title": title, "content_text": "x", "date_published": "2022-05-04T00:00:00Z"}},
		})
		_, _ = w.Write(text)
	}))
	for _, format := range []string{"csv", "atom", "rss", "json", "jsonl"} {
		p := onTerminal(t, nil, "fetch", "-q", "--allow-private", "--format", format, server.URL)
		require.Zero(t, p.wait(), p.screen())
		screen := p.screen()
		require.Contains(t, screen, "mine", format)
		for _, control := range []string{"\x1b", "\a", "\u009b", "\rt", "\u202e"} {
			require.NotContains(t, screen, control, "%s: %q", format, screen)
		}
		var piped, stderr strings.Builder
		require.Zero(t, run(t.Context(), []string{"fetch", "-q", "--allow-private", "--format", format, server.URL}, strings.NewReader(""), &piped, &stderr))
		if format == "csv" {
			require.Contains(t, piped.String(), "\x1b]0;mine\a")
		}
	}
}

// The output file of an interrupted fetch keeps its old content.
func TestInterruptedOutput(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow.atom" {
			cancel()
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(`<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="slow.atom"/><entry><id>urn:1</id></entry></feed>`))
	}))
	defer server.Close()
	name := filepath.Join(t.TempDir(), "out.jsonl")
	require.NoError(t, os.WriteFile(name, []byte("before"), 0o600))
	var stderr strings.Builder
	status := run(ctx, []string{"fetch", "--allow-private", "--output", name, server.URL}, strings.NewReader(""), io.Discard, &stderr)
	require.Equal(t, terminal.ExitInterrupted, status, stderr.String())
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "before", string(text), stderr.String())
}

// A stranger runs the command as a user without permissions.
type stranger struct{ program string }

// newStranger copies this program to a directory where everybody may run it. Permissions
// do not restrict root, so root runs it as nobody.
func newStranger(t *testing.T, dir string) stranger {
	t.Helper()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	program := filepath.Join(filepath.Dir(dir), "program")
	self, err := os.Open(os.Args[0])
	require.NoError(t, err)
	defer self.Close()
	to, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(to, self)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	require.NoError(t, os.Chmod(program, 0o755)) // whatever the umask is
	return stranger{program}
}

func (s stranger) run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	c := exec.Cmd{Path: s.program, Args: append([]string{"feedhistory"}, args...), Stdout: &out, Stderr: &errs, Dir: "/"}
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if err := c.Run(); c.ProcessState == nil {
		return -1, "", err.Error()
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// Verbs that read a mirror work without permission to write to the database and its
// directory, whether the database is at rest or has a log that a killed process left; and
// they change nothing.
func TestReadOnly(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>Feed</title><item><guid>1</guid><title>Hello</title></item></channel></rss>`)
	}))
	dir := t.TempDir()
	user := newStranger(t, dir)
	file := filepath.Join(dir, "feeds.db")
	status, _, stderr := call(t.Context(), "", "sync", "--db", file, "--allow-private", server.URL+"/feed.rss")
	require.Zero(t, status, stderr)

	reads := func(t *testing.T, dir, search string) {
		t.Helper()
		file := filepath.Join(dir, "feeds.db")
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		for _, name := range append(names, dir) {
			mode := os.FileMode(0o444)
			if name == dir {
				mode = 0o555
			}
			require.NoError(t, os.Chmod(name, mode))
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
		before := feedtest.ReadFile(t, file)
		for _, args := range [][]string{
			{"list"}, {"list", server.URL + "/feed.rss"}, {"entries"}, {"entries", "--search", search}, {"export"}, {"export", "--format", "opml"},
		} {
			status, stdout, stderr := user.run(append(args, "--db", file)...)
			require.Zero(t, status, "%q: %s", args, stderr)
			require.NotEmpty(t, stdout, "%q", args)
			require.Empty(t, stderr)
		}
		for _, args := range [][]string{{"rm", server.URL + "/feed.rss"}, {"sync", "--all"}} {
			status, _, stderr := user.run(append(args, "--db", file)...)
			require.Equal(t, terminal.ExitFailed, status)
			require.Contains(t, stderr, file+": the file cannot be ")
		}
		after := feedtest.ReadFile(t, file)
		require.Equal(t, before, after)
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		require.Equal(t, names, left)
	}
	t.Run("at rest", func(t *testing.T) { reads(t, dir, "hello") })

	// A copy of the files as they are while another process has them open.
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chmod(file, 0o644))
	d := database.Location{DB: file}
	store, err := d.Connect(t.Context())
	require.NoError(t, err)
	defer store.Close()
	_, err = store.DB.Exec("UPDATE feedhistory_entries SET title = 'Goodbye', data = replace(data, 'Hello', 'Goodbye')")
	require.NoError(t, err)
	_, err = store.DB.Exec("INSERT INTO feedhistory_unindexed SELECT key FROM feedhistory_entries")
	require.NoError(t, err)
	killed := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(killed), 0o755))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		data := feedtest.ReadFile(t, file+suffix)
		require.NoError(t, os.WriteFile(filepath.Join(killed, "feeds.db"+suffix), data, 0o644))
	}
	t.Run("with a log", func(t *testing.T) { reads(t, killed, "goodbye") })
}

// A verb reports that another process has written to the file that it read on the
// assumption that nobody writes to it.
func TestReadWhileWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "feeds.db")
	d := database.Location{DB: file}
	w := &command.World{Globals: &command.Globals{}, NetworkFlags: &command.NetworkFlags{}, Ctx: t.Context()}
	store, err := d.Create(w)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	info, err := os.Stat(file)
	require.NoError(t, err)
	for _, written := range []bool{false, true} {
		still, err := d.Reader(t.Context(), sqlstore.SQLiteReaderDSN(file, true))
		require.NoError(t, err)
		still.File, still.Info = file, info
		if written {
			require.NoError(t, os.WriteFile(file+"-wal", []byte("x"), 0o600))
			require.ErrorContains(t, still.Close(), "another process wrote to it meanwhile")
			continue
		}
		require.NoError(t, still.Close())
	}
}
