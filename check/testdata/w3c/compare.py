#!/usr/bin/env python3
"""Compares check with W3C's feed validator, and writes ../../W3C.md.

    compare.py FEEDVALIDATOR FEEDHISTORY

The arguments are a checkout of github.com/w3c/feedvalidator and the command. The
validator needs html5lib; without it, only its checks of HTML are left out.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import types

PARTS = ["atom", "rss", "rss20", "rss11", "ext/fh", "xml"]
FORMATS = {"atom": "Atom", "rss": "RSS", "rss20": "RSS", "rss11": "RSS 1.1", "ext": "RFC 5005", "xml": "XML"}

# Why an error of the validator is none of check's.
CONTENT = "the form of something that is shown, not who the entry is, when it changed, or where older ones are"
RSS = "RSS 2.0 does not say so, or only of elements that readers do not merge by"
REASONS = {
    "DuplicateIds": "RFC 4287 §4.1.1 says SHOULD: the warning duplicate-id-same-time; an error if the entries have nothing else in common",
    "DuplicateValue": "RSS 2.0 does not forbid it: the warning duplicate-id-same-time; an error if the items have nothing else in common",
    "DuplicateElement": "in a person, source, image or text input; in RSS, which does not forbid it, the warning rss-element-repeated",
    "InvalidRFC2822Date": "RSS 2.0 has no MUST for dates, and pubDate is no update time: the note date-unreadable",
    "InvalidW3CDTFDate": "an extension of RSS: the note date-unreadable",
    "IncorrectDOW": "RFC 822's day of the week, which no reader needs",
    "MissingContentOrAlternate": "an entry without alternate link and content is empty, but it is there",
    "MissingElement": "of a person, image or text input; the channel, of which an empty feed needs none; the language of RSS 0.91; the link of an item of RSS 1.0",
    "MissingTitle": "of an image or text input", "MissingLink": "of an image or text input", "MissingDescription": "of a text input",
    "InvalidLanguage": CONTENT, "SAXError": "a namespace that readers ignore",
    "InvalidNamespace": "RSS 2.0 has no namespace; readers find the items in any",
    "InvalidHttpGUID": "an empty guid, which is none: the warning guid-missing",
    "InvalidPermalink": "an IRI of another scheme, which identifies as well as a URL",
    "InvalidUUID": "the form of the UUID in the feed's id; the rules on history agree",
    "UseZeroForUnknown": RSS, "InvalidRSSVersion": "readers do not ask for the version",
}


def validator(checkout):
    sys.path.insert(0, str(checkout / "src"))
    try:
        import html5lib  # noqa: F401
    except ImportError:
        import xml.etree.ElementTree as tree
        stub = types.ModuleType("html5lib.html5parser")
        stub.ParseError = type("ParseError", (Exception,), {})
        nothing = lambda *_, **__: tree.Element("html")
        stub.HTMLParser = lambda *_, **__: types.SimpleNamespace(errors=[], parse=nothing, parseFragment=nothing)
        sys.modules.update({"html5lib": types.ModuleType("html5lib"), "html5lib.html5parser": stub})
    import feedvalidator
    return feedvalidator


def main(checkout, command):
    checkout, feedvalidator = pathlib.Path(checkout), validator(pathlib.Path(checkout))
    root = checkout / "testcases"
    files = sorted(f.relative_to(root).as_posix() for part in PARTS for f in (root / part).rglob("*.xml"))
    theirs, ours = {}, collections.defaultdict(set)
    for f in files:
        events = feedvalidator.validateString((root / f).read_bytes(), fallback="utf-8", base="http://www.example.com/" + f)["loggedEvents"]
        theirs[f] = {e.__class__.__name__ for e in events if isinstance(e, feedvalidator.logging.Error)}
    for i in range(0, len(files), 100):
        run = subprocess.run([command, "check", "--json", "--base", "http://www.example.com/"] + files[i:i + 100], cwd=root, capture_output=True)
        for line in run.stdout.splitlines():
            finding = json.loads(line)
            if finding["level"] == "error":
                ours[re.sub(r":\d+:\d+$", "", finding["where"])].add(finding["code"])
    count, alone, mine = collections.Counter(), collections.defaultdict(list), collections.defaultdict(list)
    for f in files:
        format = FORMATS[f.split("/")[0]]
        count[format, bool(theirs[f]), bool(ours[f])] += 1
        for event in theirs[f] if not ours[f] else ():
            alone[event].append(f)
        for code in ours[f] if not theirs[f] else ():
            mine[code].append(f)
    out = ["# check and W3C's feed validator", "",
           "W3C's [feed validator](https://github.com/w3c/feedvalidator) asks whether a document follows its specification in everything. "
           "check asks whether readers can merge it into a history, and finds nothing else wrong. "
           "[testdata/w3c/compare.py](testdata/w3c/compare.py) runs both on the validator's %d cases, and writes this page." % len(files), "",
           "| cases | both find an error | only W3C | only check | neither |", "|---|---|---|---|---|"]
    for format in dict.fromkeys(FORMATS.values()):
        out.append("| %s | %s |" % (format, " | ".join(str(count[format, a, b]) for a, b in ((True, True), (True, False), (False, True), (False, False)))))
    out += ["", "## Errors that only W3C finds", "", "| W3C's error | documents | for example | why it is none of check's |", "|---|---|---|---|"]
    for event, found in sorted(alone.items()):
        reason = REASONS.get(event) or (CONTENT if any(f.startswith("atom") for f in found) else RSS)
        out.append("| %s | %d | %s | %s |" % (event, len(found), found[0], reason))
    out += ["", "## Errors that only check finds", "", "| check's error | documents | for example | why |", "|---|---|---|---|"]
    why = {"not-a-feed": "RSS 1.1 and Atom entry documents are named for what they are: readers of feeds read neither"}
    for code, found in sorted(mine.items()):
        out.append("| `%s` | %d | %s | %s |" % (code, len(found), found[0], why[code]))
    (pathlib.Path(__file__).parent.parent.parent / "W3C.md").write_text("\n".join(out) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
