//go:build unix

package check

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

// Whatever a document repeats, and wherever, its check takes time in proportion. A quadratic
// one takes 64 times as long for eight times as much; the bound is far from both.
func TestCheckScales(t *testing.T) {
	feedtest.Long(t)
	units := []string{
		"<b>A", "<b>", "<id>A", "<title>A", "<link>", "<updated>A", "<summary>A", "<content>A", "<guid>A", "<pubDate>A", "<entry>", "<item>",
		"<fh:archive>", "<at:deleted-entry>", "<os:totalResults>1", "</b>", "<!--", "<![CDATA[", "<?a", "&a", "]]>", "<a b=", "<b><i>A</b>",
	}
	forms := map[string]string{
		"atom head": "<feed %s xmlns='http://www.w3.org/2005/Atom'><title>t</title>%s<entry><id>urn:1</id></entry></feed>",
		"entry":     "<feed %s xmlns='http://www.w3.org/2005/Atom'><title>t</title><entry><id>urn:1</id>%s</entry></feed>",
		"channel":   "<rss %s><channel><title>t</title>%s<item><guid>urn:1</guid></item></channel></rss>",
		"item":      "<rss %s><channel><title>t</title><item><guid>urn:1</guid>%s</item></channel></rss>",
	}
	const spaces = "xmlns:fh='http://purl.org/syndication/history/1.0' xmlns:at='http://purl.org/atompub/tombstones/1.0' xmlns:os='http://a9.com/-/spec/opensearch/1.1/'"
	for place, form := range forms {
		for _, unit := range units {
			t.Run(place+" "+unit, func(t *testing.T) {
				cost := func(n int) time.Duration {
					text := fmt.Sprintf(form, spaces, strings.Repeat(unit, n))
					before := processorTime(t)
					doc, err := feedhistory.Parse(strings.NewReader(text), "https://example.org/feed")
					Document(doc, err, 0)
					return processorTime(t) - before
				}
				least := 1e9
				for try := 0; try < 5 && least > 24; try++ {
					least = min(least, float64(cost(8*500))/float64(max(cost(500), 500*time.Microsecond)))
				}
				require.LessOrEqual(t, least, 24.0, "times as much for eight times as many")
			})
		}
	}
}

// processorTime returns the time the process has computed so far.
func processorTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano())
}
