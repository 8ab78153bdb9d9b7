"""A reader of whole feed histories (RFC 5005), with feedparser.

    ledger = None                              # or what json.load returns of an earlier one
    reading = feedwalk.read("https://example.org/feed.atom", ledger)
    reading.entries, reading.verdict, reading.gaps
    json.dump(reading.ledger, file)            # in the transaction that stores the entries

It follows a history from its subscription document to the oldest, keeps one copy of each
entry, and says what is missing. With the ledger of the reading before, it reads what is new
and what was missing. It makes requests itself, to know how each answer ended.
"""
import calendar
import dataclasses
import datetime
import json
import pathlib
import sys
import urllib.parse
import urllib.request
import xml.sax
import zlib

import feedparser

DOCUMENTS, BYTES = 50, 4 << 20  # of one history; of one document, decompressed. See RFC 5005 §6
NAMESPACES = 1000  # declared in one document
REGISTRY = "http://www.iana.org/assignments/relation/"

class Missing(Exception): "A document that could not be read."

def get(url):
    """Requests a document; returns its body, its final address and its header."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.username is not None:
        raise Missing("refused: " + url)
    wire = urllib.parse.quote(bare(url), safe="%/:=&?~#+!$,;'@()*[]")
    request = urllib.request.Request(wire, headers={"Accept-Encoding": "gzip", "User-Agent": "feedwalk"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            body = response.read(BYTES + 1)
            short = response.length  # what has not come of Content-Length
            if response.headers.get("Content-Encoding") == "gzip":
                body = zlib.decompressobj(31).decompress(body, BYTES + 1)
            if response.status != 200 or short or len(body) > BYTES:
                raise Missing("status or size: " + url)
            return body, response.url, response.headers
    except (OSError, ValueError, zlib.error) as error:
        raise Missing(str(error)) from error

class Ids(xml.sax.ContentHandler):
    """Collects the ids of entries as published; feedparser resolves them like URLs."""

    def __init__(self):
        self.ids, self.path, self.spaces = [], [], 0

    def startElement(self, name, attrs):
        self.spaces += sum(name.startswith("xmlns") for name in attrs.getNames())
        if self.spaces > NAMESPACES:  # each costs feedparser the time of all
            raise Missing("too many namespaces")
        self.path.append(name.split(":")[-1])
        if self.path[-1] in ("entry", "item"):
            self.ids.append("")

    def characters(self, content):
        if self.path[-2:] in (["entry", "id"], ["item", "guid"]):
            self.ids[-1] += content

    def endElement(self, name):
        self.path.pop()

class Document:
    """A document as feedparser reads it."""

    def __init__(self, url):
        self.body, self.url, header = get(url)
        handler, self.whole = Ids(), True
        if self.body.lstrip().startswith(b"{"):
            return self.json(url)
        if self.body:
            try:  # feedparser repairs what is damaged, but does not say what it lost
                xml.sax.parseString(self.body, handler)
            except (xml.sax.SAXException, ValueError, LookupError):
                self.whole = False
        header = {"content-location": self.url, "content-type": header.get("Content-Type", "")}
        parsed = feedparser.parse(self.body, response_headers=header) if self.body else {}
        if not parsed.get("version"):
            raise Missing("not a feed: " + url)
        head, self.links = parsed.feed, {}
        for link in head.get("links", []):
            rel = link.get("rel", "").replace(REGISTRY, "")
            href = link.get("href") and urllib.parse.urljoin(self.url, link["href"])
            self.links.setdefault({"prev": "previous"}.get(rel, rel), href or "")
        self.complete, self.archive, self.time = "fh_complete" in head, "fh_archive" in head, stamp(head)
        ids = handler.ids if self.whole and len(handler.ids) == len(parsed.entries) else [""] * len(parsed.entries)
        self.entries = [(id.strip() or e.get("id") or e.get("link", ""), e.get("title", ""), stamp(e)) for id, e in zip(ids, parsed.entries)]
        self.older = None if self.complete else self.links.get("prev-archive", self.links.get("next"))

    def json(self, url):
        """Reads a JSON Feed, which feedparser does not know."""
        try:
            feed = json.loads(self.body)
            items = [item for item in feed["items"] if "id" in item]
        except (ValueError, KeyError, TypeError) as error:
            raise Missing("not a feed: " + url) from error
        next = feed.get("next_url")
        self.links = {"next": urllib.parse.urljoin(self.url, next)} if isinstance(next, str) and next else {}
        self.complete, self.archive, self.time, self.older = False, False, None, self.links.get("next")
        self.entries = [(str(e["id"]), e.get("title") or "", instant(e.get("date_modified"))) for e in items]

def stamp(thing):
    """The time of an update, with its fraction, which feedparser leaves out."""
    parsed = dict.get(thing, "updated_parsed")  # thing.get takes the time of publication instead
    return parsed and (instant(dict.get(thing, "updated")) or calendar.timegm(parsed))

def instant(text):
    try:
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (AttributeError, ValueError):
        return None

def bare(url):
    return urllib.parse.urldefrag(url)[0]

def newer(a, b):
    """Compares two copies [title, time, document's time] as RFC 5005 §4.2 says. Of equal ones the second counts."""
    for i in (1, 2):
        if a[i] != b[i] and None not in (a[i], b[i]):
            return a[i] > b[i]
    return False

def begin(url):
    """Where the history begins, the given document if that is another, and if nothing newer is missing."""
    document = Document(url)
    current = document.links.get("current")
    if not current or "previous" in document.links:
        return document, None, not (document.archive or {"next-archive", "previous"} & set(document.links))
    try:  # an archive names its subscription document
        feed = document if bare(current) in (url, document.url) else Document(current)
    except Missing:
        return document, None, not document.archive
    if feed.archive or feed.url == document.url or feed.entries == document.entries:
        return document, None, True
    return feed, document, True

@dataclasses.dataclass
class Reading:
    """What is known of a feed after a reading."""

    entries: dict  # by id: [title, time, time of the document]
    verdict: str  # whole, window, lossy or partial
    gaps: list  # the addresses of what is missing
    ledger: dict  # to be stored, and given to the next reading

class Walk:
    """One reading. The ledger's debts are crossed out by what is read, and by nothing else."""

    def __init__(self, ledger):
        self.entries, self.archives, self.archived = dict(ledger.get("entries", {})), set(ledger.get("archives", [])), set(ledger.get("archived", []))
        self.debts = [debt for debt in ledger.get("debts", []) if "url" not in debt]  # windows; documents are requested again
        self.pending = [debt for debt in ledger.get("debts", []) if "url" in debt]
        self.window, self.polled, self.gaps, self.read, self.count = ledger.get("window", []), "window" in ledger, [], set(), 0
        self.known = frozenset(self.archives)  # by earlier readings
        self.new = False  # an archive was read

    def add(self, document, first=False):
        """Merges a document. The subscription document, read last, counts of equal copies."""
        mine = {}
        for id, title, time in document.entries:
            copy = [title, time, document.time]
            if id not in mine or newer(copy, mine[id]):
                mine[id] = copy
        for id, copy in mine.items():
            known = self.entries.get(id)
            if known is None or (not newer([None, known[1], None], [None, copy[1], None]) if first else newer(copy, known)):
                self.entries[id] = copy
        self.read |= set(mine)
        if not document.whole:
            self.gaps.append(document.url)

    def owe(self, url, source):
        self.gaps.append(url)
        self.debts.append({"url": url, "from": source})

    def chain(self, address, source, seen, archived):
        """Follows the links from an address to the end, or to an archive that was read to its end."""
        while address is not None and not (archived and bare(address) in self.known):
            if not address or bare(address) in seen:
                return self.gaps.append(address or source)  # no document, or a loop
            if (count := self.count + 1) > DOCUMENTS:
                return self.owe(address, source)
            self.count = count
            try:
                document = Document(address)
            except Missing:
                return self.owe(address, source)
            if document.url in seen or document.body == self.before:
                return self.gaps.append(address)
            seen |= {bare(address), document.url}
            self.add(document)
            self.before = document.body
            if archived and document.whole:
                self.new, self.archived = True, self.archived | {id for id, _, _ in document.entries}
                self.archives |= {bare(address), document.url}
            elif archived:
                self.debts.append({"url": address, "from": source})
            address, source = document.older, document.url

    def document(self, document, given, seen):
        """Reads the history from its beginning."""
        archived = document.complete or "prev-archive" in document.links
        if document.complete and document.whole:
            self.entries, self.archives, self.archived, self.debts, self.pending, self.window, self.known = {}, set(), set(), [], [], [], frozenset()
        self.add(document, True)
        self.before = document.body
        self.chain(document.older, document.url, seen, archived)
        if given and given.url not in seen:
            seen.add(given.url)
            self.add(given)
            self.before = given.body
            self.chain(given.older, given.url, seen, archived)
        for debt in self.pending:
            if bare(debt["url"]) in seen | self.archives:
                continue
            try:  # the link may have been mended
                named = Document(debt["from"]).older if debt["from"] not in seen else debt["url"]
            except Missing:
                named = debt["url"]
            self.chain(named or None, debt["from"], seen, archived)
        return archived

    def windows(self, document, archived):
        """Compares the entries shown now with those of the reading before: they join, or some are missing."""
        shown = [id for id, _, _ in document.entries]
        if self.window and shown and not set(self.window) & set(shown) and not document.complete and document.older is None or archived and self.window and not set(self.window) & self.read:
            newest = max(self.window, key=lambda id: (self.entries.get(id, ["", None])[1] or 0))
            self.debts.append({"window": newest})
        self.debts = [d for d in self.debts if "url" in d or not (self.new and d["window"] in self.read | self.archived)]
        if document.whole and shown:
            self.window = shown

def read(url, ledger=None):
    """Reads a feed's history. It raises Missing if there is no feed, and none was read before."""
    ledger = ledger or {}
    walk = Walk(ledger)
    try:
        document, given, whole = begin(url)
    except Missing as problem:
        if not ledger:
            raise
        return Reading(walk.entries, "partial", [url], ledger)
    archived = walk.document(document, given, {document.url} | (set() if given else {url}))
    walk.windows(document, archived)
    verdict = "whole" if archived else "window" if document.older is None else "lossy"
    if walk.gaps or walk.debts or not whole:
        verdict = "partial"
    kept = {"entries": walk.entries, "archives": sorted(walk.archives), "archived": sorted(walk.archived), "debts": walk.debts, "window": walk.window}
    return Reading(walk.entries, verdict, walk.gaps, kept)

def main():
    """feedwalk URL [LEDGER] prints a history as JSON, and keeps its ledger in a file."""
    file = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        reading = read(sys.argv[1], json.loads(file.read_text()) if file and file.exists() else None)
    except Missing as problem:
        sys.exit("there is no feed: %s" % problem)
    if file:
        file.write_text(json.dumps(reading.ledger))
    entries = [{"id": id, "title": copy[0]} for id, copy in reading.entries.items()]
    print(json.dumps({"entries": entries, "verdict": reading.verdict, "gaps": reading.gaps}))

if __name__ == "__main__":
    main()
