package logins

import (
	"os"
	"path/filepath"
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
