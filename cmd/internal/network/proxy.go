package network

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// ProxyError returns the error of connecting to a proxy; nil for other errors.
func ProxyError(err error) *net.OpError {
	e, ok := errors.AsType[*net.OpError](err)
	if !ok || e.Op != "proxyconnect" {
		return nil
	}
	return e
}

// A ProxyRefusal is a proxy's refusal to connect to the server.
type ProxyRefusal struct{ Status int }

// Error returns the message, with the status of the answer.
func (e *ProxyRefusal) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the proxy answers %d %s", e.Status, http.StatusText(e.Status)))
}
