"""A Hub of our own on the loopback: the endpoint on one port, the store that it redirects to on another; with faults.

It speaks what huggingface_hub and a browser of models need: model info, paths-info, commits, search, resolve.
"""

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34
DATE = "2026-03-05T10:00:00.000Z"
PIECE = 16 * 1024


class Hollow(bytes):
    """A file of which only the beginning is in memory; the rest is zeros."""

    n_bytes: int

    def __new__(cls, beginning: bytes, n_bytes: int) -> "Hollow":
        hollow = super().__new__(cls, beginning)
        hollow.n_bytes = n_bytes
        return hollow

    def __len__(self) -> int:
        return self.n_bytes

    def __getitem__(self, part: slice) -> bytes:  # type: ignore[override]
        piece = super().__getitem__(part)
        return piece + bytes(part.stop - part.start - len(piece))


class FakeHub:
    """Repositories in memory. `faults` are taken one for each request of bytes; then all goes well."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, bytes]] = {}
        self.about: dict[str, dict[str, object]] = {}
        """Repository: what lists say of it instead of the usual."""
        self.gated: set[str] = set()
        self.accounts: dict[str, str] = {}
        """Token: the name of the account it belongs to."""
        self.plain: set[str] = set()
        """Paths that are served by the endpoint itself, and have no SHA-256."""
        self.faults: list[str] = []
        self.always = ""
        """A fault of every request of bytes."""
        self.head_faults: list[int] = []
        self.etag_of: dict[str, str] = {}
        """Path: what X-Linked-Etag says instead of the truth."""
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        """Method, path with port ("endpoint" or "store" before it), headers."""
        self.run = "0"
        """Which run's bytes are counted now. A request belongs to the run that its X-Run header names, or in which
        it came: what the server still sends to a client that has gone away is not counted for the next run."""
        self._sent: Counter[str] = Counter()
        self.on_sent: Callable[[int], None] = lambda _total: None
        """Called with `sent_bytes` after each piece of the present run."""
        self.instead: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        """Path at the endpoint: what answers a request there in place of this server."""
        self.hold = threading.Event()
        """Set when a "stall" may end."""
        self._lock = threading.Lock()
        self.endpoint = self.store = ""

    def add(self, repo: str, path: str, content: bytes) -> bytes:
        self.repos.setdefault(repo, {})[path] = content
        return content

    def requests(self, method: str, where: str = "") -> list[str]:
        return [path for verb, path, _ in self.seen if verb == method and path.startswith(where)]

    def fault(self) -> str:
        with self._lock:
            return self.faults.pop(0) if self.faults else self.always

    def head_fault(self) -> int:
        with self._lock:
            return self.head_faults.pop(0) if self.head_faults else 0

    @property
    def sent_bytes(self) -> int:
        """How many bytes of files were sent in the present run."""
        return self._sent[self.run]

    def count_anew(self) -> str:
        """Begin another run, with nothing sent. Returns its name."""
        with self._lock:
            self.run = str(int(self.run) + 1)
        return self.run

    def send(self, run: str, piece: bytes, write: Callable[[bytes], object]) -> None:
        """Write `piece` and count it, before the client can have it and ask for the sum."""
        with self._lock:
            self._sent[run] += len(piece)
        write(piece)
        if run == self.run:
            self.on_sent(self.sent_bytes)


@contextmanager
def running_hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    servers = [_Server(("127.0.0.1", 0), _handler(hub, role)) for role in ("endpoint", "store")]
    hub.endpoint, hub.store = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
    threads = [threading.Thread(target=server.serve_forever, args=(0.02,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        hub.hold.set()
        for server in servers:
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is what many tests are about."""


def _handler(hub: FakeHub, role: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._note()
            if self._is_answered_otherwise():
                return
            if role == "store":
                self._bytes(*self._stored(), is_store=True)
                return
            path = urlsplit(self.path).path
            if path == "/api/models":
                self._json(self._found())
                return
            if path == "/api/whoami-v2":
                self._whoami()
                return
            if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/[^/]+)?", path):
                self._info(found[1])
                return
            if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commits/[^/]+", path):
                commit = {"id": COMMIT, "title": "add", "message": "", "date": DATE, "authors": []}
                self._json([commit])
                return
            if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
                self._bytes(found[1], unquote(found[3]), is_store=False)
                return
            self._error(404, "RepoNotFound")
            return

        def do_POST(self) -> None:
            self._note()
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if self._is_answered_otherwise():
                return
            found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/paths-info/.+", urlsplit(self.path).path)
            files = hub.repos.get(found[1], {}) if found else {}
            self._json([_path_info(hub, path, files[path]) for path in parse_qs(body)["paths"] if path in files])

        def do_HEAD(self) -> None:
            self._note()
            if self._is_answered_otherwise():
                return
            found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", urlsplit(self.path).path)
            if found is None or found[1] not in hub.repos:
                self._error(404, "RepoNotFound")
                return
            if status := hub.head_fault():
                self._error(status, "", {"Retry-After": "0"} if status == 429 else {})
                return
            repo, path = found[1], unquote(found[3])
            if repo in hub.gated and self.headers.get("Authorization") != "Bearer good":
                self._error(403, "GatedRepo")
                return
            content = hub.repos[repo].get(path)
            if content is None:
                self._error(404, "EntryNotFound")
                return
            self.send_response(200 if path in hub.plain else 302)
            self.send_header("X-Repo-Commit", COMMIT)
            etag = hub.etag_of.get(path) or _etag(hub, path, content)
            if path in hub.plain:
                self.send_header("ETag", f'"{etag}"')
                self.send_header("Content-Length", str(len(content)))
            else:
                self.send_header("X-Linked-Etag", f'"{etag}"')
                self.send_header("X-Linked-Size", str(len(content)))
                self.send_header("Location", f"{hub.store}/{repo}/{quote(path)}?signed=1")
                self.send_header("Content-Length", "0")
            self.end_headers()

        def _is_answered_otherwise(self) -> bool:
            answer = hub.instead.get(unquote(urlsplit(self.path).path)) if role == "endpoint" else None
            if answer is not None:
                answer(self)
            return answer is not None

        def _stored(self) -> tuple[str, str]:
            owner, name, path = unquote(urlsplit(self.path).path).lstrip("/").split("/", 2)
            return f"{owner}/{name}", path

        def _found(self) -> list[dict[str, object]]:
            asked = parse_qs(urlsplit(self.path).query)
            words, author = asked.get("search", [""])[0].lower(), asked.get("author", [""])[0]
            found = [_listed(hub, repo) for repo in hub.repos if words in repo.lower() and repo.startswith(author)]
            if asked.get("sort") == ["createdAt"]:
                found.sort(key=lambda each: str(each["createdAt"]), reverse=True)
            return found[: int(asked.get("limit", ["1000"])[0])]

        def _info(self, repo: str) -> None:
            if repo not in hub.repos:
                self._error(404, "RepoNotFound")
                return
            siblings = [{"rfilename": path} for path in hub.repos[repo]]
            self._json(
                _listed(hub, repo) | {"sha": COMMIT, "siblings": siblings, "gated": repo in hub.gated and "auto"}
            )

        def _whoami(self) -> None:
            name = hub.accounts.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
            if name is None:
                self._error(401, "")
            else:
                self._json({"type": "user", "name": name})

        def _bytes(self, repo: str, path: str, *, is_store: bool) -> None:
            if not is_store and path not in hub.plain:
                self._error(404, "EntryNotFound")
                return
            run = self.headers.get("X-Run", hub.run)
            content, fault = hub.repos[repo][path], hub.fault()
            if fault.startswith("page"):
                send_page(self, has_length=fault == "page")
                return
            if fault.isdigit():
                self._error(int(fault), "", {"Retry-After": "0"} if fault == "429" else {})
                return
            start = 0
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            end = len(content)
            if asked and fault != "ignores-range" and not fault.startswith("ignores-range,"):
                start, end = int(asked[1]), min(int(asked[2] or end - 1) + 1, end)
            body, total = content[start:end], len(content)
            if fault == "wrong-bytes":
                body = bytes(byte ^ 1 for byte in body[:1]) + body[1:]
            elif fault == "longer":
                body, total = body + b"more", total + 4
            elif fault == "shorter":
                body, total = body[:-3], total - 3
            elif fault == "no-length-shorter":
                body = body[: len(body) // 2]
            self.send_response(206 if start or (asked and end < total) else 200)
            if start or (asked and end < total):
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{total}")
            if fault == "no-length-shorter":
                self.close_connection = True
            else:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cut = int(fault.split("cut:")[1]) if "cut:" in fault else len(body)
            for at in range(0, min(cut, len(body)), PIECE):
                hub.send(run, body[at : min(at + PIECE, cut)], self.wfile.write)
                if fault == "stall" and at:
                    hub.hold.wait()
            if cut < len(body):
                self.close_connection = True

        def _json(self, value: object) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _error(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in ({"X-Error-Code": code} if code else {} | (headers or {})).items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _note(self) -> None:
            hub.seen.append((self.command, f"{role}{self.path}", dict(self.headers)))

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    return Handler


PAGE = b"<!DOCTYPE html><title>Hotspot</title><p>Accept our terms to go on.</p>" * 50


def send_page(handler: BaseHTTPRequestHandler, *, has_length: bool = True) -> None:
    """Answer a request with a page, as a hotspot does to whatever is asked of whomever."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html; charset=utf-8")
    if has_length:
        handler.send_header("Content-Length", str(len(PAGE)))
    else:
        handler.close_connection = True
    handler.end_headers()
    if handler.command == "GET":
        handler.wfile.write(PAGE)


def _listed(hub: FakeHub, repo: str) -> dict[str, object]:
    usual = {"id": repo, "modelId": repo, "downloads": 7, "likes": 3, "lastModified": DATE, "createdAt": DATE}
    return usual | {"tags": ["gguf"]} | hub.about.get(repo, {})


def _etag(hub: FakeHub, path: str, content: bytes) -> str:
    if path in hub.plain:
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return hashlib.sha256(content).hexdigest()


def _path_info(hub: FakeHub, path: str, content: bytes) -> dict[str, object]:
    last = {"id": COMMIT, "title": "add", "date": DATE}
    info = {"type": "file", "path": path, "size": len(content), "oid": "0" * 40, "lastCommit": last}
    if path in hub.plain:
        return info | {"oid": _etag(hub, path, content)}
    return info | {"lfs": {"oid": _etag(hub, path, content), "size": len(content), "pointerSize": 134}}
