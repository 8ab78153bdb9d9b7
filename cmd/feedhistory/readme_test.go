//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A readmeCommand is a command of README, and its output according to README.
type readmeCommand struct{ command, prints string }

// readmeCommands reads the shell blocks of a README, from a heading to the next.
func readmeCommands(t *testing.T, file, heading, next string) (commands []readmeCommand) {
	text := feedtest.ReadFile(t, file)
	_, part, ok := strings.Cut(string(text), heading)
	require.True(t, ok)
	part, _, _ = strings.Cut(part, next)
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(part, -1) {
		for line := range strings.Lines(block[1]) {
			last := len(commands) - 1
			switch command, isCommand := strings.CutPrefix(line, "$ "); {
			case isCommand:
				command, _, _ = strings.Cut(command, "  #")
				commands = append(commands, readmeCommand{command: command})
			case strings.HasSuffix(strings.TrimSpace(commands[last].command), "|"):
				commands[last].command += line
			default:
				commands[last].prints += line
			}
		}
	}
	return commands
}

// readmeSites are example.org, an archived feed of 340 entries in 12 documents with a
// page, and example.net, of which an archive is missing.
func readmeSites(t *testing.T) (org, net string) {
	document := func(links string, from, to int, last time.Time) string {
		var b strings.Builder
		fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><title>The Lighthouse Log</title><id>urn:feed</id><author><name>A</name></author>%s`, links)
		fmt.Fprintf(&b, "<updated>%s</updated>", last.Format(time.RFC3339))
		for i := to; i > from; i-- {
			at := last.Add(time.Duration(i-to) * time.Hour).Format(time.RFC3339)
			fmt.Fprintf(&b, "<entry><id>urn:%d</id><title>Atom archive %d</title><updated>%s</updated><content>Text</content></entry>", i, i, at)
		}
		return b.String() + "</feed>"
	}
	serve := func(h http.HandlerFunc) string {
		server := feedtest.Server(t, h)
		return server.URL
	}
	org = serve(func(w http.ResponseWriter, r *http.Request) {
		newest := time.Date(2003, 12, 13, 18, 30, 2, 0, time.UTC)
		n := 0
		switch _, err := fmt.Sscanf(r.URL.Path, "/%d.atom", &n); {
		case r.URL.Path == "/":
			fmt.Fprint(w, `<!doctype html><link rel="alternate" type="application/atom+xml" href="feed.atom">`)
		case r.URL.Path == "/podcast.rss":
			fmt.Fprint(w, `<rss version="2.0"><channel><title>P</title><item><guid>1</guid><enclosure url="1.mp3" type="audio/mpeg" length="1"/></item></channel></rss>`)
		case r.URL.Path == "/1.mp3":
			fmt.Fprint(w, "1")
		case r.URL.Path == "/feed.atom":
			fmt.Fprint(w, document(`<link rel="prev-archive" href="11.atom"/>`, 330, 340, newest))
		case err != nil || n < 1 || n > 11:
			http.NotFound(w, r)
		default:
			links := `<fh:archive/><link rel="current" href="feed.atom"/>`
			if n > 1 {
				links += fmt.Sprintf(`<link rel="prev-archive" href="%d.atom"/>`, n-1)
			}
			fmt.Fprint(w, document(links, (n-1)*30, n*30, newest.AddDate(0, -(12-n), 0)))
		}
	})
	net = serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/feed.atom" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, document(`<link rel="prev-archive" href="1.atom"/>`, 0, 12, time.Date(2003, 11, 2, 0, 0, 0, 0, time.UTC)))
	})
	return org, net
}

// ages matches the ages in the output, which README cannot foresee.
var (
	ages    = regexp.MustCompile(` +\d+[smhd]\b`)
	anyPort = regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
)

// The commands of the READMEs, run from the first to the last, print what the READMEs say.
func TestReadme(t *testing.T) {
	t.Run("library", func(t *testing.T) {
		dir := testReadme(t, readmeCommands(t, "../../README.md", "\n## At a terminal\n", "\n## "), 5)
		entries := feedtest.ReadFile(t, filepath.Join(dir, "entries.jsonl"))
		require.Equal(t, 340, bytes.Count(entries, []byte("\n")))
	})
	t.Run("command", func(t *testing.T) {
		dir := testReadme(t, readmeCommands(t, "README.md", "# The command\n", "\n# "), 10)
		require.FileExists(t, filepath.Join(dir, "public", "feed.atom"))
		for program, pattern := range map[string]string{"wget": "podcast/*/1.mp3", "aria2c": "named/* 1.mp3"} {
			if _, err := exec.LookPath(program); err != nil {
				t.Log(err)
				continue
			}
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			require.NoError(t, err)
			require.Len(t, files, 1, program)
			require.Equal(t, "1", string(feedtest.ReadFile(t, files[0])))
		}
	})
}

// testReadme runs commands, at least so many, in a directory of their own.
func testReadme(t *testing.T, commands []readmeCommand, least int) string {
	require.GreaterOrEqual(t, len(commands), least)
	org, net := readmeSites(t)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(os.Args[0], filepath.Join(dir, "feedhistory")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "subscriptions.opml"),
		[]byte(`<opml version="2.0"><body><outline text="Tides" xmlUrl="`+net+`/feed.atom"/></body></opml>`), 0o600))
	here := strings.NewReplacer("https://example.org", org, "https://example.net", net, " example.org/", " "+strings.TrimPrefix(org, "http://")+"/",
		"postgres://localhost/feeds", "other.db", "feedhistory serve", "feedhistory serve --listen 127.0.0.1:0")
	plain := func(text string) string {
		text = strings.NewReplacer(org, "https://example.org", net, "https://example.net", dir+"/data/", "/home/ann/.local/share/").Replace(text)
		text = anyPort.ReplaceAllString(text, "http://127.0.0.1:8005/")
		return ages.ReplaceAllString(text, " T")
	}
	for _, c := range commands {
		pipe := strings.Split(c.command, "|")
		program := strings.Fields(pipe[len(pipe)-1])[0]
		if _, err := exec.LookPath(program); program == "go" || len(pipe) > 1 && program != "feedhistory" && err != nil {
			continue // it installs what is tested, or is not installed
		}
		if strings.Contains(c.command, "/podcast.rss") { // which README has mirrored before
			_, stderr, status := runReadme(t, dir, "feedhistory sync "+org+"/podcast.rss")
			require.Zero(t, status, stderr)
		}
		stdout, stderr, status := runReadme(t, dir, here.Replace(c.command))
		require.Contains(t, []int{terminal.ExitOK, terminal.ExitPartial}, status, "%s\n%s%s", c.command, stdout, stderr)
		if c.prints != "" {
			lines := strings.SplitAfter(plain(stderr+stdout), "\n")
			for line := range strings.Lines(strings.ReplaceAll(plain(c.prints), "…\n", "")) { // … is what the README leaves out
				require.Contains(t, lines, line, "%s\n%s%s", c.command, stdout, stderr)
			}
		}
	}
	return dir
}

// runReadme runs a command in a shell. One that goes on for ever is interrupted; if
// it had not begun by then, it gets twice the time.
func runReadme(t *testing.T, dir, command string) (stdout, stderr string, status int) {
	serves := strings.Contains(command, " serve ")
	if !serves && !strings.Contains(command, "--every") {
		return runReadmeFor(t, dir, command, patience, syscall.SIGKILL)
	}
	for wait := time.Second; ; wait *= 2 {
		stdout, stderr, status = runReadmeFor(t, dir, "exec "+command, wait, syscall.SIGINT)
		begun := status >= 0 && status != terminal.ExitInterrupted && (!serves || strings.Contains(stderr, " at http://"))
		if begun || wait > patience {
			return stdout, stderr, status
		}
	}
}

// runReadmeFor runs a command in a shell, and sends it a signal after a time.
func runReadmeFor(t *testing.T, dir, command string, wait time.Duration, signal os.Signal) (stdout, stderr string, status int) {
	cmd := exec.Command("sh", "-c", command)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "FEEDHISTORY_ALLOW_PRIVATE=true", "FEEDHISTORY_CONFIG=",
		"XDG_DATA_HOME="+filepath.Join(dir, "data"), "FEEDHISTORY_DB=", "GORACE=atexit_sleep_ms=10")
	require.NoError(t, cmd.Start())
	defer time.AfterFunc(wait, func() { _ = cmd.Process.Signal(signal) }).Stop()
	_ = cmd.Wait()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
