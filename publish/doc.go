// Package publish makes a growing log of entries into an archived feed (RFC
// 5005 §4): a subscription document and a chain of archives, as files that any
// web server can serve, or Handler.
//
//	p := &publish.Publisher{
//		Output: publish.Dir{Path: "/srv/www/blog"},
//		Base:   "https://example.org/blog/",
//		Head:   &feedhistory.Document{Title: "My blog"},
//	}
//	err := p.Append(entries...)
//
// The output then has these names:
//
//	feed.atom                        the subscription document
//	feed/1-0f4c….atom                archives, by size; the digest is of their content
//	feed/2003/11-93ab….atom          archives, by period
//	.lock, .feed.atom.next,
//	.feed.atom.new, .*.tmp           nothing for readers
//
// All state is there: a Publisher that is set up anew goes on where another
// has ended, on whichever machine. What the documents themselves do not say
// stands in a processing instruction of the subscription document.
//
// While there is no archive the subscription document is marked as complete
// (5005#2), so that readers know it to be all there is.
//
// # Permanence
//
// An archive is rendered once. Its name has a digest of its content, so no
// name ever stands for other bytes, and its URI does not change (5005#9,
// 5005#10). There is one exception: the newest archive gains its next-archive
// link (5005#12) when its successor is closed; before, there is nothing that it
// could link to (5005#15). As the digest covers the link to the preceding
// archive, archives that were erased from have new names, and so have all that
// follow.
//
// # Crashes
//
// New archives are written first, which nothing refers to yet. Then comes a
// note of what is to be done, with which the call is decided: the link from
// the preceding archive, and the subscription document. If a crash comes
// between, the next call does the rest. So links lead nowhere at no time, and a
// call is published whole or not at all. A crash leaves unreferenced files at
// worst: a list of them was written first, and the next call removes those that
// nobody can know.
package publish
