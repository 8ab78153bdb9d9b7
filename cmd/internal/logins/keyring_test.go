package logins

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Processes that write the credentials at the same time lose nothing.
func TestKeyringTogether(t *testing.T) {
	name := filepath.Join(t.TempDir(), "new", "feeds.db.credentials")
	const processes, feeds = 8, 10
	var all sync.WaitGroup
	for p := range processes {
		all.Go(func() {
			k := &Keyring{Name: name}
			for i := range feeds {
				feed := fmt.Sprintf("https://example.org/%d/%d", p, i)
				if err := k.Set(map[string]http.Header{feed: {"X-Key": {"k3y"}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	stored, err := (&Keyring{Name: name}).Private()
	require.NoError(t, err)
	require.Len(t, stored, processes*feeds)
	files, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	require.Len(t, files, 1, "%v", files)
}
