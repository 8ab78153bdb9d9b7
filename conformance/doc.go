// Package conformance tries readers and publishers of RFC 5005 feeds, in any
// language: websites with one fault each, served on the loopback interface, and a
// judge of what a reader tells of them and asks for.
//
// [Cases] are all cases, which FORMAT.md explains; [Run] tries a [Reader] on them,
// [Command] makes a reader of a program, and [NewServer] lets programs try
// themselves over HTTP. A [Publisher] is driven through additions, edits and
// deletions, and judged by its documents.
//
// The command feedhistory has all of this as feedhistory conformance.
package conformance
