package feedhistory

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

var update = flag.Bool("update", false, "write what came out as what is wanted")

func TestMain(m *testing.M) { feedtest.Main(m) }

// TestFixtures parses every file that has a golden file: the parsed document as JSON, in a
// file with the same name and ".json".
func TestFixtures(t *testing.T) {
	for _, dir := range []string{"testdata/rfc5005", "testdata/parse"} {
		for _, golden := range feedtest.Glob(t, dir+"/*.*.json") {
			input := strings.TrimSuffix(golden, ".json")
			t.Run(filepath.Base(dir)+"/"+filepath.Base(input), func(t *testing.T) { testFixture(t, input, golden) })
		}
		require.Len(t, feedtest.Glob(t, dir+"/*"), 2*len(feedtest.Glob(t, dir+"/*.*.json")), "a file without its pair")
	}
}

// fixtureBase is the URL of all fixtures.
const fixtureBase = "http://example.net/dir/feed"

func testFixture(t *testing.T, input, golden string) {
	data := feedtest.ReadFile(t, input)
	doc, err := Parse(bytes.NewReader(data), fixtureBase)
	got := describe(t, doc, err)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o666))
	}
	want := feedtest.ReadFile(t, golden)
	require.Equal(t, string(want), got)
	if doc != nil {
		testStandalone(t, doc)
	}
}

// A golden is a document as a golden file shows it. A link is its relation and target.
type golden struct {
	Error     string          `json:"error,omitempty"`
	Damage    string          `json:"damage,omitempty"`
	Format    string          `json:"format,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Combines  []string        `json:"combines,omitempty"`
	Complete  bool            `json:"complete,omitempty"`
	Archive   bool            `json:"archive,omitempty"`
	ID        string          `json:"id,omitempty"`
	Title     string          `json:"title,omitempty"`
	Updated   time.Time       `json:"updated,omitzero"`
	Published time.Time       `json:"published,omitzero"`
	Links     []string        `json:"links,omitempty"`
	Entries   []goldenEntry   `json:"entries,omitempty"`
	Deleted   []goldenDeleted `json:"deleted,omitempty"`
	Notes     []string        `json:"notes,omitempty"` // codes, in order, each once
}

type goldenEntry struct {
	ID        string    `json:"id"`
	WeakID    bool      `json:"weak_id,omitempty"`
	Title     string    `json:"title,omitempty"`
	Updated   time.Time `json:"updated,omitzero"`
	Published time.Time `json:"published,omitzero"`
	Links     []string  `json:"links,omitempty"`
}

type goldenDeleted struct {
	Ref  string    `json:"ref"`
	When time.Time `json:"when,omitzero"`
}

// describe returns the golden of a document and the error that came with it.
func describe(t *testing.T, d *Document, err error) string {
	t.Helper()
	var g golden
	if err != nil {
		g.Error = reasonOf(err).String()
	}
	if d != nil {
		g.Format, g.Kind, g.Complete, g.Archive = d.Format.String(), d.Kind().String(), d.Complete, d.Archive
		g.ID, g.Title, g.Updated, g.Published = d.ID, d.Title, d.Updated.UTC(), d.Published.UTC()
		g.Links, g.Notes = flat(d.Links), codes(d.Notes)
		if damage := d.Damage(d.Kind()); damage != nil {
			g.Damage = damage.Err.Error()
		}
		if kinds := d.Combines(); len(kinds) > 1 {
			for _, k := range kinds {
				g.Combines = append(g.Combines, k.String())
			}
		}
		for _, e := range d.Entries {
			g.Entries = append(g.Entries, goldenEntry{
				ID: e.ID, WeakID: e.WeakID, Title: e.Title().Plain(),
				Updated: e.Updated.UTC(), Published: e.Published.UTC(), Links: flat(e.Links),
			})
		}
		for _, d := range d.Deleted {
			g.Deleted = append(g.Deleted, goldenDeleted{Ref: d.Ref, When: d.When.UTC()})
		}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(g))
	return b.String()
}

func flat(links Links) (flat []string) {
	for _, l := range links {
		flat = append(flat, l.Rel+" "+l.Href)
	}
	return flat
}

// codes returns the notes' codes, each once.
func codes(notes []Note) (codes []string) {
	seen := map[string]bool{}
	for _, n := range notes {
		if !seen[n.Code] {
			codes = append(codes, n.Code)
		}
		seen[n.Code] = true
	}
	return codes
}

// testStandalone checks that each entry's XML alone says what the entry said in its
// document, and that strict readers accept it.
func testStandalone(t *testing.T, doc *Document) {
	for _, e := range doc.Entries {
		if doc.Format == JSONFeed {
			require.True(t, json.Valid(e.JSON()), "%s", e.JSON())
			testReadAgain(t, e, fixtureBase)
			continue
		}
		standalone := string(e.XML())
		d := xml.NewDecoder(strings.NewReader(standalone))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err, standalone)
			}
		}
		testReadAgain(t, e, "http://elsewhere.example/")
	}
}
