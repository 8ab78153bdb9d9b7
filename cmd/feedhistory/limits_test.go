package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish/s3"
)

// A lost lease is reported once, on one line.
func TestLostLeaseInWords(t *testing.T) {
	lost := &s3.Error{Op: "put", Bucket: "b", Key: ".lock", Err: s3.ErrLost}
	err := (&publishCommand{Out: "s3://b/x"}).failure(errors.Join(lost, lost))
	require.ErrorContains(t, err, "s3://b/x: the lock was lost, because")
	require.NotContains(t, err.Error(), "\n")
}

// A file of cookies as curl and yt-dlp write it opens a feed, and only its own host gets
// the cookies that are for it.
func TestCookieFile(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "session=s3cret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><entry><id>urn:1</id></entry></feed>`)
	}))
	file := filepath.Join(t.TempDir(), "cookies.txt")
	require.NoError(t, os.WriteFile(file, []byte("# Netscape HTTP Cookie File\n\n#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\ts3cret\n"+
		".example.org\tTRUE\t/\tFALSE\t0\tother\tx\n127.0.0.1\tFALSE\t/\tFALSE\t1\told\tx\n"), 0o600))
	status, _, _ := call(t.Context(), "", "fetch", "--allow-private", server.URL)
	require.Equal(t, exit.Failed, status)
	status, stdout, stderr := call(t.Context(), "", "fetch", "--allow-private", "--cookies", file, "-v", server.URL)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "urn:1")
	require.NotContains(t, stdout+stderr, "s3cret")
}

// A document beyond a limit is described in plain words.
func TestLimitsInWords(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for want, inside := range map[string]string{
		"elements are nested more than 256 deep":            ">" + many(300, "<a b='%d'>") + strings.Repeat("</a>", 300),
		"an element has more than 256 attributes":           many(300, " a%d=''") + ">",
		"more than 256 namespace declarations are in scope": "><x " + many(200, " xmlns:a%[1]d='urn:%[1]d'") + "><y " + many(200, " xmlns:b%[1]d='urn:%[1]d'") + "/></x>",
		"the document has more than 1000000 elements":       ">" + many(1_000_001, "<a%.0d/>"),
		"more than 50000 entries":                           ">" + many(50_001, "<entry><id>urn:%d</id></entry>"),
	} {
		status, _, stderr := call(t.Context(), `<feed xmlns="http://www.w3.org/2005/Atom" `+inside+"</feed>", "inspect", "-")
		require.Equal(t, exit.Failed, status, want)
		require.Contains(t, said(stderr), "limit: "+want)
	}
}
