"""A page of releases on the loopback: what it may answer when it is asked for latest.json."""

import json
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.hub.hub_server import FakeHub

PATH = "/releases/latest/download/latest.json"


def content(**changes: Any) -> bytes:
    """Return a latest.json."""
    file = {"name": "a.deb", "n_bytes": 5, "sha256": "0" * 64}
    return json.dumps(
        {"version": "99.1.0", "date": "2026-12-19", "notes": "- Faster.", "files": [file], **changes}
    ).encode()


def answer(hub: FakeHub, body: bytes, status: int = 200, path: str = PATH, **headers: str) -> None:
    """Let the made-up page of releases answer so."""

    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    hub.instead[path] = write
