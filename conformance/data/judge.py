"""Judges what a reader reports about a case that serve.py is serving.

    with Case.load("walk/archived") as case:
        for outcome, requirement, clause in judge(case, {"entries": [...], "verdict": "whole"}):
            assert outcome != "fail", requirement

The report is what FORMAT.md lets a reader print, as one object. An outcome is pass, warn (a
broken should), fail (a broken must), or none: the reader does not report on it. After
case.poll(), the judge speaks of the new poll.
"""
import html
import re

PUBLISHED = re.compile(r'<(?:\w+:)?id(?:\s[^>]*)?>(.*?)</|<(?:\w+:)?guid(?:\s[^>]*)?>(.*?)</|"id"\s*:\s*"?([^",}]*)', re.S)


def judge(case, report):
    name = lambda item: item if isinstance(item, str) else item.get("id") or item.get("ref") or item.get("url") or ""
    path = lambda url: re.sub("^http://" + case.site, "", url).replace("http://" + case.other, "http://other.invalid").replace("@" + case.site, "@site.invalid")
    known = [(path(name(e)), name(e), "" if isinstance(e, str) else e.get("title", "")) for e in report.get("entries", [])]
    verdict = "failed" if report.get("failed") else report.get("verdict", "")
    poll = case.poll_number if case.data.get("polls") else 0
    asked = [(("http://other.invalid" if r["header"].get("Host") == case.other else "") + r["url"], {k.lower(): v for k, v in r["header"].items()})
             for r in case.requests if r["method"] == "GET" and r["poll"] in (poll, poll or 1)]

    def published():
        bodies = [case.body(s, 1).decode("utf-8", "replace") for states in case.resources.values() for s in states]
        ids = {html.unescape("".join(m)).strip() for body in bodies for m in PUBLISHED.findall(body)}
        return ids | {q["of"] for q in case.data["requirements"] if q["what"] == "entry"}

    def holds(what, of="", value="", **_):
        here = [header for url, header in asked if url == of]
        titles = [title for id, _, title in known if id == of and title]
        if what == "entry":
            return of in [id for id, _, _ in known]
        if what == "version":
            return all(title == value for title in titles) if titles else None
        if what == "once":
            return len({id for _, id, _ in known}) == len(known) if known else None
        if what == "other":
            return bool({id for id, raw, _ in known if raw not in ids} - ids) if known else None
        if what in ("gap", "deleted"):
            told = report.get("gaps" if what == "gap" else "deleted")
            return of in [path(name(g)) if what == "gap" else name(g) for g in told] if isinstance(told, list) else None
        if what == "whole-without":
            return verdict == "whole" and not [id for id, _, _ in known if id == of] if verdict else None
        if what == "verdict":
            return verdict == of or (of, verdict) == ("partial", "failed") if verdict else None
        if what == "requests":
            return len(asked) <= int(of)
        if what == "request":
            return len(here) <= int(value)
        if what == "conditional":
            return all("if-none-match" in h or "if-modified-since" in h for h in here)
        field, text = value.split(" ", 1)  # what is "field"
        return all(text in h.get(field.lower(), "") for h in here) if here else None

    ids = published() if any(q["what"] == "other" for q in case.data["requirements"]) else set()
    for q in case.data["requirements"]:
        if q.get("poll", 0) != poll or q["strength"] == "may":
            continue
        held = holds(**q)
        outcome = "none" if held is None else "pass" if held != q["strength"].endswith("-not") else "warn" if q["strength"].startswith("should") else "fail"
        yield outcome, " ".join(filter(None, (q["strength"], q["what"], q.get("of"), q.get("value")))), q.get("clause", "")
