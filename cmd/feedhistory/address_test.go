package main

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// reserved has open UDP sockets, by their port. They tell the tests of other packages,
// which run at the same time, that the TCP port with this number is taken.
var reserved sync.Map

// freeAddress returns an address on which nobody listens, for what must know its address
// before it listens there. Its port is below the range from which systems assign ports, so
// nobody is assigned it before the caller uses it, and freeAddress does not return it again
// while this process runs.
func freeAddress() string {
	for range 1000 {
		port := 10_000 + rand.IntN(20_000)
		address := "127.0.0.1:" + strconv.Itoa(port)
		mark, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		if l, err := net.Listen("tcp", address); err == nil && l.Close() == nil {
			reserved.Store(port, mark)
			return address
		}
		_ = mark.Close()
	}
	panic("no port is free")
}
