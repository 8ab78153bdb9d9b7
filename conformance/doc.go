// Package conformance tests readers and publishers of RFC 5005 feeds, in any language.
// It serves websites with one fault each on the loopback interface, and judges a
// reader's reports about them and its requests to them.
//
// [Cases] returns all cases; FORMAT.md explains them. [Run] tests a [Reader] on
// cases, [Command] makes a program a reader, and [NewServer] lets programs test
// themselves over HTTP. A [Publisher] makes a publisher add, edit and delete
// entries, and judges its documents.
//
// The command "feedhistory conformance" does all of this, too.
package conformance
