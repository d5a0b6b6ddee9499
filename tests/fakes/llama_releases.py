"""Made-up releases of llama.cpp on a server of our own, in the forms that GitHub has."""

import hashlib
import io
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.engine_abi import EngineAbi, known_abis
from qwendesk.engines.c_headers import HEADER_NAMES
from qwendesk.engines.llama_releases import ARCHITECTURES_NAME, ReleaseServer
from tests.engines.made_headers import headers_of
from tests.fakes.pack_server import PackServer

_FOLDERS = {"llama.h": "include", "llama-ext.h": "src", "mtmd.h": "tools/mtmd", "mtmd-helper.h": "tools/mtmd"}


def sources_of(abi: EngineAbi | None = None, architectures: Sequence[str] = ("qwen35",)) -> dict[str, str]:
    """The sources of a release by their paths, with what `abi` has in one of the headers."""
    texts = {f"{_FOLDERS.get(name, 'ggml/include')}/{name}": "#pragma once\n" for name in HEADER_NAMES}
    texts["include/llama.h"] = headers_of(abi or known_abis()[0])
    texts["ggml/include/ggml.h"] = "enum ggml_type { GGML_TYPE_F32 = 0, GGML_TYPE_COUNT = 44, };\n"
    rows = "".join(f'    {{ LLM_ARCH_{number}, "{name}" }},\n' for number, name in enumerate(architectures))
    texts[f"src/{ARCHITECTURES_NAME}"] = (
        f"static const std::map<llm_arch, const char *> LLM_ARCH_NAMES = {{\n{rows}}};\n"
    )
    return texts


def tar_of(tag: str, files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> bytes:
    """An archive as llama.cpp has it for Linux and macOS: all in one folder, with links for the libraries' names."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"llama-{tag}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(f"llama-{tag}/{name}")
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return stream.getvalue()


def library_tar(tag: str, libraries: Sequence[Path]) -> bytes:
    """The archive with these libraries of Linux, each under its full name, and links for the others."""
    files: dict[str, bytes] = {"LICENSE": b"MIT", "llama-server": b"a program", "libggml-rpc.so": b"another backend"}
    links = {}
    for path in libraries:
        plain = path.name.partition(".so")[0]
        full = f"{plain}.so.0.9.9"
        files[full] = path.read_bytes()
        links |= {f"{plain}.so.0": full, f"{plain}.so": f"{plain}.so.0"}
    return tar_of(tag, files, links)


def zip_of(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def git_hash(content: bytes) -> str:
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()


def addresses(server: PackServer) -> ReleaseServer:
    return ReleaseServer(f"{server.address}/api", f"{server.address}/files", f"{server.address}/raw")


def publish(
    server: PackServer, tag: str, archives: Mapping[str, bytes], sources: Mapping[str, str], *, digests: bool = True
) -> None:
    """Put a release on the server, as the newest one of its list."""
    path = "/api/releases?per_page=10"
    listed = msgspec.json.decode(server.archives.get(path, b"[]"))
    assets = [
        {
            "name": name, "size": len(content),
            "digest": f"sha256:{hashlib.sha256(content).hexdigest()}" if digests else None,
        }
        for name, content in archives.items()
    ]  # fmt: skip
    listed.insert(0, {"tag_name": tag, "published_at": "2026-11-12T08:00:00Z", "assets": assets, "body": "notes"})
    server.archives[path] = msgspec.json.encode(listed)
    encoded = {path: text.encode() for path, text in sources.items()}
    tree = [{"path": path, "type": "blob", "sha": git_hash(text), "size": len(text)} for path, text in encoded.items()]
    tree.append({"path": "include", "type": "tree", "sha": "0" * 40})
    server.archives[f"/api/git/trees/{tag}?recursive=1"] = msgspec.json.encode({"tree": tree, "truncated": False})
    server.archives |= {f"/raw/{tag}/{path}": text for path, text in encoded.items()}
    server.archives |= {f"/files/{tag}/{name}": content for name, content in archives.items()}


def archive_of(tag: str, libraries: Sequence[Path]) -> dict[str, bytes]:
    """The archive for the CPU of this system, by its name: of DLLs for Windows, else of libraries for Linux."""
    if sys.platform == "win32":
        files = {"llama-server.exe": b"a program", "ggml-rpc.dll": b"another backend", "LICENSE": b"MIT"}
        return {
            f"llama-{tag}-bin-win-cpu-x64.zip": zip_of(files | {path.name: path.read_bytes() for path in libraries})
        }
    return {f"llama-{tag}-bin-ubuntu-x64.tar.gz": library_tar(tag, libraries)}


def publish_here(server: PackServer, tag: str, libraries: Sequence[Path], **sources: object) -> None:
    """Publish a release for the CPU of this system."""
    publish(server, tag, archive_of(tag, libraries), sources_of(**sources))  # type: ignore[arg-type]
