#!/usr/bin/python3
"""Python's feedparser with the loop that people write first: from document to
document until there is no link.

    loop.py URL
"""
import json
import sys

import feedparser

LIMIT = 100  # requests

entries, url = [], sys.argv[1]
for n in range(LIMIT):
    feed = feedparser.parse(url)
    if n == 0 and (feed.get("status", 0) >= 400 or not feed.get("version")):
        sys.exit("there is no feed")
    entries += [{"id": e.get("id", ""), "title": e.get("title", "")} for e in feed.entries]
    links = feed.feed.get("links", [])
    older = [link.get("href") for rel in ("prev-archive", "next") for link in links if link.get("rel") == rel]
    if not older or not older[0]:
        break
    url = older[0]
print(json.dumps({"entries": entries}))
