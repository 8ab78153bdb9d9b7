package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
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
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedxml"
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

// placesOf returns the tokens of an XML document by their places: each with the element, or
// the attribute, around it.
func placesOf(t *testing.T, text string) map[string]string {
	places, elements := map[string]string{}, []string{""}
	add := func(place, text string) {
		for token := range tokensOf(text) {
			places[place+": "+token] = token
		}
	}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return places
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Space + " " + token.Name.Local
			if token.Name.Space == feedxml.XHTML { // or HTML, in the text
				name = elements[len(elements)-1]
			}
			elements = append(elements, name)
			for _, a := range token.Attr {
				switch {
				case token.Name.Space == feedxml.XHTML:
					add(name, a.Value)
				case a.Name.Space != "xmlns":
					add(name+" "+a.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
			elements = elements[:len(elements)-1]
		case xml.CharData:
			add(elements[len(elements)-1], string(token))
		}
	}
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
		roads[format+" slice"] = func() string { return pageAt(r.T, served+"/slice."+format+"?since=1900-01-01") }
		roads[format+" replay"] = func() string { return pageAt(r.T, served+"/replay."+format+"?start=2020-01-01&every=1h") }
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

// lost are the values that cannot be carried, by the document and the beginnings of the roads: a
// replay has an id of its own; RSS has no titles of its own links; an image of RSS 1.0 is read as an icon, and
// the address of its channel is that of the feed.
var lost = map[string]map[string]string{
	"rich.atom": {"rss ": "zzenclosuretitle zzfeedhometitle zzlinktitle", "atom through": "zzenclosuretitle zzfeedhometitle zzlinktitle", "atom replay": "zzfeedid"},
	"rich.rdf":  {"": "zzfeedabout zzfeedimagelink zzfeedimagetitle"},
}

// moved are the values of rich.rss in an element with the same meaning after a road elsewhere:
// an author and a subject are as in other formats then.
var (
	moved     = []string{"zzauthor", "zzauthormail", "zzsubject"}
	elsewhere = regexp.MustCompile("through|raw|jsonl|mirror")
)

// Every value of a rich document is there again on every road to every format, but for those
// that no element of the format can carry. In its own format, it is in the same element.
func TestTokens(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	for _, name := range []string{"rich.atom", "rich.rss", "rich.rdf", "rich.json"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", "tokens", name))
			require.NoError(t, err)
			r, served := followed(t, name, string(text))
			roads := r.roads(served)
			for _, road := range slices.Sorted(maps.Keys(roads)) {
				written := roads[road]()
				found := tokensOf(written)
				if strings.HasPrefix(road, "atom ") || strings.HasPrefix(road, "rss ") { // and valid
					status, found, _ := call(t.Context(), written, "check", "-")
					require.Zero(t, status, "%s: %s", road, found)
					require.NotContains(t, found, " warning: ", road)
					mayBeOwn := strings.HasSuffix(road, "of the file") // and no copy
					require.Equal(t, mayBeOwn && strings.Contains(string(text), `"hub"`), strings.Contains(written, `"hub"`), road)
				}
				want := tokensOf(string(text))
				for begin, names := range lost[name] {
					if strings.HasPrefix(road, begin) {
						maps.DeleteFunc(want, func(token string, _ bool) bool { return slices.Contains(strings.Fields(names), token) })
					}
				}
				if name != "rich.json" && strings.HasPrefix(road, strings.TrimPrefix(name, "rich.")+" ") {
					require.NotContains(t, written, "<docs ", "%s: some readers take a base for its value", road)
					there := placesOf(t, written)
					for place, token := range placesOf(t, string(text)) {
						if want[token] && !(elsewhere.MatchString(road) && slices.Contains(moved, token)) {
							require.Contains(t, there, place, road)
						}
					}
				}
				maps.DeleteFunc(want, func(token string, _ bool) bool { return found[token] })
				require.Empty(t, slices.Sorted(maps.Keys(want)), road)
			}
		})
	}
}

// A hostile document is on no road and in no view much longer than it was, and takes memory in
// proportion to its length. All have its entry, or say that a limit is the reason for the gap.
func TestHostileOnAllRoads(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	const n = 100_000
	text := func(part string) string { return strings.Repeat(part, n/len(part)) }
	section := func(part string) string { return "<![CDATA[" + text(part) + "]]>" }
	base := "http://f.example/" + strings.Repeat("gallery/", 100)
	atom := func(head, entry string) string {
		return `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="` + base + `">` + head + `<entry><id>urn:dense</id>` + entry + `</entry></feed>`
	}
	rss := func(item string) string {
		return `<rss version="2.0" xml:base="` + base + `"><channel><title>F</title><item><guid>urn:dense</guid>` + item + `</item></channel></rss>`
	}
	rdf := `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel/><item rdf:about="urn:dense">`
	item := func(members string) string {
		return `{"version":"https://jsonfeed.org/version/1.1","title":"F","items":[{"id":"urn:dense","url":"` + base + `",` + members + `}]}`
	}
	heads, entries := "<title>"+strings.Repeat(`"`, 5000)+"</title>", ""
	for i := range 300 {
		heads += fmt.Sprintf("<author><name>'%d</name></author>", i)
		entries += fmt.Sprintf("<entry><id>urn:%d</id><content>x</content></entry>", i)
	}
	longer := map[string]int{"brackets.atom": 5, "attribute.atom": 5, "srcset.atom": 9, "quotes.rdf": 6, "links.json": 5} // others become four times as long
	documents := map[string]string{
		"quotes.atom":    atom("", "<content>"+text(`"`)+"</content>"),
		"brackets.atom":  atom("", `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">`+section("<")+"</div></content>"),
		"attribute.atom": atom("", "<content>x</content><category term='"+text(`"`)+"'/>"),
		"srcset.atom":    atom("", `<content type="html">`+section(`<img srcset="`+strings.Repeat("p.jpg 1w, ", 50)+`">`+strings.Repeat("words", 1000))+"</content>"),
		"heads.atom":     atom(heads+entries, "<content>x</content>"),
		"left.atom":      atom("<entry><id>urn:sound</id><content>x</content></entry>", `<content type="html">`+section("<a href=x>")+"</content>"),
		"bases.atom":     atom("<entry><id>urn:sound</id><content>x</content></entry>", `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">`+strings.Repeat(`<p xml:base="d/">`, 200)+strings.Repeat("</p>", 200)+"</div></content>"),
		"titles.rss":     rss("<title>" + section("<") + "</title>"),
		"left.rss":       rss("<description>x</description>" + text(`<enclosure url="x"/>`) + "</item><item><guid>urn:sound</guid><description>x</description>"),
		"quotes.rdf":     rdf + "<title>" + text(`"`) + "</title></item></rdf:RDF>",
		"escapes.json":   item(`"content_text":"` + text(`\"`) + `"`),
		"members.json":   item(`"content_text":"x","_x":"` + text("&") + `"`),
		"links.json":     item(`"content_html":"` + text("<a href=x>") + `"`),
	}
	few := len(documents)
	if !feedtest.LongRun() {
		few = 4
	}
	for _, name := range feedtest.Sample(documents, few) {
		document := documents[name]
		t.Run(name, func(t *testing.T) {
			r, served := followed(t, name, document)
			most := cmp.Or(longer[name], 4)*len(document) + 4<<10*(strings.Count(document, "<entry>")+2)
			sound := regexp.MustCompile("urn:sound").FindString(document) // the other entry is to be left out
			id := cmp.Or(sound, "urn:dense")
			for road, walk := range r.roads(served) {
				if strings.Contains(road, "through") || strings.Contains(road, "address") {
					continue // by the same writers once more
				}
				written := ""
				allocated := feedtest.Allocated(func() { written = walk() })
				require.LessOrEqual(t, len(written), most, road)
				require.LessOrEqual(t, int(allocated), 60*most+32<<20, "%s: bytes of memory, most of them freed at once", road)
				require.Contains(t, written, id, road)
				if sound != "" {
					require.NotRegexp(t, "urn:dense|malformed", written, road)
				}
				if sound != "" && !regexp.MustCompile("jsonl|slice|replay").MatchString(road) { // these have no gaps
					require.Regexp(t, `reason"?[=:]"limit"`, written, road)
				}
			}
			page := pageAt(t, served+"/entry?id="+id)
			require.Contains(t, page, id)
			require.LessOrEqual(t, len(page), 7*len(document)+16<<10)
		})
	}
}

// followed returns a run with a document mirrored, and the address of the feed on a server.
func followed(t *testing.T, name, document string) (r *tokenRun, served string) {
	dir, site := serveDirectory(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(document), 0o600))
	r = &tokenRun{T: t, dir: dir, site: site, name: name, db: filepath.Join(t.TempDir(), "m.db")}
	r.call("", "sync --allow-private --db "+r.db+" "+r.address())
	base, _, end := history(t, "--allow-private", "--db", r.db, "--listen", "127.0.0.1:0")
	t.Cleanup(func() { end() })
	return r, base + regexp.MustCompile(`feeds/[^/"?]+`).FindString(pageAt(t, base))
}
