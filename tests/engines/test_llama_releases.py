"""Which archives of a llama.cpp release are for a PC, and what its source says of what it can load."""

import hashlib

import msgspec
import pytest

from qwendesk.core.engine_abi import build_number
from qwendesk.engines.c_headers import HEADER_NAMES
from qwendesk.engines.llama_releases import (
    ARCHITECTURES_NAME,
    EngineRelease,
    backends_on,
    fetch_newest,
    known_architectures,
    newest_release,
    number_of_types,
)
from qwendesk.hub.network import HubError, Network, never_cut
from tests.fakes.llama_releases import addresses, publish, sources_of
from tests.fakes.pack_server import PackServer

# As GitHub names the files of b11352's page.
NAMES = (
    "cudart-llama-bin-win-cuda-12.4-x64.zip", "cudart-llama-bin-win-cuda-13.3-x64.zip",
    "llama-b11352-bin-macos-arm64.tar.gz", "llama-b11352-bin-ubuntu-x64.tar.gz",
    "llama-b11352-bin-ubuntu-vulkan-x64.tar.gz", "llama-b11352-bin-ubuntu-openvino-2026.0-x64.tar.gz",
    "llama-b11352-bin-win-cpu-x64.zip", "llama-b11352-bin-win-cuda-12.4-x64.zip",
    "llama-b11352-bin-win-cuda-13.3-x64.zip", "llama-b11352-bin-win-vulkan-x64.zip",
    "llama-b11352-bin-win-hip-radeon-x64.zip", "llama-b11352-xcframework.zip",
)  # fmt: skip


def page(*tags: str, **changes: object) -> bytes:
    releases = []
    for tag in tags:
        assets = [
            {"name": name.replace("b11352", tag), "size": 100, "digest": f"sha256:{hashlib.sha256(b'').hexdigest()}"}
            | changes
            for name in NAMES
        ]
        releases.append({"tag_name": tag, "published_at": "2026-10-06T10:00:00Z", "assets": assets})
    return msgspec.json.encode(releases)


@pytest.mark.parametrize(
    ("platform", "backend", "cuda", "names"),
    [
        ("windows-x64", "cuda", 12, [NAMES[7], NAMES[0]]),
        ("windows-x64", "cuda", 13, [NAMES[8], NAMES[1]]),
        ("windows-x64", "vulkan", 12, [NAMES[9]]),
        ("windows-x64", "cpu", 12, [NAMES[6]]),
        ("linux-x64", "cpu", 12, [NAMES[3]]),
        ("linux-x64", "vulkan", 12, [NAMES[4]]),
        ("macos-arm64", "metal", 12, [NAMES[2]]),
    ],
)
def test_each_pc_gets_the_archives_of_its_backend(platform: str, backend: str, cuda: int, names: list[str]) -> None:
    found = newest_release(page("b11352"), platform, backend, cuda)  # type: ignore[arg-type]
    assert found is not None
    assert [each.name for each in found.archives] == names
    assert (found.tag, found.date, found.name) == ("b11352", "2026-10-06", f"b11352-{backend}")


def test_the_newest_release_whose_archives_are_there_is_taken() -> None:
    newest = msgspec.json.decode(page("b11900"))
    newest[0]["assets"] = newest[0]["assets"][:3]  # still being uploaded
    draft = msgspec.json.decode(page("b11950"))
    draft[0]["draft"] = True
    listed = [*draft, *newest, *msgspec.json.decode(page("b9999", "b11861", "v0.6.0"))]
    found = newest_release(msgspec.json.encode(listed), "linux-x64", "cpu")
    assert found is not None
    assert found.tag == "b11861", "and b9999 is older, although its text is greater"


@pytest.mark.parametrize("digest", [None, "", "sha1:00", "sha256:short"])
def test_an_archive_without_a_hash_is_none(digest: str | None) -> None:
    assert newest_release(page("b11352", digest=digest), "linux-x64", "cpu") is None


def test_no_backend_is_made_up() -> None:
    assert backends_on("linux-x64") == ("vulkan", "cpu"), "llama.cpp has no CUDA archive for Linux"
    assert newest_release(page("b11352"), "linux-x64", "cuda") is None
    assert backends_on("linux-riscv64") == ()
    assert (build_number("b11861"), build_number("v0.6.0"), build_number("b12"), build_number("")) == (11861, 0, 0, 0)


def test_architectures_and_types_are_read_from_the_source() -> None:
    text = '{ LLM_ARCH_LLAMA, "llama" }, // {LLM_ARCH_X, "x" y}\n    { LLM_ARCH_QWEN4,   "qwen4" },\n{ LLM_KV_Q, "q" },'
    assert known_architectures(text) == ("llama", "qwen4")
    assert number_of_types("enum ggml_type { GGML_TYPE_F32 = 0, GGML_TYPE_COUNT   = 44, }") == 44
    assert (known_architectures(""), number_of_types("")) == ((), 0)


def fetched(server: PackServer, network: Network | None = None) -> EngineRelease | None:
    return fetch_newest(network or Network(token="secret"), addresses(server), "linux-x64", "cpu", 12, never_cut)


def test_a_look_brings_the_release_its_source_and_what_it_loads(server: PackServer) -> None:
    archive = b"libraries"
    publish(
        server, "b11861", {"llama-b11861-bin-ubuntu-x64.tar.gz": archive}, sources_of(architectures=("qwen35", "qwen4"))
    )
    found = fetched(server)
    assert found is not None
    assert found.architectures == ("qwen35", "qwen4")
    assert found.n_types == 44
    assert [each.path for each in found.sources] == [*HEADER_NAMES, ARCHITECTURES_NAME]
    assert found.places["mtmd.h"] == "tools/mtmd/mtmd.h"
    assert found.download_bytes == len(archive) + sum(each.n_bytes for each in found.sources)
    assert not any("authorization" in headers for headers in server.headers), "the Hub's token is for the Hub"


@pytest.mark.parametrize("answer", [b"<html>Log in</html>", b"{}", b"[1]", b"[" * 5000])
def test_a_page_of_a_hotel_is_no_list(server: PackServer, answer: bytes) -> None:
    server.archives["/api/releases?per_page=10"] = answer
    with pytest.raises(HubError) as refused:
        fetched(server)
    assert refused.value.kind == "bad_answer"


def test_offline_asks_nobody(server: PackServer) -> None:
    with pytest.raises(HubError) as refused:
        fetched(server, Network(offline=True))
    assert refused.value.kind == "offline"
    assert server.headers == []
