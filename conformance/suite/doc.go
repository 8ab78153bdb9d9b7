// Package suite has the parts of the conformance suite that the command "feedhistory
// conformance" and runners of other readers need. For a test written in Go, use package
// conformance.
//
// [Cases] returns all cases; FORMAT.md explains them. [Run] tests a [Reader] on
// cases, [Command] makes a program a reader, and [NewServer] lets programs test
// themselves over HTTP. A [Publisher] makes a publisher add, edit and delete
// entries, and judges its documents.
//
// A level is a kind of outcome: entries, verdict, requests or state. A strength is must,
// must-not, should, should-not or may. A basis is where a requirement comes from: rfc,
// http, security or goal.
package suite
