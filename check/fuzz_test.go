package check

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

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
					require.Contains(t, ruleIndex, f.Code)
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
