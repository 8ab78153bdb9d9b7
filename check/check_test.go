package check

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

// documentBase is the URL of the documents in fixtures, unless one has a
// different base.
const documentBase = "https://example.org/dir/feed"

// extension returns the extension of a format's files.
func extension(f feedhistory.Format) string {
	return strings.TrimSuffix(string(f), "feed")
}

func archive(t testing.TB, file string) *feedtest.Archive {
	t.Helper()
	text := feedtest.ReadFile(t, file)
	return feedtest.Parse(string(text))
}

// codes returns the codes of findings, each once, in order.
func codes(findings []Finding) []string {
	out := []string{}
	for _, f := range findings {
		out = append(out, f.Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestDocuments reads, for every rule and each of its formats, a document that
// breaks just this rule, and a similar one that breaks none. The archives may
// have several of both: raises-2.atom.
//
// Duties: atom-pmh#30, atom-pmh#31, 5005#2, 5005#5.
func TestDocuments(t *testing.T) {
	files := map[string]bool{}
	for _, r := range Rules() {
		if r.Scope != OneDocument {
			continue
		}
		file := "testdata/documents/" + r.Code + ".txtar"
		files[file] = true
		t.Run(r.Code, func(t *testing.T) {
			a := archive(t, file)
			for _, format := range r.Formats {
				for _, kind := range []string{"raises.", "clean."} {
					_, ok := a.File(kind + extension(format))
					require.True(t, ok, "there is no %s%v", kind, format)
				}
			}
			for _, f := range a.Files {
				switch {
				case strings.HasPrefix(f.Name, "clean"):
					require.Empty(t, fixture(t, a, f), f.Name)
				case strings.HasPrefix(f.Name, "raises"):
					found := fixture(t, a, f)
					require.Equal(t, []string{r.Code}, codes(found), "%s: %v", f.Name, found)
					for _, f := range found {
						testFinding(t, f, r)
					}
				}
			}
		})
	}
	found := feedtest.Glob(t, "testdata/documents/*")
	require.Len(t, found, len(files), "a file without a rule")
}

// An RSS document without a channel is not a sound feed, even if it has items.
func TestNoChannel(t *testing.T) {
	for _, text := range []string{
		`<rss version="2.0"/>`,
		`<rss version="2.0"><item><title>One</title><guid isPermaLink="false">1</guid></item></rss>`,
		`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"/>`,
	} {
		doc, err := feedhistory.Parse(strings.NewReader(text), documentBase)
		found := Document(doc, err, RFC5005)
		require.Equal(t, []string{"rss-element-missing", "rss-without-lastBuildDate", "self-missing"}, codes(found), text)
		require.Equal(t, "there is no channel", found[slices.IndexFunc(found, func(f Finding) bool { return f.Code == "rss-element-missing" })].Message)
	}
}

// fixture checks one document of a fixture. Its Content-Type is in the file that has
// the name with type- before it.
func fixture(t *testing.T, a *feedtest.Archive, f feedtest.File) []Finding {
	t.Helper()
	base := documentBase
	if given, ok := a.File("base"); ok {
		base = strings.TrimSpace(given)
	}
	var p feedhistory.Parser
	if kind, ok := a.File("type-" + f.Name); ok {
		p.Header = http.Header{"Content-Type": {strings.TrimSpace(kind)}}
	}
	doc, err := p.Parse(strings.NewReader(new(feedtest.Site).Expand(f.Data)), base)
	return Document(doc, err, profile(a))
}

func profile(a *feedtest.Archive) Profile {
	if name, _ := a.File("profile"); strings.TrimSpace(name) == AtomPMH.String() {
		return AtomPMH
	}
	return RFC5005
}

func testFinding(t *testing.T, f Finding, r Rule) {
	t.Helper()
	require.Equal(t, r.Level, f.Level)
	require.Equal(t, r.Clause, f.Clause)
	require.NotEmpty(t, f.Clause)
	require.NotEmpty(t, f.Message)
	require.NotEmpty(t, f.Hint)
	require.NotContains(t, f.Message, "%!", "a format without its value")
	require.NotContains(t, f.String(), "\n")
}

func parse(t testing.TB, text string) []Finding {
	t.Helper()
	doc, err := feedhistory.Parse(strings.NewReader(text), documentBase)
	return Document(doc, err, RFC5005)
}

// The RFC's own examples, as corrected, have no findings.
func TestExamples(t *testing.T) {
	for _, pattern := range []string{"*.atom", "*.rss"} {
		files := feedtest.Glob(t, "../testdata/rfc5005/"+pattern)
		require.Len(t, files, 4)
		for _, file := range files {
			text := feedtest.ReadFile(t, file)
			for _, f := range parse(t, string(text)) {
				require.Equal(t, Note, f.Level, "%s: %v", file, f)
			}
		}
	}
}

// Nor do they as chains, except about the server's answers.
func TestExampleChains(t *testing.T) {
	for _, name := range []string{"archived-atom", "archived-rss", "paged-atom"} {
		a := archive(t, "../conformance/cases/walk/rfc5005-"+name+".txtar")
		feed := a.Files[0].Name
		for _, f := range walkFixture(t, a, feed) {
			own := !strings.Contains(f.URL, "/2003/04/") // an archive that the RFC does not show
			if own && f.Code != "validators-missing" {
				require.Equal(t, Note, f.Level, "%s: %v", name, f)
			}
		}
	}
}

// Every leniency of the parser has a rule, or makes a document not well-formed.
func TestLeniencies(t *testing.T) {
	call := regexp.MustCompile(`(?:\b(?:note|recovered|damaged)\(|\bNote{Code: )"([a-z-]+)"`)
	n, used := 0, map[string]bool{}
	for _, dir := range []string{"..", "../internal/xmlscan"} {
		files, err := filepath.Glob(dir + "/*.go")
		require.NoError(t, err)
		for _, file := range files {
			source := feedtest.ReadFile(t, file)
			for _, m := range call.FindAllSubmatch(source, -1) {
				n++
				code := string(m[1])
				if used[code] = true; !mended[code] {
					require.Contains(t, ruleIndex(), code, "%s has a note without a rule", file)
				}
			}
		}
	}
	require.Greater(t, n, 20)
	for code := range mended {
		require.True(t, used[code], "there is no note %s", code)
	}
}

func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		require.False(t, seen[r.Code], r.Code)
		seen[r.Code] = true
		require.NotEmpty(t, r.Clause, r.Code)
		if r.Level == Error {
			require.Regexp(t, `§|RSS 2\.0|JSON Feed 1\.1`, r.Clause, "%s: an error cites the section", r.Code)
		}
		require.NotEmpty(t, r.Summary, r.Code)
		require.NotEmpty(t, r.Hint, r.Code)
		require.Equal(t, r.Scope == PagesOfEntities, len(r.Formats) == 0, r.Code)
		require.Equal(t, r.Profile == AtomPMH, strings.HasPrefix(r.Code, "pmh-"), r.Code)
		require.Equal(t, r.Profile == DataReplication, strings.HasPrefix(r.Code, "dr-"), r.Code)
		require.Equal(t, r.Profile == ModifiedRange, strings.HasPrefix(r.Code, "mr-"), r.Code)
	}
}

// RULES.md is as one writes the rules it has: each row is read to its end.
func TestTable(t *testing.T) {
	_, rows, ok := strings.Cut(string(feedtest.ReadFile(t, "RULES.md")), "\n\n|")
	require.True(t, ok)
	require.Equal(t, table(), "|"+rows)
}

func TestPlaces(t *testing.T) {
	found := parse(t, "<feed xmlns=\"http://www.w3.org/2005/Atom\"\n xmlns:fh=\"http://purl.org/syndication/history/1.0\"><id>urn:1</id>"+
		"<updated>2003-12-13T18:30:02Z</updated><link rel=\"self\" href=\"\"/>\n<title>日本語</title>\t<fh:complete>no</fh:complete>\r\n</feed>")
	require.Len(t, found, 1)
	f := found[0]
	require.Equal(t, "flag-not-empty", f.Code)
	require.Equal(t, documentBase+":3:20", f.Where())
	require.Equal(t, Quote{"<title>日本語</title>\t", "<fh:complete>no</fh:complete>"}, f.Quote)
	require.Equal(t, documentBase+":3:20: error: "+f.Message+" [flag-not-empty, RFC 5005 §2, 5005#2]", f.String())
	f.URL = ""
	require.Equal(t, "3:20", f.Where())
	f.Line = 0
	require.Equal(t, "", f.Where())
	require.Equal(t, "error: "+f.Message+" [flag-not-empty, RFC 5005 §2, 5005#2]", f.String())
}

// A mistake that is made a thousand times is reported twenty times.
func TestMany(t *testing.T) {
	found := parse(t, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:1</id><title/><updated>2003-12-13T18:30:02Z</updated><link rel="self" href=""/>`+
		strings.Repeat("<entry><title/><updated>2003-12-13T18:30:02Z</updated></entry>", 1000)+"</feed>")
	require.Len(t, found, mostOfACode)
	require.Contains(t, found[mostOfACode-1].Message, "980 more")
	require.NotContains(t, found[0].Message, "more")
}

// A quotation is short, however long the line is.
func TestQuoteIsShort(t *testing.T) {
	long := strings.Repeat("é", 1000)
	found := parse(t, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:1</id><updated>2003-12-13T18:30:02Z</updated><link rel="self" href=""/><title>`+long+
		`</title><link rel="Next" href="/2"/><subtitle>`+long+"</subtitle></feed>")
	require.Len(t, found, 1)
	require.LessOrEqual(t, len(found[0].Quote.Before), quoteBefore)
	require.LessOrEqual(t, len(found[0].Quote.After), quoteAfter)
}

// Links from the HTTP header count, but have no place.
func TestHeaderLinks(t *testing.T) {
	p := feedhistory.Parser{Header: map[string][]string{"Link": {`</1>; rel="next-archive"`}}}
	doc, err := p.Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:1</id><title/><updated>2003-12-13T18:30:02Z</updated><link rel="self" href=""/></feed>`), documentBase)
	require.NoError(t, err)
	found := Document(doc, nil, RFC5005)
	require.Equal(t, []string{"archive-unmarked"}, codes(found))
	require.Zero(t, found[0].Line)
}

// A document that a program has built has no text; its model is checked.
func TestDocumentWithoutText(t *testing.T) {
	found := Document(&feedhistory.Document{
		Format: feedhistory.FormatAtom, ID: "1", Archive: true, Entries: []*feedhistory.Entry{{ID: "urn:1"}},
		Links: feedhistory.Links{{Rel: "self", Href: documentBase}},
	}, nil, AtomPMH)
	require.Equal(t, []string{"archive-without-current", "archive-without-links", "not-absolute-iri", "pmh-time-missing"}, codes(found))
}

func TestNoDocument(t *testing.T) {
	for _, test := range []struct {
		err  error
		code string
	}{
		{nil, "document-unavailable"},
		{errors.New("odd"), "document-unavailable"},
		{&feedhistory.FetchError{Reason: feedhistory.ReasonStatus, Status: 404}, "document-unavailable"},
		{&feedhistory.FetchError{Reason: feedhistory.ReasonLimit, Err: &http.MaxBytesError{Limit: 1}}, "limit-exceeded"},
		{&feedhistory.FetchError{Reason: feedhistory.ReasonTruncated, Err: errors.New("EOF")}, "truncated"},
		{&feedhistory.ParseError{Reason: feedhistory.ReasonNotFeed, Err: errors.New("x")}, "not-a-feed"},
	} {
		found := Document(nil, test.err, RFC5005)
		require.Len(t, found, 1)
		require.Equal(t, test.code, found[0].Code)
		require.True(t, HasErrors(found))
	}
	require.False(t, HasErrors([]Finding{{Level: Warning}, {Level: Note}}))
}

// The feed begins with next-archive, and goes back in time.
func TestReversedFeed(t *testing.T) {
	a := archive(t, "../conformance/cases/walk/relations-reversed.txtar")
	found := walkFixture(t, a, a.Files[0].Name)
	require.Contains(t, codes(found), "next-archive-older")
	require.NotContains(t, codes(found), "not-the-beginning")
}

// Whatever the feeds of the library's own tests do, a check comes to its end.
func TestWalks(t *testing.T) {
	files := feedtest.Glob(t, "../conformance/cases/walk/*.txtar")
	more, err := filepath.Glob("../testdata/walk/*.txtar")
	require.NoError(t, err)
	files = append(files, more...)
	for _, file := range files {
		a := archive(t, file)
		text := a.String()
		if slow := regexp.MustCompile(`Status: (5\d\d|429|none)|Retry-After|repeat \d{4}`); slow.MatchString(text) {
			continue
		}
		a.Set("budget", "60\n")
		for _, f := range walkFixture(t, a, a.Files[0].Name) {
			require.NotContains(t, f.Message, "%!", file)
			require.NotEmpty(t, f.Clause, file)
		}
	}
}

func TestWalkEnds(t *testing.T) {
	a := archive(t, "testdata/chains/cycle.txtar")
	site := feedtest.Serve(t, a.String())
	client := &feedhistory.Client{AllowPrivate: true}
	defer client.CloseIdle()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range new(Chain).Check(ctx, client, site.URL+"/raises/feed.atom") {
		require.ErrorIs(t, err, context.Canceled)
	}
	n := 0
	for range new(Chain).Check(t.Context(), client, site.URL+"/raises/feed.atom") {
		n++
		break
	}
	require.Equal(t, 1, n)
	require.Empty(t, new(Chain).Finish(), "nothing was checked")
}

// A name that this reader takes for id or updated is none to others, and so is one in another
// place than an entry's.
func TestMisspelt(t *testing.T) {
	for entry, want := range map[string][]string{
		"<ID>urn:1</ID><title>1</title><updated>2003-12-13T18:30:02Z</updated>":             {"id-missing", "name-misspelt"},
		"<id>urn:1</id><title>1</title><Updated>2003-12-13T18:30:02Z</Updated>":             {"name-misspelt", "updated-missing"},
		"<id>urn:1</id><Title>1</Title><updated>2003-12-13T18:30:02Z</updated>":             {"name-misspelt", "title-missing"},
		`<id>urn:1</id><title>1</title><updated>2003-12-13T18:30:0<!-- -->2&#90;</updated>`: {},
		"<id><![CDATA[urn:1]]></id><title/><updated>2003-12-13T18:30:02Z</updated>":         {},
		`<id xmlns="">1</id><title>1</title><updated>2003-12-13T18:30:02Z</updated>`:        {"id-missing"},
	} {
		found := parse(t, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title><updated>2003-12-13T18:30:02Z</updated><link rel="self" href="`+documentBase+`"/><entry>`+entry+`</entry></feed>`)
		require.Equal(t, want, codes(found), "%s: %v", entry, found)
	}
}

// A sarifLog is a log by SARIF 2.1.0. Unknown members make a test fail.
type sarifLog struct {
	Schema  string `json:"$schema"`
	Version string
	Runs    []struct {
		Tool struct {
			Driver struct {
				Name, Version, InformationURI string
				Rules                         []struct {
					ID, HelpURI            string
					ShortDescription, Help sarifMessage
					FullDescription        sarifMessage
					DefaultConfiguration   struct{ Level Level }
					Properties             struct{ Clause string }
				}
			}
		}
		ColumnKind string
		Results    []struct {
			RuleID    string
			RuleIndex int
			Level     Level
			Message   sarifMessage
			Locations []struct {
				Physical struct {
					Artifact struct{ URI string } `json:"artifactLocation"`
					Region   *struct {
						Line   int `json:"startLine"`
						Column int `json:"startColumn"`
					}
				} `json:"physicalLocation"`
			}
		}
	}
}

type sarifMessage struct{ Text string }

func TestSARIF(t *testing.T) {
	var out strings.Builder
	found := parse(t, `<feed xmlns="http://www.w3.org/2005/Atom"><id>1</id><title/><updated>2003-12-13T18:30:02Z</updated><entry><title/><updated>2003-12-13T18:30:02Z</updated></entry><entry><title/><updated>2003-12-13T18:30:02Z</updated></entry></feed>`)
	require.Len(t, found, 4)
	found[0].URL, found[1].URL = "a dir/ü.atom", ""
	require.NoError(t, WriteSARIF(&out, found))
	var log sarifLog
	dec := json.NewDecoder(strings.NewReader(out.String()))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&log))
	require.Equal(t, "2.1.0", log.Version)
	require.Len(t, log.Runs, 1)
	run := log.Runs[0]
	require.Contains(t, []string{"unicodeCodePoints", "utf16CodeUnits"}, run.ColumnKind)
	require.NotEmpty(t, run.Tool.Driver.Name)
	require.Len(t, run.Tool.Driver.Rules, 3)
	require.Len(t, run.Results, 4)
	for _, rule := range run.Tool.Driver.Rules {
		require.Contains(t, rule.FullDescription.Text, rule.Properties.Clause)
		require.Contains(t, rule.FullDescription.Text, rule.ShortDescription.Text)
		require.Contains(t, rule.FullDescription.Text, rule.Help.Text)
		require.NotEmpty(t, rule.HelpURI)
	}
	for _, r := range run.Results {
		require.Equal(t, r.RuleID, run.Tool.Driver.Rules[r.RuleIndex].ID)
		require.NotEmpty(t, r.Message.Text)
		for _, l := range r.Locations {
			require.NotContains(t, l.Physical.Artifact.URI, " ", "a URI reference")
			require.Positive(t, l.Physical.Region.Line)
			require.Positive(t, l.Physical.Region.Column)
		}
	}
	require.Equal(t, "a%20dir/%C3%BC.atom", run.Results[0].Locations[0].Physical.Artifact.URI)
	require.Empty(t, run.Results[1].Locations)

	out.Reset()
	require.NoError(t, WriteSARIF(&out, nil))
	require.Contains(t, out.String(), `"results": []`)
	require.Contains(t, out.String(), `"rules": []`)
}

func TestDigestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "digests.json")
	d, err := ReadDigests(file)
	require.NoError(t, err, "there need not be one yet")
	chain := Chain{Digests: d}
	a := archive(t, "testdata/chains/archive-changed.txtar")
	site := feedtest.Serve(t, a.String())
	client := &feedhistory.Client{AllowPrivate: true}
	defer client.CloseIdle()
	require.Empty(t, walkAll(t.Context(), &chain, client, site.URL+"/raises/feed.atom"))
	require.NoError(t, d.Write(file))

	d, err = ReadDigests(file)
	require.NoError(t, err)
	chain = Chain{Digests: d}
	found := walkAll(t.Context(), &chain, client, site.URL+"/raises/feed.atom")
	require.Equal(t, []string{"archive-changed"}, codes(found))
	require.Contains(t, found[0].Message, "the number of entries is 2; at an earlier run, there were 1; new: urn:0")
	require.Error(t, d.Write(filepath.Join(file, "no", "such", "directory")))
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file stays")

	require.NoError(t, os.WriteFile(file, []byte("<html>"), 0o600))
	_, err = ReadDigests(file)
	require.ErrorContains(t, err, "not a file of digests")
}

func TestNames(t *testing.T) {
	for _, r := range Rules() {
		require.Contains(t, []Level{Note, Warning, Error}, r.Level, r.Code)
		require.Contains(t, []Scope{OneDocument, WholeChain, PagesOfEntities, Representations, RangesOfItems}, r.Scope, r.Code)
	}
	require.Equal(t, "rfc5005 atom-pmh", RFC5005.String()+" "+AtomPMH.String())
}

func TestDifferences(t *testing.T) {
	had := entries{"a": "1 x", "b": "1 x", "c": "1 x", "d": "1 x"}
	for want, has := range map[string]entries{
		"": {"a": "1 x", "b": "1 x", "c": "1 x", "d": "1 y"},
		"; new: e; gone: a, b; with a different time: c": {"c": "2 x", "d": "1 x", "e": "1 x"},
		"; gone: a, b, c and 1 more":                     {},
	} {
		require.Equal(t, want, differences(had, has))
	}
}

// Digests of an earlier release have no single entries, but can still be
// compared.
func TestOlderDigestFile(t *testing.T) {
	a := archive(t, "testdata/chains/archive-changed.txtar")
	site := feedtest.Serve(t, a.String())
	client := &feedhistory.Client{AllowPrivate: true}
	defer client.CloseIdle()
	d := new(Digests)
	require.Empty(t, walkAll(t.Context(), &Chain{Digests: d}, client, site.URL+"/raises/feed.atom"))
	text, err := d.MarshalJSON()
	require.NoError(t, err)
	older := new(Digests)
	require.NoError(t, older.UnmarshalJSON(text))
	older.entries = nil
	found := walkAll(t.Context(), &Chain{Digests: older}, client, site.URL+"/raises/feed.atom")
	require.Equal(t, []string{"archive-changed"}, codes(found))
	require.Contains(t, found[0].Message, "at an earlier run, there were 1")
	require.NotContains(t, found[0].Message, "new:")
}

// Whatever a document is, readable or not, checking it ends without a panic,
// and every finding has a rule, and a place that exists.
func FuzzDocument(f *testing.F) {
	n := 0
	for _, pattern := range []string{"../testdata/parse/*", "../testdata/rfc5005/*", "testdata/documents/*"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			if strings.HasPrefix(pattern, "testdata") {
				for _, part := range archive(f, file).Files {
					f.Add(part.Data)
				}
				continue
			}
			text := feedtest.ReadFile(f, file)
			f.Add(string(text))
			n++
		}
	}
	require.NotZero(f, n)
	f.Fuzz(func(t *testing.T, text string) {
		for _, base := range []string{documentBase, ""} {
			doc, err := feedhistory.Parse(strings.NewReader(text), base)
			lines := 0
			if doc != nil {
				lines = strings.Count(doc.Text(), "\n") + 1
			}
			for _, profile := range []Profile{RFC5005, AtomPMH} {
				for _, f := range Document(doc, err, profile) {
					require.Contains(t, ruleIndex(), f.Code)
					if doc != nil {
						require.LessOrEqual(t, f.Line, lines)
					}
				}
				if doc != nil {
					c := Chain{Profile: profile}
					c.Add(doc)
					c.Add(doc)
					c.Finish()
				}
			}
		}
	})
}

// table returns the rules as a table in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| code | level | seen in | formats | clause | what is wrong | what to write instead |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	escape := strings.NewReplacer("|", `\|`, "<", `\<`, "&", `\&`, "*", `\*`, "_", `\_`)
	for _, r := range Rules() {
		cells := []string{
			"`" + r.Code + "`", string(r.Level), string(r.Scope), formats(r.Formats), escape.Replace(r.Clause),
			escape.Replace(r.Summary), escape.Replace(r.Hint),
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

func formats(list []feedhistory.Format) string {
	if len(list) == 0 {
		return "multipart"
	}
	if len(list) == 3 {
		return "all"
	}
	var names []string
	for _, f := range list {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// Any document, once read, is written without errors, except those that identity
// forbids to mend, and of the history it declares. An entry is copied as published, with
// white space around its id. CORPUS names further documents.
func TestWritten(t *testing.T) {
	patterns := append(strings.Fields(os.Getenv("CORPUS")), "../testdata/parse/*", "../testdata/decode/*", "../testdata/rfc5005/*")
	kept := map[string]bool{ // what the publisher says of history and identity
		"not-absolute-iri": true, "id-missing": true, "id-shared": true, "white-space-around": true, "combined-kinds": true, "complete-with-history-link": true, "complete-current-not-self": true,
		"link-past-end": true, "relation-repeated": true, "deleted-entry-when": true,
	}
	for _, pattern := range patterns {
		for _, file := range feedtest.Glob(t, pattern) {
			doc, _ := feedhistory.Parse(strings.NewReader(string(feedtest.ReadFile(t, file))), documentBase)
			if doc == nil {
				continue
			}
			for _, format := range []feedhistory.Format{feedhistory.FormatAtom, feedhistory.FormatRSS} {
				var b strings.Builder
				require.NoError(t, compose.NewWriter(&b, format, doc).Close(), file)
				testStrictXML(t, file, b.String())
				again, err := feedhistory.Parse(strings.NewReader(b.String()), documentBase)
				require.NoError(t, err, file)
				for _, f := range Document(again, nil, RFC5005) {
					require.True(t, f.Level != Error || kept[f.Code], "%s as %v: %v\n%s", file, format, f, b.String())
				}
			}
		}
	}
}

func testStrictXML(t *testing.T, file, text string) {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, "%s\n%s", file, text)
	}
}

// Findings have places also where the reader is more lenient than the format.
func TestPlacesOfTheReader(t *testing.T) {
	for text, want := range map[string][2]int{
		"<rss version=\"2.0\"><channel><title>F</title><items>\n<item><title>T</title><guid>1</guid></item></items></channel></rss>":                              {2, 23},
		"<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>F</title><entries>\n<entry><title>T</title><id>1</id></entry></entries></feed>":                       {2, 24},
		"<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>F</title>\n<entry><title>T</title><ID>1</ID></entry></feed>":                                          {2, 1},
		"<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\"><channel/>\n<item><guid>1</guid></item></rdf:RDF>": {2, 7},
	} {
		doc, err := feedhistory.Parse(strings.NewReader(text), documentBase)
		require.NoError(t, err)
		found := Document(doc, err, RFC5005)
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Code == "not-absolute-iri" || f.Code == "id-missing" && f.Line > 1 })
		require.GreaterOrEqual(t, i, 0, "%s: %v", text, found)
		require.Equal(t, want, [2]int{found[i].Line, found[i].Column}, text)
	}
}
