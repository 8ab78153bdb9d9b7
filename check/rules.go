package check

import (
	"slices"

	"github.com/feedhistory/feedhistory"
)

// A Rule is the common part of all findings of one code.
type Rule struct {
	Code    string               // a word for it, such as "dead-link", which never changes
	Level   Level                // how serious it is
	Scope   Scope                // the documents needed to check it
	Profile Profile              // the profile of the rule; AtomPMH includes the rules of RFC5005
	Formats []feedhistory.Format // the formats it concerns; nil for pages of entities
	Clause  string               // the clause it is based on, such as "5005#14"; see Finding
	Summary string               // the fault
	Hint    string               // the remedy
}

// A Scope is the part of a feed needed to check a rule.
type Scope uint8

// The scopes.
const (
	OneDocument Scope = iota
	WholeChain
	PagesOfEntities // a chain of pages of entities
	Representations // the representations of metadata records; see Sample
)

// String returns "document", "chain", "pages" or "representations".
func (s Scope) String() string {
	return [...]string{"document", "chain", "pages", "representations"}[min(s, Representations)]
}

// Rules returns all rules in the order of the README's table.
func Rules() []Rule { return slices.Clone(rules) }

var (
	formatsAll  = []feedhistory.Format{feedhistory.Atom, feedhistory.RSS, feedhistory.JSONFeed}
	formatsXML  = []feedhistory.Format{feedhistory.Atom, feedhistory.RSS}
	formatsAtom = []feedhistory.Format{feedhistory.Atom}
	formatsRSS  = []feedhistory.Format{feedhistory.RSS}
	formatsJSON = []feedhistory.Format{feedhistory.JSONFeed}
)

// The table of all rules, from which their documentation is made. 5005#14 is duty 14 of
// RFC 5005, atom-pmh#5 is duty 5 of Atom-PMH 1.0, and datareplication#feed-5 is one of
// the duties listed by package datareplication.
var rules = slices.Concat(historyRules, chainRules, readingRules, leniencyRules, pmhRules, replicationRules)

// A document's signs of its feed's history.
var historyRules = []Rule{
	{"archive-without-links", Warning, OneDocument, RFC5005, formatsXML, "5005#11",
		"fh:archive, but neither prev-archive nor next-archive",
		"link to the archives before and after with rel=\"prev-archive\" and rel=\"next-archive\""},
	{"archive-without-current", Warning, OneDocument, RFC5005, formatsXML, "5005#13",
		"fh:archive, but no link to the subscription document",
		"add a link with rel=\"current\" to the subscription document"},
	{"archive-unmarked", Warning, OneDocument, RFC5005, formatsXML, "5005#14",
		"an archive without fh:archive",
		"add <fh:archive/> to the head section, with xmlns:fh=\"http://purl.org/syndication/history/1.0\""},
	{"complete-with-history-link", Error, OneDocument, RFC5005, formatsXML, "5005#26",
		"a complete document with links to other documents of its history",
		"remove the link, or remove fh:complete if there are entries elsewhere"},
	{"complete-current-not-self", Error, OneDocument, RFC5005, formatsXML, "5005#26",
		"a complete document whose current is another document",
		"write the document's own URL as current, or remove current"},
	{"combined-kinds", Error, OneDocument, RFC5005, formatsXML, "5005#26",
		"a document that shows signs of several kinds of feed at once",
		"keep the links and flags of one kind: archived, so that readers get everything; or paged, so that they can browse"},
	{"paged-without-links", Warning, OneDocument, RFC5005, formatsXML, "5005#5",
		"a page without a link to a neighbour",
		"link to the neighbours with rel=\"next\" and rel=\"previous\""},
	{"link-past-end", Error, OneDocument, RFC5005, formatsXML, "RFC 5005 §3",
		"the first page has a previous one, or the last a next",
		"remove the link, or let first and last name the pages at the ends"},
	{"history-link-in-entry", Warning, OneDocument, RFC5005, formatsXML, "RFC 5005 §3, §4",
		"a history link inside an entry, where it says nothing about the feed",
		"move the link to the head section"},
	{"flag-not-empty", Error, OneDocument, RFC5005, formatsXML, "5005#2",
		"fh:complete or fh:archive with content, which is ignored, so that \"false\" means true",
		"write the element empty, or leave it out"},
	{"flag-misplaced", Warning, OneDocument, RFC5005, formatsXML, "5005#2",
		"fh:complete or fh:archive outside the head section, where it does not count",
		"move it to the head section: a child of feed, or of channel"},
	{"flag-namespace", Warning, OneDocument, RFC5005, formatsXML, "RFC 5005 §1.1",
		"complete or archive without RFC 5005's namespace, or with a misspelt one",
		"write fh:complete or fh:archive, with xmlns:fh=\"http://purl.org/syndication/history/1.0\" exactly"},
	{"relation-misspelt", Warning, OneDocument, RFC5005, formatsXML, "RFC 4287 §4.2.7.2",
		"a link relation with a misspelt name",
		"write it as registered: first, last, previous, next, prev-archive, next-archive, current; in lower case"},
	{"relation-repeated", Error, OneDocument, RFC5005, formatsXML, "RFC 5005 §3, §4",
		"two links of one history relation that lead to different documents",
		"keep one of the two"},
	{"link-relative-unresolvable", Warning, OneDocument, RFC5005, formatsAll, "5005#25",
		"a history link that cannot be made an absolute URL",
		"write it as an absolute URL, or say where the document is found (--base)"},
	{"not-absolute-iri", Error, OneDocument, RFC5005, formatsXML, "RFC 4287 §4.2.6",
		"an id that is not an absolute IRI; in RSS, a guid that claims to be a URL but is not one",
		"write an IRI with its scheme, such as urn:uuid:…; or, in RSS, add isPermaLink=\"false\""},
	{"legacy-draft", Warning, OneDocument, RFC5005, formatsXML, "RFC 5005 §4",
		"an element of a draft of RFC 5005, which most readers do not know",
		"write <link rel=\"prev-archive\" href=\"…\"/> for fh:prev, <fh:complete/> for fh:incremental false"},
	{"updated-older-than-entries", Warning, OneDocument, RFC5005, formatsXML, "5005#21",
		"the document says that it was updated before one of its entries",
		"give updated (lastBuildDate in RSS) the time of the latest change to any entry"},
	{"duplicate-id", Note, OneDocument, RFC5005, formatsAll, "RFC 4287 §4.1.1",
		"an entry that is in the document twice, with different times",
		"keep only the latest"},
	{"duplicate-id-same-time", Warning, OneDocument, RFC5005, formatsAll, "5005#16",
		"an entry that is in the document twice, with the same time or none: which one counts is undefined",
		"keep one, or give the changed one a later update time"},
	{"id-missing", Error, OneDocument, RFC5005, formatsAll, "5005#22",
		"an entry or feed without an id: readers cannot tell whether they know it",
		"give it an id that stays the same for ever: id in Atom, guid in RSS"},
	{"updated-missing", Error, OneDocument, RFC5005, formatsAtom, "RFC 4287 §4.1.1, §4.1.2",
		"an Atom feed or entry without updated: readers cannot tell which of two copies is newer",
		"add updated, with the time of the last change"},
	{"rss-without-lastBuildDate", Note, OneDocument, RFC5005, formatsRSS, "5005#22",
		"no lastBuildDate: if an item is in two documents, readers cannot tell which copy is newer",
		"add lastBuildDate, with the time of the latest change"},
	{"self-missing", Note, OneDocument, RFC5005, formatsAll, "RFC 4287 §4.1.1",
		"no link to the document itself",
		"add a link with rel=\"self\" and the document's URL; in JSON Feed, feed_url"},
}

// Statements of a feed's documents about each other.
var chainRules = []Rule{
	{"dead-link", Error, WholeChain, RFC5005, formatsAll, "5005#11",
		"a link of the chain leads nowhere, so older entries cannot be retrieved",
		"serve the document, or link to the next older one that exists"},
	{"archive-refused", Warning, WholeChain, RFC5005, formatsAll, "5005#18",
		"the server refuses a document of the chain, as it may, so older entries cannot be retrieved",
		"serve it, or link to the next older one that is served"},
	{"older-link-unusable", Error, WholeChain, RFC5005, formatsAll, "5005#11",
		"a link to an older document that cannot be used: it has no href, or is too long",
		"write the URL of the next older document into it, or remove the link if there is none"},
	{"beginning-not-there", Warning, WholeChain, RFC5005, formatsXML, "5005#13",
		"current, or first, does not lead to a document where the feed begins, so readers begin here",
		"make it lead to the document where the feed begins: in that document, to itself"},
	{"link-unsafe", Error, WholeChain, RFC5005, formatsAll, "RFC 5005 §6",
		"a link or redirect that readers refuse to follow for safety",
		"link to a public address by https or http, without a user name"},
	{"cycle", Error, WholeChain, RFC5005, formatsAll, "5005#28",
		"the chain leads back to a document already read",
		"remove the link from the oldest document"},
	{"barren", Warning, WholeChain, RFC5005, formatsAll, "5005#28",
		"many documents in a row without anything new: readers stop there",
		"link past documents that have nothing new; do not answer every page number with the same page"},
	{"walk-cut-short", Warning, WholeChain, RFC5005, formatsAll, "5005#28",
		"the chain is longer than the limit, so the rest was not checked",
		"raise the limit, or make larger documents"},
	{"chain-forks", Error, WholeChain, RFC5005, formatsXML, "5005#26",
		"the links of a document lead to entries that its chain does not have",
		"link to each older document once, and by the relation of one kind of feed"},
	{"another-feed", Error, WholeChain, RFC5005, formatsAtom, "RFC 5005 §4",
		"prev-archive leads to a document of another feed",
		"give the documents of a feed the same atom:id, and mark its archives with fh:archive"},
	{"not-the-beginning", Warning, WholeChain, RFC5005, formatsAll, "5005#13",
		"the feed does not begin with this document, which does not say where it begins",
		"check the subscription document; and link to it from this one with rel=\"current\", or \"first\" for pages"},
	{"prev-archive-newer", Error, WholeChain, RFC5005, formatsXML, "RFC 5005 §4",
		"prev-archive leads to newer entries",
		"make prev-archive lead to the older document, and next-archive to the newer one"},
	{"next-archive-older", Error, WholeChain, RFC5005, formatsXML, "RFC 5005 §4",
		"next-archive leads to older entries",
		"write rel=\"prev-archive\" for the older document"},
	{"next-archive-missing", Warning, WholeChain, RFC5005, formatsXML, "5005#12",
		"an archive without next-archive, although another follows",
		"add a link with rel=\"next-archive\" to the following archive once that is complete"},
	{"next-archive-not-back", Error, WholeChain, RFC5005, formatsXML, "RFC 5005 §4",
		"next-archive does not lead to the archive whose prev-archive led here",
		"make the two archives link to each other"},
	{"next-archive-open", Error, WholeChain, RFC5005, formatsXML, "5005#15",
		"the newest archive has a next-archive: a document that is still being filled",
		"add next-archive only when the following archive is complete and linked from the subscription document"},
	{"current-differs", Warning, WholeChain, RFC5005, formatsXML, "5005#13",
		"archives that name different documents as current",
		"write the subscription document's URL as current in all of them"},
	{"current-not-subscription", Warning, WholeChain, RFC5005, formatsXML, "5005#13",
		"an archive whose current is not the subscription document",
		"write the subscription document's URL as current"},
	{"feed-id-differs", Warning, WholeChain, RFC5005, formatsAtom, "RFC 4287 §4.2.6",
		"a document of the feed with a different feed id",
		"give all documents of a feed the same id"},
	{"subscription-lacks-newest", Error, WholeChain, RFC5005, formatsXML, "5005#8",
		"an archive has entries that are newer than all in the subscription document",
		"put the latest entries into the subscription document, or publish a correction there too"},
	{"archive-changed", Warning, WholeChain, RFC5005, formatsXML, "5005#9",
		"an archive whose set of entries has changed since an earlier run: readers that know the archive will not notice",
		"leave archives as they are; publish changes in the subscription document"},
	{"archive-edited", Warning, WholeChain, RFC5005, formatsXML, "5005#17",
		"an archive with an entry that was edited in place without a new update time: readers that know the archive never see the edit",
		"put the edited entry into the subscription document, with a newer update time, and leave the archive as it was published"},
	{"edits-unnoticed", Warning, WholeChain, RFC5005, formatsXML, "5005#16, 5005#21",
		"archives without any update times, of items or of documents: readers cannot tell which of two versions of an item is newer",
		"write the time when each item was last changed as updated (atom:updated in RSS), and when each document was as updated (lastBuildDate in RSS); " +
			"put an edited item into the subscription document again, not only into its archive: readers fetch no archive twice"},
	{"archive-moved", Warning, WholeChain, RFC5005, formatsXML, "5005#10",
		"an archive that was at another URL at an earlier run",
		"leave archives where they are"},
	{"archive-gone", Warning, WholeChain, RFC5005, formatsXML, "5005#10",
		"an archive of an earlier run that the chain no longer has",
		"link to it again, or publish its entries elsewhere in the chain"},
	{"ambiguous-duplicate", Warning, WholeChain, RFC5005, formatsXML, "5005#16",
		"two versions of an entry in two documents, and no time that tells which is newer",
		"give the changed entry, or its document, a later update time"},
	{"last-not-last", Error, WholeChain, RFC5005, formatsXML, "RFC 5005 §3",
		"last is not the page where the series ends",
		"write the URL of the page that has no next as last"},
	{"page-overlap", Note, WholeChain, RFC5005, formatsXML, "5005#7",
		"an entry on two pages: pages shift while they are read, or overlap",
		"publish an archived feed, whose documents stay as they are"},
	{"redirect-in-chain", Warning, WholeChain, RFC5005, formatsAll, "5005#10",
		"a link of the chain is redirected",
		"link to the present URL of the document"},
	{"mixed-security", Error, WholeChain, RFC5005, formatsAll, "5005#27",
		"some documents of the feed are https and some http, which has no defined meaning",
		"serve and link all of them as https"},
	{"validators-missing", Warning, WholeChain, RFC5005, formatsAll, "RFC 9110 §8.8",
		"documents without ETag and Last-Modified: readers fetch them whole each time",
		"send an ETag, and answer If-None-Match with 304"},
	{"cache-headers-missing", Note, WholeChain, RFC5005, formatsAll, "RFC 9111 §5.2",
		"documents without Cache-Control or Expires",
		"send Cache-Control: max-age with the time between requests; for archives, a year and immutable"},
}

// Why a document cannot be read, or not to its end.
var readingRules = []Rule{
	{"document-unavailable", Error, WholeChain, RFC5005, formatsAll, "RFC 5005 §1.2",
		"the document cannot be retrieved", "make sure that it is served with status 200"},
	{"not-well-formed", Error, OneDocument, RFC5005, formatsAll, "XML 1.0 §2.1, RFC 8259 §2",
		"the document is not well-formed: most readers read none of it", "write it with a library for XML, or JSON"},
	{"truncated", Error, OneDocument, RFC5005, formatsAll, "XML 1.0 §2.1, RFC 8259 §2",
		"the document breaks off before its end", "make sure that it is written and sent completely"},
	{"limit-exceeded", Error, OneDocument, RFC5005, formatsAll, "RFC 5005 §6",
		"the document is larger than readers accept", "split it into archives"},
	{"not-a-feed", Error, OneDocument, RFC5005, formatsAll, "RFC 5005 §1.2",
		"the document is not a feed", "serve Atom, RSS or JSON Feed"},
}

// rule returns the rule of a code. There is one for every code this package uses; for a
// leniency new in the parser, it makes one.
func rule(code string) Rule {
	if i, ok := ruleIndex[code]; ok {
		return rules[i]
	}
	return Rule{Code: code, Level: Note, Clause: "RFC 4287 §2", Formats: formatsAll}
}

var ruleIndex = func() map[string]int {
	index := map[string]int{}
	for i, r := range rules {
		index[r.Code] = i
	}
	return index
}()
