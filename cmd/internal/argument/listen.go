package argument

import (
	"fmt"
	"net"

	"github.com/alecthomas/kong"
)

// A Listen is an address at which to listen: a host, which may be left out, and a port.
type Listen string

// Decode reads an address from the command line.
func (l *Listen) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("address", &text); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return fmt.Errorf("%q is not an address such as 127.0.0.1:8005 or :8005", text)
	}
	*l = Listen(text)
	return nil
}
