package command

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A cookie goes to the addresses that it is for, and to no others.
func TestCookies(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cookies.txt")
	require.NoError(t, os.WriteFile(file, []byte("# Netscape HTTP Cookie File\n\n"+
		".example.org\tTRUE\t/\tFALSE\t0\ta\t1\n"+
		"#HttpOnly_example.org\tFALSE\t/members\tTRUE\t4000000000\tb\t2\r\n"+
		"example.org\tFALSE\t/\tFALSE\t1000000000\told\t3\n"+
		"example.com\tFALSE\t/\tFALSE\t0\tother\t4\n"), 0o600))
	now := time.Unix(2000000000, 0)
	for address, want := range map[string]string{
		"https://example.org/members/feed": "a=1; b=2", "http://example.org/members/feed": "a=1", "https://example.org/membership": "a=1",
		"https://sub.example.org/members": "a=1", "https://notexample.org/": "", "https://example.net/": "",
	} {
		got, err := cookiesFor(file, address, now)
		require.NoError(t, err)
		require.Equal(t, want, got, address)
	}
	require.NoError(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	_, err := cookiesFor(file, "https://example.org/", now)
	require.ErrorContains(t, err, "line 1 is not a cookie")
	require.NotContains(t, err.Error(), "s3cret")
}

// Processes that write the credentials at the same time lose nothing.
func TestKeyringTogether(t *testing.T) {
	name := filepath.Join(t.TempDir(), "new", "feeds.db.credentials")
	const processes, feeds = 8, 10
	var all sync.WaitGroup
	for p := range processes {
		all.Go(func() {
			k := NewKeyring(name)
			for i := range feeds {
				feed := fmt.Sprintf("https://example.org/%d/%d", p, i)
				if err := k.Set(map[string]http.Header{feed: {"X-Key": {"k3y"}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	stored, err := NewKeyring(name).Load()
	require.NoError(t, err)
	require.Len(t, stored, processes*feeds)
	files, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	require.Len(t, files, 1, "%v", files)
}

func TestNetrcEntry(t *testing.T) {
	const file = `
# a comment with machine words
machine a.example login ann password "x"
macdef init
machine trap.example login no password no

machine b.example
	account acc
	login machine password p#1
default login anonymous password me
`
	for host, want := range map[string][2]string{
		"a.example": {"ann", `"x"`}, "B.example": {"machine", "p#1"}, "trap.example": {"anonymous", "me"},
	} {
		login, password, ok := netrcEntry(file, host)
		require.True(t, ok)
		require.Equal(t, want, [2]string{login, password}, host)
	}
	_, _, ok := netrcEntry("machine a.example login x", "b.example")
	require.False(t, ok)
	_, _, ok = netrcEntry("machine", "")
	require.True(t, ok) // and has nothing
}
