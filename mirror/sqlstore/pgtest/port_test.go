package pgtest

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFreePort(t *testing.T) {
	port, err := FreePort()
	require.NoError(t, err)
	require.Less(t, port, 32_768, "systems assign ports from here on")
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = net.ListenPacket("udp", "127.0.0.1:"+strconv.Itoa(port))
	require.Error(t, err, "it is marked as taken")
}
