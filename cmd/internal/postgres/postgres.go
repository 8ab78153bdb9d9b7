// Package postgres explains failures of PostgreSQL databases to people.
package postgres

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// IsURL reports whether text is the URL of a PostgreSQL database.
func IsURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// Name returns the URL of a database without user, password and parameters.
func Name(address string) string {
	if u, err := url.Parse(address); err == nil {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return "the PostgreSQL database"
}

// Problem explains the server's error, given its code and message.
func Problem(code, message string) string {
	switch code {
	case "53100":
		return "the server's disk is full; nothing stored is lost: make room, and run the command again"
	case "28P01", "28000":
		return "the server refuses the user or the password"
	case "3D000":
		return "there is no such database on the server; createdb makes one"
	case "42501":
		return "the user may not do this: " + message
	}
	return message
}

// Malformed describes the fault of a database's URL. The error's own text contains the
// URL, so only its cause is given.
func Malformed(err error) string {
	what := "this is not the URL of a PostgreSQL database"
	if why := errors.Unwrap(err); why != nil {
		what += ": " + why.Error()
	}
	return what
}

// Unreachable says why there is no connection.
func Unreachable(err error) string {
	what := "the server cannot be reached"
	if e, ok := errors.AsType[*net.OpError](err); ok {
		what += ": " + e.Err.Error()
	}
	return what + "; is it running, and is the address right?"
}
