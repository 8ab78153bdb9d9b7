#!/usr/bin/env python3
"""Serves the cases of this folder, each as a website on the loopback interface.

    serve.py walk/archived polls/plain

It prints a line of JSON for each case with its name, the URL to give to a reader,
and its two origins. Then it reads commands, one a line, and answers each with a
line: "poll NAME" begins the next poll, "reset NAME" starts again, "requests NAME"
lists the requests so far, and "judge NAME REPORT" judges a report, which is JSON. It
ends with its standard input. In a test:

    with Case.load("walk/archived") as case:
        entries = my_reader(case.url)

It needs Python 3.8, and nothing else.
"""
import base64
import gzip
import hashlib
import json
import pathlib
import socket
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from judge import judge

HERE = pathlib.Path(__file__).parent
MANIFEST = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))


class Case:
    """A case that is being served."""

    def __init__(self, data):
        self.data, self.lock = data, threading.Lock()
        self.resources = {r["path"]: r["states"] for r in data["resources"]}
        self.servers = []
        for _ in range(2):
            server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            server.daemon_threads, server.case = True, self
            self.servers.append(server)
        self.site, self.other = ("127.0.0.1:%d" % s.server_address[1] for s in self.servers)
        self.url = "http://" + self.site + data["start"]
        self.reset()
        self.open = True
        self.threads = [threading.Thread(target=self.serve, args=(server,), daemon=True) for server in self.servers]
        for thread in self.threads:
            thread.start()

    @classmethod
    def load(cls, name):
        """Serves the case with a name, such as walk/archived."""
        return cls(json.loads((HERE / (name + ".json")).read_text(encoding="utf-8")))

    def reset(self):
        """Starts the case again."""
        with self.lock:
            self.poll_number, self.counts, self.requests = 1, {}, []

    def poll(self):
        """Begins the next poll, and returns its number; None after the last."""
        with self.lock:
            if self.poll_number >= len(self.data.get("polls", [])):
                return None
            self.poll_number += 1
            return self.poll_number

    def serve(self, server):
        while self.open:
            server.handle_request()

    def close(self):
        self.open = False
        for server, thread in zip(self.servers, self.threads):
            socket.create_connection(server.server_address).close()  # which ends the wait for a request
            thread.join()
            server.server_close()

    __enter__ = lambda self: self
    __exit__ = lambda self, *_: self.close()

    def find(self, method, path, headers):
        """Records a request, and returns the answer and the number of requests."""
        with self.lock:
            request = {"poll": self.poll_number, "method": method, "url": path, "header": dict(headers)}
            self.requests.append(request)
            bare = path.split("?")[0]
            for name in (path, bare, urllib.parse.unquote(bare)):
                if name in self.resources:
                    self.counts[name] = n = self.counts.get(name, 0) + 1
                    begun = [s for s in self.resources[name] if s.get("request", n + 1) <= n or s.get("poll", 1 << 30) <= self.poll_number]
                    return (begun[-1] if begun else MANIFEST["missing"]), n
            return MANIFEST["missing"], 0

    def fill(self, data, count):
        """Replaces the three texts that only a server knows."""
        for text, value in ((MANIFEST["site"], self.site), (MANIFEST["other"], self.other), (MANIFEST["count"], str(count))):
            data = data.replace(text.encode(), value.encode())
        return data

    def body(self, state, count):
        if "body_base64" in state:
            return base64.b64decode(state["body_base64"])
        if "body_gzip" in state:
            return self.fill(gzip.decompress(base64.b64decode(state["body_gzip"])), count)
        return self.fill(state.get("body", "").encode(), count)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        case = self.server.case
        state, count = case.find(self.command, self.path, self.headers)
        status, body = state["status"], case.body(state, count)
        if status == 0:
            self.close_connection = True
            return
        header = [(name, case.fill(value.encode(), count).decode("latin-1")) for name, value in state["header"]]
        if state.get("validate"):
            etag = '"%s"' % hashlib.sha256(body).hexdigest()
            header.append(("ETag", etag))
            if self.headers.get("If-None-Match") == etag:
                status, body, header = 304, b"", [h for h in header if h[0] != "Content-Type"]
        self.send_response_only(status)
        for name, value in header:
            self.send_header(name, value)
        length = state.get("content_length", len(body))
        if state.get("cut") or length != len(body):
            self.close_connection = True
            self.send_header("Connection", "close")
        if status != 304 and not state.get("cut"):
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = answer

    def log_message(self, *_):
        pass


def main():
    cases = {name: Case.load(name) for name in sys.argv[1:] or [c["name"] for c in MANIFEST["cases"]]}
    for name, case in cases.items():
        print(json.dumps({"name": name, "url": case.url, "site": case.site, "other": case.other}), flush=True)
    for line in sys.stdin:
        verb, name, report = (line.strip() + "  ").split(" ", 2)
        case = cases[name]
        result = {"poll": case.poll, "reset": case.reset, "requests": lambda: case.requests, "judge": lambda: list(judge(case, json.loads(report)))}[verb]()
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
