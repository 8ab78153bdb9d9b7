package page

import (
	"bufio"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

const repository = "https://github.com/feedhistory/feedhistory/blob/main/"

// needsHugo skips the test if Hugo is not here.
func needsHugo(t *testing.T) {
	if _, err := exec.LookPath("hugo"); err != nil && os.Getenv("FEEDHISTORY_GENERATORS") != "required" {
		t.Skip(err)
	}
}

// build makes the page in a directory served at a URL.
func build(t *testing.T, dir, base string) {
	for _, prints := range []string{"1 new · 0 changed · 0 unchanged", "0 new · 0 changed · 1 unchanged"} { // the second run changes nothing
		command := exec.Command("./build", dir, base)
		command.Env = append(os.Environ(), "GOWORK=")
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), prints)
	}
}

// All links of the page lead somewhere, it needs no script, and axe finds nothing in it.
func TestPage(t *testing.T) {
	needsHugo(t)
	dir := t.TempDir()
	build(t, dir, "https://feedhistory.example/page/")
	text, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	root, err := html.Parse(strings.NewReader(string(text)))
	require.NoError(t, err)
	ids, links := map[string]bool{}, []string{}
	for n := range root.Descendants() {
		require.NotEqual(t, "script", n.Data)
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				require.False(t, ids[a.Val], "%s is there twice", a.Val)
				ids[a.Val] = true
			case "href", "src":
				links = append(links, a.Val)
			}
		}
	}
	require.Greater(t, len(links), 10)
	for _, link := range links {
		u, err := url.Parse(link)
		require.NoError(t, err)
		inside, isFile := strings.CutPrefix(link, repository)
		switch {
		case isFile:
			name, _, _ := strings.Cut(inside, "#")
			require.FileExists(t, filepath.Join("../..", name))
		case link[0] == '#':
			require.True(t, ids[u.Fragment], link)
		case u.Scheme == "":
			require.FileExists(t, filepath.Join(dir, u.Path))
		default:
			require.Equal(t, "https", u.Scheme, link)
		}
	}
	for n := range ids {
		require.NotContains(t, n, " ")
	}
	axe(t, dir, string(text))
}

// axe lets axe-core look at the page in Chromium, bright and dark.
func axe(t *testing.T, dir, page string) {
	if os.Getenv("FEEDHISTORY_AXE") != "required" {
		t.Log("axe-core is tried with FEEDHISTORY_AXE=required")
		return
	}
	out, err := exec.Command("npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir, "axe-core@4.14.1").CombinedOutput()
	require.NoError(t, err, "%s", out)
	probe := strings.Replace(page, "</body>", `<script src="node_modules/axe-core/axe.min.js"></script>
<script>axe.run().then(r => document.title = "axe:" + JSON.stringify({passes: r.passes.length, violations: r.violations.map(v => v.id + ": " + v.nodes[0].html)}))</script></body>`, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "probe.html"), []byte(probe), 0o600))
	for _, dark := range []string{"--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"} {
		report := inBrowser(t, filepath.Join(dir, "probe.html"), "axe:", "--window-size=390,900", dark)
		var result struct {
			Passes     int
			Violations []string
		}
		require.NoError(t, json.Unmarshal([]byte(report), &result))
		require.Greater(t, result.Passes, 10)
		require.Empty(t, result.Violations)
	}
}

// sizes of the page in windows of these widths: how wide it is at most, and how high.
const sizes = `<!doctype html><script>
const read = (width) => new Promise((done) => {
	const frame = document.createElement("iframe");
	frame.style = "border: 0; height: 900px; width: " + width + "px";
	frame.src = "index.html";
	frame.onload = () => { const root = frame.contentDocument.documentElement; done({width, wide: root.scrollWidth, room: root.clientWidth, high: root.scrollHeight}); };
	document.documentElement.append(frame);
});
Promise.all([360, 768, 1440].map(read)).then((all) => document.title = "sizes:" + JSON.stringify(all));
</script>`

// Nothing on the page is wider than the window, and the page is no book.
func TestWidth(t *testing.T) {
	if os.Getenv("FEEDHISTORY_BROWSER") != "required" {
		t.Skip("the page is measured with FEEDHISTORY_BROWSER=required")
	}
	needsHugo(t)
	dir := t.TempDir()
	build(t, dir, "https://feedhistory.example/page/")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "probe.html"), []byte(sizes), 0o600))
	var all []struct{ Width, Wide, Room, High int }
	require.NoError(t, json.Unmarshal([]byte(inBrowser(t, filepath.Join(dir, "probe.html"), "sizes:", "--window-size=1600,1000")), &all))
	require.Len(t, all, 3)
	for _, size := range all {
		require.LessOrEqual(t, size.Wide, size.Room, size.Width)
		require.Greater(t, size.Room, size.Width-20, size.Width)
	}
	require.Less(t, all[2].High, 7_000, "at 1440 px")
}

// inBrowser returns the title that a page has given itself, after a prefix.
func inBrowser(t *testing.T, file, prefix string, flags ...string) string {
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
		"--user-data-dir=" + t.TempDir(), "--virtual-time-budget=30000", "--dump-dom"}, flags...)
	out, err := exec.Command("chromium", append(args, "file://"+file)...).Output()
	require.NoError(t, err)
	_, title, found := strings.Cut(string(out), "<title>"+prefix)
	require.True(t, found, "the page has not run: %.2000s", out)
	title, _, _ = strings.Cut(title, "</title>")
	return html.UnescapeString(title)
}

// The command checks the feed of news without findings, and reads it as a whole feed.
func TestNews(t *testing.T) {
	needsHugo(t)
	dir, command := t.TempDir(), filepath.Join(t.TempDir(), "feedhistory")
	out, err := exec.Command("env", "GOWORK=", "go", "build", "-o", command, "../../cmd/feedhistory").CombinedOutput()
	require.NoError(t, err, "%s", out)
	server := exec.Command(command, "serve", "--listen", "127.0.0.1:0", dir)
	said, err := server.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	_, base, found := strings.Cut(strings.TrimSpace(line), " at ")
	require.True(t, found, line)
	build(t, dir, base) // it is served already
	out, err = exec.Command(command, "check", "--allow-private", "--chain", base+"news/feed.atom").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "nothing to report")
	out, err = exec.Command(command, "fetch", "--allow-private", base+"news/feed.atom").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "verdict: whole")
}
