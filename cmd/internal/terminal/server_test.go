package terminal

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

func TestAddress(t *testing.T) {
	for _, any := range []string{"127.0.0.1:0", ":0", "0.0.0.0:0"} {
		l, err := net.Listen("tcp", any)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", AddressOf(l))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		_ = l.Close()
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"/var/feeds.db": "/var/feeds.db", "my feeds.db": "'my feeds.db'", "it's": `'it'\''s'`, "": "''", "$(x)": "'$(x)'"} {
		require.Equal(t, want, ShellWord(word))
	}
}

func TestListen(t *testing.T) {
	l, err := ListenAt("127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = ListenAt(Listen(l.Addr().String()))
	require.EqualError(t, err, "--listen: "+l.Addr().String()+": address already in use; another program listens there: give another port, or 0 for any free one")
}

// An answer that is under way when the server ends is given; later requests are not
// taken.
func TestServe(t *testing.T) {
	l, err := ListenAt("127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan string, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		require.Equal(t, "ending", <-said)
		require.NoError(t, r.Context().Err())
		_, _ = io.WriteString(w, "whole")
	})}
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, server, l, func() { said <- "ending" }) }()
	resp, err := http.Get("http://" + AddressOf(l) + "/")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "whole", string(body))
	http.DefaultClient.CloseIdleConnections()
	require.NoError(t, <-ended)
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
}
