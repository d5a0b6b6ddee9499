"""Downloads that can't succeed end at once, and a page of a hotspot or a proxy costs nothing of what is there."""

import random
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from qwendesk.cli import main as cli
from qwendesk.hub.download import FileProgress, download_file
from qwendesk.hub.download_control import DownloadControl, RetryPolicy
from qwendesk.hub.download_part import part_of
from qwendesk.hub.download_queue import DownloadQueue
from qwendesk.hub.network import HubError, Network
from qwendesk.hub.remote import FixedAddresses, Hub, RemoteFile
from tests.certificates import make_certificate, tls_server
from tests.fakes.pack_server import running_pack_server
from tests.field.grid import SERVER, Kind, Way, case
from tests.hub.conftest import fake_hub
from tests.hub.hub_server import COMMIT, FakeHub, send_page

__all__ = ["fake_hub"]

_NO_DOWNLOADS = {
    **dict.fromkeys(SERVER, "a request downloads nothing"),
    Way.MCP: "its servers are installed by the user",
    Way.IMPORT: "an import reads a file",
}
IN_VAIN = Kind("A download is tried again and again where that can't help", _NO_DOWNLOADS)
PAGES = Kind("A page of a hotspot or a proxy is taken for the file, or costs what was downloaded", _NO_DOWNLOADS)

REPO, NAME = "someone/Model-GGUF", "model-Q4_K_M.gguf"
CONTENT = random.Random(7).randbytes(300_001)
QUICK = RetryPolicy(tries=4, first_wait_s=0.001, longest_wait_s=0.001)
AT_ENDPOINT = f"/{REPO}/resolve/{COMMIT}/{NAME}"
Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def target(fake_hub: FakeHub, tmp_path: Path) -> Path:
    fake_hub.add(REPO, NAME, CONTENT)
    return tmp_path / "models" / REPO / NAME


def wanted(fake_hub: FakeHub) -> RemoteFile:
    return Hub(Network(fake_hub.endpoint)).file(REPO, NAME)


def fetch(network: Network, file: RemoteFile, target: Path) -> list[FileProgress]:
    seen: list[FileProgress] = []
    download_file(Hub(network), file, target, seen.append, DownloadControl(), QUICK)
    return seen


def refusal(network: Network, file: RemoteFile, target: Path) -> HubError:
    with pytest.raises(HubError) as refused:
        fetch(network, file, target)
    assert not target.exists()
    return refused.value


def status(code: int, error: str = "") -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header("X-Error-Code", error)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


LASTING = {
    "the terms aren't accepted": (403, "GatedRepo", "gated"),
    "the token has been revoked": (401, "", "denied"),
    "a proxy forbids the address": (403, "", "denied"),
    "the file was deleted": (404, "EntryNotFound", "not_found"),
    "the repository was deleted": (410, "", "not_found"),
}


@case(IN_VAIN, Way.WINDOW, report="project-nomad#1195: a refused download goes on for four hours", before="held")
@pytest.mark.parametrize("name", LASTING)
def test_a_refusal_between_the_plan_and_the_bytes_ends_the_download(
    fake_hub: FakeHub, target: Path, tmp_path: Path, name: str
) -> None:
    code, error, kind = LASTING[name]
    file = wanted(fake_hub)
    fake_hub.instead[AT_ENDPOINT] = status(code, error)
    ended = threading.Event()
    queue = DownloadQueue(tmp_path / "queue.json", lambda: Hub(Network(fake_hub.endpoint)), retry_policy=QUICK)
    queue.subscribe(lambda _id: queue.items[0].saved.state == "failed" and ended.set())
    queue.add([file], tmp_path / "models")
    queue.start()
    assert ended.wait(120)
    queue.close()

    assert queue.items[0].saved.trouble == kind
    assert len(fake_hub.requests("HEAD", f"endpoint{AT_ENDPOINT}")) == 1


@case(IN_VAIN, Way.WINDOW, Way.CLI, report="meetily#662: behind a proxy with certificates of its own", before="failed")
def test_a_certificate_that_is_not_trusted_ends_the_download(fake_hub: FakeHub, target: Path, tmp_path: Path) -> None:
    file = wanted(fake_hub)
    with tls_server(make_certificate(tmp_path / "server")) as port:
        network = Network(f"https://127.0.0.1:{port}")
        with pytest.raises(HubError) as refused:
            download_file(Hub(network), file, target, told_of_no_wait, DownloadControl(), RetryPolicy())
    assert "certificate" in refused.value.sentence


def told_of_no_wait(progress: FileProgress) -> None:
    assert progress.phase != "waiting", progress.note


@contextmanager
def refusing_proxy(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that gives one answer to all requests. Yield its address, and what was asked of it."""
    asked: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked.append(self.rfile.readline())
            while self.rfile.readline().strip():
                pass
            self.wfile.write(b"HTTP/1.1 " + answer + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()


@case(IN_VAIN, Way.WINDOW, Way.CLI, report="meetily#662: a proxy in a company", before="failed")
@pytest.mark.parametrize(
    ("answer", "n_tries"),
    [(b"407 Proxy Authentication Required", 1), (b"403 Forbidden", 1), (b"502 Bad Gateway", QUICK.tries)],
)
def test_a_proxy_that_refuses_ends_the_download(fake_hub: FakeHub, target: Path, answer: bytes, n_tries: int) -> None:
    file = wanted(fake_hub)
    with refusing_proxy(answer) as (proxy, asked):
        network = Network("https://hub.example.org", proxy=proxy)
        assert refusal(network, file, target).kind == "no_connection"
    assert len(asked) == n_tries


@case(IN_VAIN, Way.CLI, report="shots-studio#124: a file system that can't be written", before="held")
def test_a_folder_that_is_a_file_ends_the_download(
    fake_hub: FakeHub, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", fake_hub.endpoint)
    (tmp_path / "full").write_text("no folder")
    assert cli.main(["models", "get", f"{REPO}/{NAME}", "--no-mmproj", "--to", str(tmp_path / "full")]) == 1
    said = capsys.readouterr().err
    assert "Choose another folder with --to" in said
    assert "Retrying" not in said
    assert fake_hub.requests("GET", "store") == []


@case(PAGES, Way.WINDOW, report="skyvern#7411: login pages saved as files", before="failed")
@pytest.mark.parametrize("faults", [["page"], ["page without length"], ["page", "page"], ["cut:120000", "page"]])
def test_a_page_in_place_of_bytes_is_not_written(fake_hub: FakeHub, target: Path, faults: list[str]) -> None:
    fake_hub.faults = list(faults)
    seen = fetch(Network(fake_hub.endpoint), wanted(fake_hub), target)
    assert target.read_bytes() == CONTENT
    assert any("a web page" in each.note for each in seen)
    assert fake_hub.sent_bytes < 1.5 * len(CONTENT), "no byte is fetched twice, but those that were under way"


@case(
    PAGES, Way.WINDOW, report="found by trying: a hotspot asks to sign in, and what was there is gone", before="failed"
)
def test_a_page_in_place_of_the_address_costs_nothing_of_what_is_there(fake_hub: FakeHub, target: Path) -> None:
    file = wanted(fake_hub)
    kept = part_with(fake_hub, target, file)

    def page_once(handler: BaseHTTPRequestHandler) -> None:
        del fake_hub.instead[AT_ENDPOINT]
        send_page(handler)

    fake_hub.instead[AT_ENDPOINT] = page_once
    fake_hub.faults = []
    fake_hub.count_anew()
    fetch(Network(fake_hub.endpoint), file, target)
    assert target.read_bytes() == CONTENT
    assert fake_hub.sent_bytes == len(CONTENT) - len(kept)


@case(
    PAGES, Way.WINDOW, Way.CLI, report="found by trying: the login page of a hotspot for each address", before="failed"
)
def test_a_hotspot_that_stays_ends_with_its_name_and_keeps_the_part(fake_hub: FakeHub, target: Path) -> None:
    file = wanted(fake_hub)
    kept = part_with(fake_hub, target, file)

    fake_hub.instead[AT_ENDPOINT] = send_page
    refused = refusal(Network(fake_hub.endpoint), file, target)

    assert refused.kind == "bad_answer"
    assert "a web page, as a hotspot or a proxy sends it" in refused.sentence
    assert part_of(target).read_bytes() == kept


def part_with(fake_hub: FakeHub, target: Path, file: RemoteFile, n_bytes: int = 120_000) -> bytes:
    """Download a part, and return it."""
    fake_hub.faults = [f"cut:{n_bytes}"] + ["503"] * QUICK.tries
    assert refusal(Network(fake_hub.endpoint), file, target).kind == "busy"
    kept = part_of(target).read_bytes()
    assert kept
    assert CONTENT.startswith(kept)
    return kept


@case(PAGES, Way.WINDOW, report="found by trying: a redirect to the login page", before="failed")
def test_a_redirect_to_a_page_elsewhere_is_not_written(fake_hub: FakeHub, target: Path) -> None:
    file = wanted(fake_hub)
    kept = part_with(fake_hub, target, file, 1000)  # less than the page
    fake_hub.add("portal/login", "page.html", b"")

    def redirect(handler: BaseHTTPRequestHandler) -> None:
        del fake_hub.instead[AT_ENDPOINT]
        handler.send_response(302)
        handler.send_header("Location", f"{fake_hub.store}/portal/login/page.html")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    fake_hub.instead[AT_ENDPOINT] = redirect
    fake_hub.faults = ["page"]
    fake_hub.count_anew()
    fetch(Network(fake_hub.endpoint), file, target)
    assert target.read_bytes() == CONTENT
    assert fake_hub.sent_bytes == len(CONTENT) - len(kept)


@case(PAGES, Way.WINDOW, report="found by trying: an engine's archive", before="failed")
def test_a_page_in_place_of_an_archive_is_not_written(tmp_path: Path) -> None:
    with running_pack_server() as server:
        server.archives["/engine.whl"] = b"<html>" * 100
        server.types["/engine.whl"] = "text/html"
        source = FixedAddresses(Network(server.address), {"engine.whl": f"{server.address}/engine.whl"})
        file = RemoteFile("packs", "engine.whl", "", 600, "0" * 64, "", None)
        with pytest.raises(HubError, match="a web page, as a hotspot or a proxy sends it"):
            download_file(source, file, tmp_path / "engine.whl", lambda _seen: None, DownloadControl(), QUICK)
