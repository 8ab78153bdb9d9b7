package republish

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two hundred clients that request a document with large entries, and do not
// read it, hold no more memory than a few.
func TestClientsThatDoNotRead(t *testing.T) {
	const clients, entry = 200, 2 << 20
	store, put := damagedStore(t, 0)
	put(0, soundEntry(0))
	for n := range 4 {
		put(20+n, strings.Replace(soundEntry(20+n), "</entry>", "<summary>"+strings.Repeat("x", entry)+"</summary></entry>", 1))
	}
	h := &Handler{Store: store}
	var refused, under atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		under.Add(1)
		defer under.Add(-1)
		count := &statusWriter{ResponseWriter: w}
		h.ServeHTTP(count, r)
		if count.status == http.StatusServiceUnavailable {
			refused.Add(1)
		}
	}))
	before, resident := heap(), rss(t)
	var open []net.Conn
	for range clients {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
		_, err = fmt.Fprintf(conn, "GET /feeds/%s/complete.atom HTTP/1.1\r\nHost: h\r\n\r\n", Name(damagedURL))
		require.NoError(t, err)
		open = append(open, conn)
	}
	require.Eventually(t, func() bool { return int(refused.Load()) >= clients-mostStreams && under.Load() <= mostStreams }, 2*time.Minute, 10*time.Millisecond)
	require.Positive(t, under.Load())
	require.Less(t, rss(t)-resident, int64(mostStreams*12*entry), "the memory of the process, before it is collected")
	require.Less(t, heap()-before, int64(mostStreams*6*entry))
	for _, conn := range open {
		require.NoError(t, conn.Close())
	}
	server.Close()
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// rss returns the resident memory of this process in bytes; zero if the system does not
// tell.
func rss(t *testing.T) int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	_, err = fmt.Sscan(string(data), &size, &resident)
	require.NoError(t, err)
	return resident * int64(os.Getpagesize())
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
