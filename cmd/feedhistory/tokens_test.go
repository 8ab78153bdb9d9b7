package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// tokens are the words by which each value of a rich document is found again, and numbers.
var tokens = regexp.MustCompile(`zz[a-z]+|471[0-9]`)

func tokensOf(text string) map[string]bool {
	found := map[string]bool{}
	for _, token := range tokens.FindAllString(text, -1) {
		found[token] = true
	}
	return found
}

// A tokenRun follows one rich document.
type tokenRun struct {
	*testing.T
	dir, site string // a directory, and its address
	name      string // of the document in it
	db        string
	n         int // of further documents there
}

// call runs a command that may find that something is missing.
func (r *tokenRun) call(stdin, line string) string {
	r.Helper()
	status, stdout, stderr := call(r.Context(), stdin, strings.Fields(line)...)
	require.Contains(r, []int{terminal.ExitOK, terminal.ExitPartial}, status, "%s: %s", line, stderr)
	return stdout
}

func (r *tokenRun) address() string { return r.site + "/" + r.name }

// publish publishes lines, or a source, and returns the document.
func (r *tokenRun) publish(stdin, source, format string) string {
	out := filepath.Join(r.TempDir(), "out")
	r.call(stdin, "publish --allow-private --out "+out+" --base http://b.example/ --format "+format+" --from "+source)
	text, err := os.ReadFile(filepath.Join(out, "feed."+format))
	require.NoError(r, err)
	return string(text)
}

// roads are the ways of a document to another format, by their ends.
func (r *tokenRun) roads(served string) map[string]func() string {
	fetched := func(flags string) string { return r.call("", "fetch --allow-private "+flags+" "+r.address()) }
	exported := func(flags string) string {
		return r.call("", "export --db "+r.db+" "+flags+" "+r.address())
	}
	roads := map[string]func() string{
		"jsonl fetch":  func() string { return fetched("") },
		"json fetch":   func() string { return fetched("--format json") },
		"raw fetch":    func() string { return fetched("--raw") },
		"jsonl export": func() string { return exported("") },
		"json export":  func() string { return exported("--format json") },
		"raw export":   func() string { return exported("--raw") },
	}
	for _, format := range []string{"atom", "rss"} {
		roads[format+" fetch"] = func() string { return fetched("--format " + format) }
		roads[format+" export"] = func() string { return exported("--format " + format) }
		roads[format+" publish of the file"] = func() string { return r.publish("", filepath.Join(r.dir, r.name), format) }
		roads[format+" publish of the address"] = func() string { return r.publish("", r.address(), format) }
		roads[format+" publish of the mirror"] = func() string { return r.publish("", r.address()+" --db "+r.db, format) }
		roads[format+" publish of raw"] = func() string { return r.publish(fetched("--raw"), "-", format) }
		roads[format+" publish of jsonl"] = func() string { return r.publish(fetched(""), "-", format) }
		roads[format+" index"] = func() string { return pageAt(r.T, served+"/index."+format) }
		roads[format+" slice"] = func() string { return pageAt(r.T, served+"/slice."+format+"?since=2000-01-01") }
	}
	for format, other := range map[string]string{"atom": "rss", "rss": "atom"} {
		roads[format+" through "+other] = func() string {
			r.n++
			name := fmt.Sprintf("%d.%s", r.n, other)
			require.NoError(r, os.WriteFile(filepath.Join(r.dir, name), []byte(fetched("--format "+other)), 0o600))
			return r.call("", "fetch --allow-private --format "+format+" "+r.site+"/"+name)
		}
	}
	roads["atom complete"] = func() string { return pageAt(r.T, served+"/complete.atom") }
	return roads
}

// lost are the values that cannot be carried, by the document and the beginnings of the roads: RSS
// has no titles of its own links; an image of RSS 1.0 is read as an icon, and
// the address of its channel is that of the feed.
var lost = map[string]map[string]string{
	"rich.atom": {"rss ": "zzenclosuretitle zzfeedhometitle zzlinktitle", "atom through": "zzenclosuretitle zzfeedhometitle zzlinktitle"},
	"rich.rdf":  {"": "zzfeedabout zzfeedimagelink zzfeedimagetitle"},
}

// Every value of a rich document is there again on every road to every format, but for those
// that no element of the format can carry.
func TestTokens(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	for _, name := range []string{"rich.atom", "rich.rss", "rich.rdf", "rich.json"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", "tokens", name))
			require.NoError(t, err)
			dir, site := serveDirectory(t)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
			r := &tokenRun{T: t, dir: dir, site: site, name: name, db: filepath.Join(t.TempDir(), "m.db")}
			r.call("", "sync --allow-private --db "+r.db+" "+r.address())
			base, _, end := history(t, "--allow-private", "--db", r.db, "--listen", freeAddress())
			defer end()
			id := regexp.MustCompile(`feeds/[^/"?]+`).FindString(pageAt(t, base))
			roads := r.roads(base + id)
			for _, road := range slices.Sorted(maps.Keys(roads)) {
				written := roads[road]()
				found := tokensOf(written)
				if strings.HasPrefix(road, "atom ") || strings.HasPrefix(road, "rss ") { // and valid
					status, found, _ := call(t.Context(), written, "check", "-")
					require.Zero(t, status, "%s: %s", road, found)
				}
				want := tokensOf(string(text))
				for begin, names := range lost[name] {
					if strings.HasPrefix(road, begin) {
						maps.DeleteFunc(want, func(token string, _ bool) bool { return slices.Contains(strings.Fields(names), token) })
					}
				}
				maps.DeleteFunc(want, func(token string, _ bool) bool { return found[token] })
				require.Empty(t, slices.Sorted(maps.Keys(want)), road)
			}
		})
	}
}

// An entry full of characters that need escapes is in all views of the mirror, and none of them is much
// longer than the document was.
func TestDenseServed(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	text := func(char string) string { return strings.Repeat(char, 300_000/len(char)) }
	for name, document := range map[string]string{
		"ampersands.atom": `<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><entry><id>urn:dense</id><content><![CDATA[` + text("&") + `]]></content></entry></feed>`,
		"quotes.atom":     `<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><entry><id>urn:dense</id><content>` + text(`"`) + `</content></entry></feed>`,
		"xhtml.atom":      `<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><entry><id>urn:dense</id><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><![CDATA[` + text("<") + `]]></div></content></entry></feed>`,
		"bare.rss":        `<rss version="2.0"><channel><title>F</title><item><guid>urn:dense</guid><description>` + text("&") + `</description></item></channel></rss>`,
		"titles.rss":      `<rss version="2.0"><channel><title>F</title><item><guid>urn:dense</guid><title><![CDATA[` + text("<") + `]]></title></item></channel></rss>`,
		"texts.json":      `{"version":"https://jsonfeed.org/version/1.1","title":"F","items":[{"id":"urn:dense","content_text":"` + text("&") + `"}]}`,
		"members.json":    `{"version":"https://jsonfeed.org/version/1.1","title":"F","items":[{"id":"urn:dense","content_text":"x","_x":"` + text("<") + `"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir, site := serveDirectory(t)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(document), 0o600))
			r := &tokenRun{T: t, dir: dir, site: site, name: name, db: filepath.Join(t.TempDir(), "m.db")}
			r.call("", "sync --allow-private --db "+r.db+" "+r.address())
			base, _, end := history(t, "--allow-private", "--db", r.db, "--listen", freeAddress())
			defer end()
			served := base + regexp.MustCompile(`feeds/[^/"?]+`).FindString(pageAt(t, base))
			for _, view := range []string{"/index.atom", "/index.rss", "/complete.atom", "/slice.atom?since=1900-01-01", "/slice.rss?since=1900-01-01"} {
				page := pageAt(t, served+view)
				require.Contains(t, page, "urn:dense", view)
				require.LessOrEqual(t, len(page), 6*len(document)+64<<10, view)
			}
		})
	}
}
