package feedtest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Units are pieces of markup that fuzzers repeat: whatever has to be mended, closed, looked up or
// compared costs time for each of the others, where somebody has been careless.
var Units = []string{
	"<b>A", "<b>", "<id>A", "<title>A", "<link>", "<updated>A", "<summary>A", "<content>A", "<guid>A", "<pubDate>A", "<entry>", "<item>",
	"<fh:archive>", "<at:deleted-entry>", "<os:totalResults>1", "</b>", "<!--", "<![CDATA[", "<?a", "&a", "]]>", "<a b=", "<b><i>A</b>",
}

// Places are documents with a place where units are repeated.
var Places = map[string]string{
	"atom head": "<feed " + spaces + " xmlns='http://www.w3.org/2005/Atom'><title>t</title>%s<entry><id>urn:1</id></entry></feed>",
	"entry":     "<feed " + spaces + " xmlns='http://www.w3.org/2005/Atom'><title>t</title><entry><id>urn:1</id>%s</entry></feed>",
	"channel":   "<rss " + spaces + "><channel><title>t</title>%s<item><guid>urn:1</guid></item></channel></rss>",
	"item":      "<rss " + spaces + "><channel><title>t</title><item><guid>urn:1</guid>%s</item></channel></rss>",
}

const spaces = "xmlns:fh='http://purl.org/syndication/history/1.0' xmlns:at='http://purl.org/atompub/tombstones/1.0' xmlns:os='http://a9.com/-/spec/opensearch/1.1/'"

// Repeated returns a document with a unit n times in its place.
func Repeated(document, unit string, n int) string {
	return strings.Replace(document, "%s", strings.Repeat(unit, n), 1)
}

// Sample returns n of the names of documents: the same ones in each run.
func Sample(documents map[string]string, n int) []string {
	names := slices.Sorted(maps.Keys(documents))
	random := rand.New(rand.NewPCG(5005, 0))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:n]
}
