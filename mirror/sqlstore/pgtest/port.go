package pgtest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// marks are open UDP sockets, by their port. They tell the tests of other packages,
// which run at the same time, that the TCP port with this number is taken.
var marks sync.Map

// FreePort returns a port of 127.0.0.1 where nobody listens. It is below the range
// from which systems assign ports, so nobody is assigned it before the caller uses it,
// and FreePort does not return it again while this process runs.
func FreePort() (port int, err error) {
	for range 1000 {
		port = 10_000 + rand.IntN(20_000)
		address := "127.0.0.1:" + strconv.Itoa(port)
		var mark net.PacketConn
		if mark, err = net.ListenPacket("udp", address); err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			marks.Store(port, mark)
			return port, l.Close()
		}
		_ = mark.Close()
	}
	return 0, err
}
