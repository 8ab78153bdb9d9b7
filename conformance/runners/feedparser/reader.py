#!/usr/bin/python3
"""Python's feedparser by itself: what it reads from the one document at a URL.

    reader.py URL
"""
import json
import sys

import feedparser

feed = feedparser.parse(sys.argv[1])
if feed.get("status", 0) >= 400 or not feed.get("version"):
    sys.exit("there is no feed")
print(json.dumps({"entries": [{"id": e.get("id", ""), "title": e.get("title", "")} for e in feed.entries]}))
