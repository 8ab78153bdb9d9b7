package togofeed_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/togofeed"
)

// gofeed is the oracle for Feed and Decode: they return what its parser returns for the same
// document, field by field, except for these differences. A pattern matches a file and a
// field; fields of the head section have no dot.
var differences = []struct{ pattern, reason string }{
	{"mended-* *", "gofeed stops at, or skips, places repaired here"},
	{"charset-utf-8-as-iso-8859-1.atom Item.*", "bytes that are valid UTF-8 are read as UTF-8, whatever is declared"},
	{"jsonfeed-windows-1252.json *", "JSON in other charsets is read"},
	{"encoded-twice* *", "text encoded as UTF-8 twice is read as it was meant"},
	{"jsonfeed-items-in-other-case.json Items", "members of JSON Feed are read by their exact names"},
	{"*.atom Item.GUID", "an id is kept character for character (RFC 4287 §4.2.6): not resolved, not normalised, without comments; of two, the first"},
	{"rss10.xml Item.GUID", "RSS 1.0 has its id in rdf:about"},
	{"rss-1-0.rdf Item.GUID", "RSS 1.0 has its id in rdf:about"},
	{"base-nested.atom Item.*", "without an absolute base a reference stays as it is (RFC 3986 §5.1)"},
	{"html-references-xhtml.atom Item.Content", "in HTML the references of pictures in several sizes (`srcset`), buttons and SVG are made absolute, too, and a reference to a place in the same text, such as a footnote, stays"},
	{"base-rss.rss Item.Enclosures", "references in an enclosure resolve, too"},
	{"names-of-atom-in-rss.rss Item.GUID", "an item without a guid may have an Atom id"},
	{"names-of-atom-in-rss.rss Item.Enclosures", "attributes in capitals are read"},
	{"link*-*.* Links", "a link without an address is ignored, a link of another relation does not lead to the site, and the order is the document's"},
	{"base-of-the-document.atom Links", "a link without an address is ignored"},
	{"links-rss-without-namespace.rss Link", "a link of another relation does not lead to the site"},
	{"relation*.atom *Link*", "relations are read as lists, and as IRIs (RFC 4287 §4.2.7.2)"},
	{"markup-not-escaped.rss Item.Description", "escaped text within unescaped markup stays escaped, because it would become markup"},
	{"times-*.* *Parsed", "more dates and zones are read, and the time of day is in the zone"},
	{"atom-draft*.atom *", "the drafts of Atom are read"},
	{"cdata-without-end*.rss *", "gofeed stops at, or skips, places repaired here"},
	{"charset-shift-jis-but-utf-8.rss *", "bytes that are valid UTF-8 are read as UTF-8, whatever is declared"},
	{"entities-of-the-document.rss *", "entities the document declares itself are expanded"},
	{"entries-wrapped* Items", "entries in an element around them are read"},
	{"titles-of-media.rss Item.*", "an item without a title has that of a medium, and its description"},
	{"summary-of-a-medium.rss Item.*", "an item without a title has that of a medium, and its description"},
	{"titles-with-references* *Title", "references in a title of RSS are decoded once more"},
	{"markup-doctype-entities.atom Description", "entities the document declares itself are expanded"},
	{"namespace-*-misspelt.* *", "the nearly right namespaces of the formats are read"},
	{"ids-shared.rss Item.GUID", "items that share a guid, but neither title nor link, have no GUID: their links tell them apart"},
	{"*.atom Item.Author*", "an entry without an author has the feed's (RFC 4287 §4.2.1)"},
}

// TestFeedAgreesWithGofeed compares all documents that gofeed can read. With FEEDS, it shows how
// others differ.
func TestFeedAgreesWithGofeed(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range []string{"../testdata/decode", "../testdata/parse", "../testdata/rfc5005"} {
		for _, file := range feedtest.Glob(t, dir+"/*") {
			for field, values := range compareWithGofeed(t, file) {
				where, known := filepath.Base(file)+" "+field, false
				for _, d := range differences {
					if ok, err := path.Match(d.pattern, where); ok {
						require.NoError(t, err)
						used[d.pattern], known = true, true
					}
				}
				if !known {
					t.Errorf("%s\n  ours: %.500s\ntheirs: %.500s", where, values[0], values[1])
				}
			}
		}
	}
	for _, d := range differences {
		require.True(t, used[d.pattern], "there is no such difference: %s", d.pattern)
	}
}

// TestPageOfDifferences checks that the page for users of gofeed has the whole list.
func TestPageOfDifferences(t *testing.T) {
	page := feedtest.ReadFile(t, "../examples/fromgofeed/README.md")
	for _, d := range differences {
		require.Contains(t, string(page), "\n- "+d.reason+"\n")
	}
}

// TestOtherFeeds shows how other documents are read, for use by hand.
func TestOtherFeeds(t *testing.T) {
	for _, pattern := range strings.Fields(os.Getenv("FEEDS")) {
		for _, file := range feedtest.Glob(t, pattern) {
			for field, values := range compareWithGofeed(t, file) {
				t.Logf("%s %s\n  ours: %.500s\ntheirs: %.500s", file, field, values[0], values[1])
			}
		}
	}
}

// compareWithGofeed returns the fields in which the two readings differ.
func compareWithGofeed(t *testing.T, file string) map[string][2]string {
	data := feedtest.ReadFile(t, file)
	theirs, err := gofeed.NewParser().ParseString(string(data))
	doc, _ := Parse(strings.NewReader(string(data)), "") // gofeed does not know where it was
	if err != nil || doc == nil {
		return nil
	}
	different := map[string][2]string{}
	compare := func(where string, a, b any) {
		ours, theirs := fieldsOf(a), fieldsOf(b)
		for field := range ours {
			if ours[field] != theirs[field] {
				different[where+field] = [2]string{ours[field], theirs[field]}
			}
		}
	}
	ours := togofeed.Document(doc)
	compare("", *ours, *theirs)
	if a, b := fmt.Sprint(len(ours.Items)), fmt.Sprint(len(theirs.Items)); a != b {
		different["Items"] = [2]string{a, b}
		return different
	}
	for i := range ours.Items {
		compare("Item.", *ours.Items[i], *theirs.Items[i])
	}
	return different
}

// fieldsOf returns the fields of one of gofeed's structs as JSON, with times in UTC.
func fieldsOf(value any) map[string]string {
	fields := map[string]string{}
	v := reflect.ValueOf(value)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || field.Name == "Items" {
			continue
		}
		content := v.Field(i).Interface()
		if at, ok := content.(*time.Time); ok && at != nil {
			content = at.UTC()
		}
		text, _ := json.Marshal(content)
		fields[field.Name] = string(text)
	}
	return fields
}
