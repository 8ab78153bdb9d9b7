package compose_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// What is written is XML for other parsers, too, in both formats, whatever was read.
func TestWrittenIsXML(t *testing.T) {
	texts := map[string]string{}
	for _, pattern := range []string{"../testdata/rfc5005/*", "../testdata/parse/*", "../testdata/decode/*", "../testdata/rich/*"} {
		for _, file := range feedtest.Glob(t, pattern) {
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				texts[file] = string(feedtest.ReadFile(t, file))
			}
		}
	}
	for i, unit := range feedtest.Disputed {
		for place, document := range feedtest.Places {
			texts[fmt.Sprint(place, i)] = feedtest.Repeated(document, unit, 1)
			root, rest, _ := strings.Cut(document, " ")
			attributes, isElement := strings.CutPrefix(unit, "<x ")
			if attributes, _, closed := strings.Cut(attributes, "/>"); isElement && closed {
				texts[fmt.Sprint(place, i, "root")] = feedtest.Repeated(root+" "+attributes+" "+rest, "", 1)
			}
		}
		text, err := compose.Draft{ID: "urn:1", Title: Text{Body: unit}, Content: Text{Type: "html", Body: unit}}.Entry()
		if err == nil {
			texts[fmt.Sprint("draft", i)] = string(text.XML())
		}
		texts[fmt.Sprint("json", i)] = fmt.Sprintf(`{"version":"https://jsonfeed.org/version/1.1","title":%q,"items":[{"id":"1","title":%[1]q,"content_html":%[1]q,"_%[2]d":{"a":%[1]q}}]}`, unit, i)
	}
	written := map[string][]byte{}
	for name, text := range texts {
		doc, _ := parse(text, "http://example.org/feed")
		if doc == nil {
			continue
		}
		for format, write := range map[string]func(io.Writer, *Document) error{"atom": compose.WriteAtom, "rss": compose.WriteRSS} {
			var b bytes.Buffer
			if err := write(&b, doc); err != nil {
				require.True(t, isLimit(err), "%s: %v", name, err)
				continue
			}
			written[name+"."+format] = b.Bytes()
		}
		for i, e := range doc.Entries {
			if e.XML() != nil {
				written[fmt.Sprint(name, " entry ", i)] = e.XML()
			}
		}
	}
	require.Greater(t, len(written), 4*len(feedtest.Disputed))
	feedtest.Lint(t, written)
}
