#!/usr/bin/env python3
"""A reader of RFC 5005 histories with feedparser, to be copied into other programs.

    walk.py URL

It follows a history from its subscription document to the oldest, keeps one copy of
each entry, and says what is missing. It passes each case of this suite with the flag
rfc that needs no state. It makes requests itself, to know how each answer ended.
"""
import calendar
import json
import sys
import urllib.parse
import urllib.request
import xml.sax
import zlib

import feedparser

DOCUMENTS, BYTES = 50, 4 << 20  # of one history; of one document, decompressed. See RFC 5005 §6
REGISTRY = "http://www.iana.org/assignments/relation/"

class Missing(Exception): "A document that could not be read."

def get(url):
    """Requests a document; returns its body, its final address and its header."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.username is not None:
        raise Missing("refused: " + url)
    wire = urllib.parse.quote(bare(url), safe="%/:=&?~#+!$,;'@()*[]")
    request = urllib.request.Request(wire, headers={"Accept-Encoding": "gzip", "User-Agent": "walk.py"})
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
        self.ids, self.path = [], []

    def startElement(self, name, attrs):
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
        if not self.body.lstrip().startswith(b"{"):
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

def stamp(thing):
    return calendar.timegm(thing["updated_parsed"]) if thing.get("updated_parsed") else None

def bare(url):
    return urllib.parse.urldefrag(url)[0]

def newer(a, b):
    """Compares two copies (title, time, document's time, age) as RFC 5005 §4.2 says."""
    for i in (1, 2):
        if a[i] != b[i] and None not in (a[i], b[i]):
            return a[i] > b[i]
    return a[3] < b[3]  # nearer to the subscription document

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

def walk(url):
    """Reads a history; returns its entries by id, its verdict and its gaps."""
    entries, gaps = {}, []
    document, given, whole = begin(url)
    archived = document.complete or "prev-archive" in document.links
    verdict = "whole" if archived else "window" if document.older is None else "lossy"
    seen, pending = {document.url} | (set() if given else {url}), [given] if given else []
    for age in range(DOCUMENTS):
        for id, title, time in document.entries:
            copy = (title, time, document.time, age)
            if id not in entries or newer(copy, entries[id]):
                entries[id] = copy
        gaps += [] if document.whole else [document.url]
        before, address = document, document.older
        if address is None:  # the end, unless the given archive is outside of the chain
            if not pending or pending[0].url in seen:
                break
            document = pending.pop()
            continue
        try:
            document = Document(address) if address and bare(address) not in seen else before
            if document.url in seen or document.body == before.body:
                raise Missing("a loop: " + address)
            seen |= {bare(address), document.url}
        except Missing:
            gaps.append(address or before.url)
            break
    else:
        gaps.append(document.url)
    return entries, "partial" if gaps or not whole else verdict, gaps

if __name__ == "__main__":
    try:
        found, said, missing = walk(sys.argv[1])
    except Missing as problem:
        sys.exit("there is no feed: %s" % problem)
    print(json.dumps({"entries": [{"id": id, "title": copy[0]} for id, copy in found.items()], "verdict": said, "gaps": missing}))
