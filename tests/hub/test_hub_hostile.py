"""A Hub that lies: the token stays with the endpoint, every question ends, and the answer is a sentence."""

import itertools
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from qwendesk.hub import http_client
from qwendesk.hub.download import download_file
from qwendesk.hub.download_control import DownloadControl, RetryPolicy
from qwendesk.hub.network import HubError, Network
from qwendesk.hub.remote import FixedAddresses, Hub, RemoteFile
from qwendesk.hub.remote_header import remote_facts
from tests.hub.hub_server import COMMIT, FakeHub, running_hub

REPO, NAME = "someone/Model-GGUF", "model-Q4_K_M.gguf"
CONTENT = b"GGUF" + bytes(1000)
INFO, PATHS = f"/api/models/{REPO}", f"/api/models/{REPO}/paths-info/{COMMIT}"
RESOLVE = f"/{REPO}/resolve/{COMMIT}/{NAME}"
INFO_AT_COMMIT = f"/api/models/{REPO}/revision/main"
FILE = RemoteFile(REPO, NAME, COMMIT, len(CONTENT), None, "", None)
QUICK = RetryPolicy(tries=2, first_wait_s=0.001, longest_wait_s=0.001)
Answer = Callable[[BaseHTTPRequestHandler], None]


def answer(value: object, status: int = 200, **headers: str) -> Answer:
    """Answers with `value` as JSON; header names are written with "_" for "-"."""

    def send(request: BaseHTTPRequestHandler) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        request.send_response(status)
        for name, text in ({"Content_Length": str(len(body)), "Connection": "close"} | headers).items():
            if text:
                request.send_header(name.replace("_", "-"), text)
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(body)
        request.close_connection = True

    return send


def endless(piece: bytes, status: int = 200, **headers: str) -> Answer:
    """Sends `piece` until the client hangs up."""

    def send(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, text in headers.items():
            request.send_header(name.replace("_", "-"), text)
        request.end_headers()
        request.close_connection = True
        while True:
            request.wfile.write(piece)

    return send


@pytest.fixture(autouse=True)
def model(fake_hub: FakeHub) -> None:
    fake_hub.add(REPO, NAME, CONTENT)


@pytest.fixture
def other_hub() -> Iterator[FakeHub]:
    with running_hub() as hub:
        hub.add(REPO, NAME, CONTENT)
        yield hub


def at(fake_hub: FakeHub) -> Hub:
    return Hub(Network(fake_hub.endpoint, "secret"))


def tokens(fake_hub: FakeHub) -> set[str | None]:
    return {headers.get("authorization", headers.get("Authorization")) for _, _, headers in fake_hub.seen}


def test_only_first_page_of_results_is_requested(fake_hub: FakeHub, other_hub: FakeHub) -> None:
    found = [{"id": REPO, "downloads": 7, "likes": 3, "tags": ["gguf"]}]
    fake_hub.instead["/api/models"] = answer(found, Link=f'<{other_hub.endpoint}/api/models?cursor=2>; rel="next"')

    assert [each.repo for each in at(fake_hub).search("model")] == [REPO]

    assert other_hub.seen == []
    assert tokens(fake_hub) == {"Bearer secret"}


def test_endless_empty_pages_cause_one_request(fake_hub: FakeHub) -> None:
    fake_hub.instead["/api/models"] = answer([], Link=f'<{fake_hub.endpoint}/api/models?cursor=2>; rel="next"')

    assert at(fake_hub).search("model") == ()

    assert len(fake_hub.seen) == 1


def test_rate_limit_is_told_after_one_request(fake_hub: FakeHub) -> None:
    """huggingface_hub asks for a list six times within 23 seconds otherwise."""
    fake_hub.instead["/api/models"] = answer(b"", 429, Retry_After="7")

    with pytest.raises(HubError) as caught:
        at(fake_hub).search("model")

    assert (caught.value.kind, caught.value.retry_after_s) == ("busy", 7)
    assert len(fake_hub.seen) == 1


@pytest.mark.parametrize("path", ["/api/models", "/api/whoami-v2", INFO_AT_COMMIT])
def test_redirect_to_another_host_gets_no_token(fake_hub: FakeHub, other_hub: FakeHub, path: str) -> None:
    fake_hub.instead[path] = answer(b"", 307, Location=f"{other_hub.endpoint}{path}")
    hub = at(fake_hub)
    for ask in (lambda: hub.search("model"), hub.account, lambda: hub.files(REPO)):
        try:
            ask()
        except HubError:
            continue

    assert other_hub.seen
    assert tokens(other_hub) == {None}


def test_redirect_within_endpoint_keeps_token(fake_hub: FakeHub) -> None:
    fake_hub.instead["/api/models"] = answer(b"", 307, Location=f"{fake_hub.endpoint}/api/whoami-v2")

    with pytest.raises(HubError):
        at(fake_hub).search("model")

    assert fake_hub.requests("GET", "endpoint/api/whoami-v2")
    assert tokens(fake_hub) == {"Bearer secret"}


ODD_REPOSITORIES: dict[str, object] = {
    "a file name that is a number": {"siblings": [{"rfilename": 5}]},
    "a file name that is null": {"siblings": [{"rfilename": None}]},
    "no file names": {"siblings": [{}]},
    "siblings that are a text": {"siblings": "all"},
    "siblings that are numbers": {"siblings": [1, 2]},
    "a date that is a list": {"lastModified": [1]},
    "a date that is none": {"lastModified": "yesterday"},
    "a commit that is a list": {"sha": ["a"], "siblings": [{"rfilename": NAME}]},
    "no commit": {"sha": None},
    "ten thousand model files": {"siblings": [{"rfilename": f"{each}.gguf"} for each in range(10_000)]},
    "a list": [1],
    "a text": "hello",
    "nothing": None,
    "a page": b"<html>Please log in</html>",
    "no UTF-8": b'{"id": "\xff\xfe"}',
    "nested without end": b"[" * 200_000,
    "a number of 5,000 digits": b'{"id": "a/b", "downloads": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("name", ODD_REPOSITORIES)
def test_malformed_repository_answer_raises_hub_error(fake_hub: FakeHub, name: str) -> None:
    odd = ODD_REPOSITORIES[name]
    value = {"id": REPO, "sha": COMMIT, "siblings": []} | odd if isinstance(odd, dict) else odd
    fake_hub.instead[INFO_AT_COMMIT] = fake_hub.instead[INFO] = answer(value)

    with pytest.raises(HubError) as caught:
        at(fake_hub).files(REPO)

    assert caught.value.kind == "bad_answer"
    assert "127.0.0.1" in caught.value.sentence


GOOD_FILE = {"type": "file", "path": NAME, "size": 1004, "oid": "0" * 40}
ODD_FILES: dict[str, object] = {
    "a size that is a text": GOOD_FILE | {"size": "1004"},
    "a size below zero": GOOD_FILE | {"size": -1},
    "a size with a fraction": GOOD_FILE | {"size": 0.5},
    "a size that is true": GOOD_FILE | {"size": True},
    "no size": {"type": "file", "path": NAME, "oid": "0" * 40},
    "an oid that is null": GOOD_FILE | {"oid": None},
    "an LFS oid that is null": GOOD_FILE | {"lfs": {"oid": None, "size": 1004, "pointerSize": 134}},
    "an LFS size that is a text": GOOD_FILE | {"lfs": {"oid": "0" * 64, "size": "1004", "pointerSize": 134}},
    "an LFS record that is a text": GOOD_FILE | {"lfs": "yes"},
    "a commit without a date": GOOD_FILE | {"lastCommit": {"id": COMMIT, "title": "add"}},
    "a date that is a number": GOOD_FILE | {"lastCommit": {"id": COMMIT, "title": "add", "date": 5}},
    "a number in place of a file": 5,
    "no kind": {"path": NAME},
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_malformed_file_entry_raises_hub_error(fake_hub: FakeHub, name: str) -> None:
    fake_hub.instead[PATHS] = answer([ODD_FILES[name]])

    with pytest.raises(HubError) as caught:
        at(fake_hub).files(REPO)

    assert caught.value.kind == "bad_answer"


def test_files_not_requested_are_ignored(fake_hub: FakeHub) -> None:
    fake_hub.instead[PATHS] = answer([GOOD_FILE, GOOD_FILE | {"path": "../../elsewhere.gguf"}, GOOD_FILE | {"path": 7}])

    assert [each.path for each in at(fake_hub).files(REPO)] == [NAME]


ODD_FOUND: dict[str, object] = {
    "a name that is null": {"id": None},
    "downloads as a text": {"downloads": "many"},
    "tags that are numbers": {"tags": [1]},
    "a date that is a list": {"lastModified": [1]},
}


@pytest.mark.parametrize("name", ODD_FOUND)
def test_malformed_search_answer_raises_hub_error(fake_hub: FakeHub, name: str) -> None:
    fake_hub.instead["/api/models"] = answer([{"id": REPO, "tags": ["gguf"]} | ODD_FOUND[name]])

    with pytest.raises(HubError) as caught:
        at(fake_hub).search("model")

    assert caught.value.kind == "bad_answer"


def test_account_without_name_raises_hub_error(fake_hub: FakeHub) -> None:
    fake_hub.instead["/api/whoami-v2"] = answer({"name": None})

    with pytest.raises(HubError) as caught:
        at(fake_hub).account()

    assert caught.value.kind == "bad_answer"


@pytest.mark.parametrize(
    "send", [endless(b" " * 65536), endless(b" " * 65536, 307, Location="/api/whoami-v2")], ids=["answer", "redirect"]
)
def test_endless_answer_is_abandoned(fake_hub: FakeHub, send: Answer) -> None:
    fake_hub.instead["/api/models"] = send

    with pytest.raises(HubError) as caught:
        at(fake_hub).search("model")

    assert caught.value.kind in ("bad_answer", "denied")


def test_trickling_answer_is_abandoned(fake_hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(http_client, "monotonic", lambda: float(next(seconds)))
    fake_hub.instead["/api/models"] = endless(b" ")

    with pytest.raises(HubError) as caught:
        at(fake_hub).search("model")

    assert caught.value.kind == "bad_answer"


ODD_ADDRESSES = [
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "mailto:someone",
    "ftp://127.0.0.1/x",
    "http://",
    "http://[::1",
    "//",
    "https://x:notaport/",
    "http://\u2603\u2603..",
    "a" * 60_000,
]


@pytest.mark.parametrize("address", ODD_ADDRESSES, ids=lambda address: address[:24])
def test_redirect_to_invalid_address_raises_hub_error(fake_hub: FakeHub, tmp_path: Path, address: str) -> None:
    odd = address.encode().decode("latin-1")
    fake_hub.instead[RESOLVE] = fake_hub.instead["/api/models"] = answer(b"", 302, Location=odd)
    hub = at(fake_hub)
    packs = FixedAddresses(Network(fake_hub.endpoint), {NAME: f"{fake_hub.endpoint}{RESOLVE}"})

    for source in (hub, packs):
        with pytest.raises(HubError) as caught:
            download_file(source, FILE, tmp_path / NAME, lambda _: None, DownloadControl(), QUICK)
        assert caught.value.kind in ("bad_answer", "no_connection", "not_found", "changed"), source
    with pytest.raises(HubError):
        remote_facts(hub, FILE)
    with pytest.raises(HubError):
        hub.search("model")
    assert not (tmp_path / NAME).exists()


@pytest.mark.parametrize("size", ["", "many", "-5", "9" * 5000, "\u00b2"], ids=["none", "text", "below 0", "long", "²"])
def test_invalid_size_does_not_stop_download(fake_hub: FakeHub, tmp_path: Path, size: str) -> None:
    fake_hub.instead[RESOLVE] = answer(
        b"", 302, Location=f"{fake_hub.store}/{REPO}/{NAME}", X_Linked_Size=size, Content_Length="0"
    )

    download_file(at(fake_hub), FILE, tmp_path / NAME, lambda _: None, DownloadControl(), QUICK)

    assert (tmp_path / NAME).read_bytes() == CONTENT


def test_invalid_retry_after_is_ignored(fake_hub: FakeHub, tmp_path: Path) -> None:
    fake_hub.instead[RESOLVE] = answer(b"", 429, Retry_After="\u00b2")

    with pytest.raises(HubError) as caught:
        download_file(at(fake_hub), FILE, tmp_path / NAME, lambda _: None, DownloadControl(), QUICK)

    assert (caught.value.kind, caught.value.retry_after_s) == ("busy", None)
