// Package publish turns a growing log of entries into an archived feed (RFC 5005 §4):
// a subscription document and a chain of archives, as files any web server, or Handler,
// can serve.
//
//	p := &publish.Publisher{
//		Output: publish.Dir{Path: "/srv/www/blog"},
//		Base:   "https://example.org/blog/",
//		Head:   &feedhistory.Document{Title: "My blog"},
//	}
//	err := p.Append(ctx, entries...)
//
// The output then has these names:
//
//	feed.atom                        the subscription document
//	feed/1-0f4c….atom                archives, by size; the digest is of their content
//	feed/2003/11-93ab….atom          archives, by period
//	.lock, .feed.atom.next,
//	.feed.atom.new, .*.tmp           not for readers
//
// All state is in the output: another Publisher continues where the last one ended, on
// any machine. State not expressed by the documents is in a processing instruction of
// the subscription document.
//
// As long as there is no archive, the subscription document is marked as complete
// (5005#2), so readers know nothing is missing.
//
// # Permanence
//
// An archive is rendered once. Its name contains a digest of its content, so a name is
// never used for different bytes, and an archive's URI does not change (5005#9,
// 5005#10). There is one exception: the newest archive gains its next-archive link
// (5005#12) when its successor is closed; until then there is nothing to link to
// (5005#15). The digest covers the link to the preceding archive, too. So when entries
// are erased from an archive, this archive and all later ones get new names.
//
// # Crashes
//
// New archives are written first, when nothing refers to them yet. Then comes a note of
// the remaining work: the link from the preceding archive, and the subscription
// document. The call takes effect with the note; if a crash follows, the next call does
// the rest. So no link ever dangles, and a call is published either whole or not at
// all. At worst a crash leaves unreferenced archives. A list of them is written before
// the archives, and the next call removes those nobody can know.
package publish
