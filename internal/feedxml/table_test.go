package feedxml

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each row is found by its name, and only its own; it has a rank in some format, and a place
// unless it is a part of another element.
func TestTable(t *testing.T) {
	for i := range table {
		row := &table[i]
		require.Same(t, row, RowOf(row.Space, row.Name), "%s %s", row.Space, row.Name)
		require.NotZero(t, row.AtomRank+row.RSSRank, row.Name)
		if row.Form != Part && row.Form != Entries && row.Form != Wrapper {
			require.False(t, row.Feed == MeansNothing && row.Entry == MeansNothing, row.Name)
		}
	}
	for local, want := range map[string]string{"GUID": "guid", "PubDate": "pubDate", "textinput": "", "": "", "averyveryverylongname": ""} {
		require.Equal(t, want, rssWords.find(local, true).Name, local)
	}
	require.Same(t, &extension, atomWords.find("Title", false))
	require.Equal(t, "title", atomWords.find("Title", true).Name)
}
