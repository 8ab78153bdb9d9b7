package check

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// Any document, once read, is written without errors, except those that identity
// forbids to mend, and of the history it declares. CORPUS names further documents.
func TestWritten(t *testing.T) {
	patterns := append(strings.Fields(os.Getenv("CORPUS")), "../testdata/parse/*", "../testdata/decode/*", "../testdata/rfc5005/*")
	kept := map[string]bool{ // what the publisher says of history and identity
		"not-absolute-iri": true, "id-missing": true, "combined-kinds": true, "complete-with-history-link": true, "complete-current-not-self": true,
		"link-past-end": true, "relation-repeated": true,
	}
	for _, pattern := range patterns {
		for _, file := range feedtest.Glob(t, pattern) {
			doc, _ := feedhistory.Parse(strings.NewReader(string(feedtest.ReadFile(t, file))), documentBase)
			if doc == nil {
				continue
			}
			for _, format := range []feedhistory.Format{feedhistory.Atom, feedhistory.RSS} {
				var b strings.Builder
				require.NoError(t, feedhistory.NewWriter(&b, format, doc).Close(), file)
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
