"""A server of engine packs of our own: with ranges, and with faults that a test asks for."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from qwendesk.core.engine_manifest import EnginePack, PackArchive


class PackServer:
    """Serves archives, with ranges; may break connections off."""

    def __init__(self) -> None:
        self.archives: dict[str, bytes] = {}
        self.etags: dict[str, str] = {}
        self.types: dict[str, str] = {}
        """Path: the Content-Type of an answer."""
        self.cuts: list[int] = []
        """After how many bytes the next bodies break off, one after another."""
        self.hold_after: int | None = None
        """The next body stops there until the client goes away or the server ends."""
        self.ending = threading.Event()
        self.headers: list[dict[str, str]] = []
        self.ranges: list[str] = []
        self.address = ""


def wheel(**libraries: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in libraries.items():
            archive.writestr(f"llama_cpp/lib/lib{name}.so", content)
        archive.writestr("llama_cpp/llama.py", "print('not a library')")
    return stream.getvalue()


@contextmanager
def running_pack_server() -> Iterator[PackServer]:
    served = PackServer()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            content = served.archives.get(self.path)
            if content is None:
                self.send_error(404)
                return
            asked = self.headers.get("Range", "")
            served.headers.append({name.lower(): value for name, value in self.headers.items()})
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            if with_body:
                served.ranges.append(asked)
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            if self.path in served.types:
                self.send_header("Content-Type", served.types[self.path])
            if self.path in served.etags:
                self.send_header("ETag", served.etags[self.path])
            self.end_headers()
            if with_body:
                cut = served.cuts.pop(0) if served.cuts else None
                hold, served.hold_after = served.hold_after, None
                end = cut if cut is not None else hold
                self.wfile.write(content[start : start + end] if end is not None else content[start:])
                if hold is not None:
                    self.wfile.flush()
                    served.ending.wait()
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    served.address = f"http://127.0.0.1:{http.server_port}"
    try:
        yield served
    finally:
        served.ending.set()
        http.shutdown()
        thread.join()
        http.server_close()


def pack_of(server: PackServer, **changes: object) -> EnginePack:
    """A pack of two archives that the server has."""
    parts = {"/engine.whl": wheel(llama=b"llama" * 50_000, mtmd=b"mtmd"), "/runtime.whl": wheel(cudart=b"cuda" * 1000)}
    server.archives |= parts
    archives = tuple(
        PackArchive(
            server.address + path, len(content), hashlib.sha256(content).hexdigest(), "MIT", ("llama_cpp/lib/*.so",)
        )
        for path, content in parts.items()
    )
    pack = EnginePack(
        name="cuda-12", title="NVIDIA (CUDA 12)", platform="linux-x64", package_version="1.0", backend="cuda",
        gpu_architectures=("86",), minimum_driver="525", archives=archives,
    )  # fmt: skip
    return msgspec.structs.replace(pack, **changes)


def unpinned_pack_of(server: PackServer, *, listed: bool = True, digest: str | None = "") -> EnginePack:
    """The same pack, whose engine is as llama-cpp-python publishes it: without a SHA-256 in the app's list.

    With `listed`, GitHub describes the release, with `digest` if it is not "", else with the right one.
    """
    pack = pack_of(server)
    wheel, runtime = pack.archives
    if listed:
        right = f"sha256:{wheel.sha256}"
        asset = {"name": "engine.whl", "size": wheel.n_bytes, "digest": right if digest == "" else digest}
        server.archives["/listing"] = msgspec.json.encode({"tag_name": "v1.0-cu124", "assets": [asset]})
    wheel = msgspec.structs.replace(wheel, sha256="", n_bytes=2 * wheel.n_bytes, listing=f"{server.address}/listing")
    return msgspec.structs.replace(pack, archives=(wheel, runtime))
