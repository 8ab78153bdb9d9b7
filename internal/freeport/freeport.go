// Package freeport finds ports for tests that must know one before something listens.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// Port returns a port of 127.0.0.1 that nobody listens on. It is below the range from
// which systems assign ports, so nobody is assigned it before it is used.
func Port() (port int, err error) {
	for range 1000 {
		port = 10_000 + rand.IntN(20_000)
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}
