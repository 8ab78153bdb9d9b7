#!/usr/bin/env python3
"""Newsboat, a feed reader for terminals in C++ and Rust, as it is installed: newsboat.py URL STATE

It polls the feed, and prints the entries of its cache. Newsboat says nothing of gaps and
deletions, so neither does this.
"""
import json
import pathlib
import sqlite3
import subprocess
import sys

url, state = sys.argv[1], pathlib.Path(sys.argv[2])
(state / "urls").write_text(url + "\n")
(state / "config").write_text("max-items 0\nkeep-articles-days 0\nreload-time 0\n")
subprocess.run(
    ["newsboat", "-q", "-u", state / "urls", "-C", state / "config", "-c", state / "cache.db", "-x", "reload"],
    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False,
)
cache = sqlite3.connect(state / "cache.db")
rows = cache.execute("SELECT guid, title FROM rss_item WHERE deleted = 0").fetchall()
if not rows and cache.execute("SELECT count(*) FROM rss_feed WHERE title <> ''").fetchone()[0] == 0:
    sys.exit("no feed")
print(json.dumps({"entries": [{"id": guid, "title": title} for guid, title in rows]}))
