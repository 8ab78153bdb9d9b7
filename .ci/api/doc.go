// Package api has the tests of all exported names: each is used, says when its error is
// the context's, and does not panic where it is given nil.
package api
