// Package api has the tests of all exported names: each is used, says when its error is
// the context's, and does not panic where it is given nil. The names in comments and pages
// are declared, the Go in pages compiles, and a page has the events that are logged.
package api
