package publish

import (
	"io/fs"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// checkChain checks what Fetch does not look at: that every link of every
// reachable document leads to a document that links back. Between a crash and
// the next call, an archive may already have its new successor.
func checkChain(t require.TestingT, out fs.FS, p *Publisher) {
	if _, err := fs.Stat(out, p.name()); isNotExist(err) {
		return
	}
	reader := Publisher{Output: readOnly{FS: out}}
	read := func(name string) *archive {
		a, err := at(&reader).archive(name)
		require.NoError(t, err)
		return a
	}
	href := func(a *archive, rel string) string {
		l, _ := a.doc.Links.Rel(rel)
		return strings.TrimPrefix(l.Href, base)
	}
	newer := read(p.name())
	require.False(t, newer.doc.Archive)
	require.Empty(t, href(newer, feedhistory.RelNextArchive), "the subscription document is no archive")
	newest := true
	for name := newer.prev; name != ""; name = newer.prev {
		a := read(name)
		require.True(t, a.doc.Archive, "5005#14")
		require.Equal(t, name, href(a, feedhistory.RelSelf))
		require.Equal(t, p.name(), href(a, feedhistory.RelCurrent), "5005#13")
		next := href(a, feedhistory.RelNextArchive)
		require.True(t, newest || next != "", "5005#12")
		if next != "" {
			require.Equal(t, name, read(next).prev, "5005#15")
		}
		newer, newest = a, false
	}
}

// readOnly is an output that refuses writes.
type readOnly struct {
	fs.FS
	Output
}

func (r readOnly) Open(name string) (fs.File, error) { return r.FS.Open(name) }
