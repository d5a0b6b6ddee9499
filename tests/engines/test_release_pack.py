"""A pack made from a release's archives: which libraries it has, and what is refused, by name."""

import json
from pathlib import Path

import pytest

from qwendesk.core.engine_abi import read_abi
from qwendesk.core.engine_manifest import EngineFolder
from qwendesk.engine.engine_folders import read_engine, wrong_files
from qwendesk.engines.pack_file import BadPack
from qwendesk.engines.release_pack import ReleaseFiles, kept_libraries, make_pack, sources_in
from qwendesk.engines.trial import reason_not_startable, unfit_layouts
from tests.engine.worker.test_struct_layouts import changed_abi
from tests.fakes.llama_releases import sources_of, tar_of, zip_of

TAG = "b99999"
NAMES = {Path(path).name: text for path, text in sources_of(architectures=("qwen35", "qwen4")).items()}


def files(folder: Path, content: bytes, *, name: str = "llama.tar.gz", **changes: object) -> ReleaseFiles:
    archive = folder / name
    archive.write_bytes(content)
    values = {"tag": TAG, "backend": "cpu", "archives": (archive,), "sources": NAMES} | changes
    return ReleaseFiles(**values)  # type: ignore[arg-type]


def linux(**more: bytes) -> bytes:
    libraries = {f"lib{name}.so.0.9.9": name.encode() for name in ("llama", "mtmd", "ggml", "ggml-base")}
    links = {}
    for name in libraries:
        plain = name.removesuffix(".0.9.9")
        links |= {f"{plain}.0": name, plain: f"{plain}.0"}
    others = {"llama-cli": b"program", "libggml-cpu-haswell.so": b"cpu", "libggml-rpc.so": b"rpc", "LICENSE": b"MIT"}
    return tar_of(TAG, libraries | others | more, links)


def made(tmp_path: Path, release: ReleaseFiles) -> Path:
    folder = tmp_path / f"{TAG}-{release.backend}"
    folder.mkdir()
    make_pack(release, folder, "installed")
    return folder


def test_an_archive_for_linux_becomes_an_engine_without_links(tmp_path: Path) -> None:
    folder = made(tmp_path, files(tmp_path, linux()))
    engine = read_engine(folder)
    assert isinstance(engine, EngineFolder)
    assert wrong_files(engine) == ()
    assert {path.name for path in folder.iterdir()} == {
        "abi.json", "engine.json", "libggml-base.so.0", "libggml-cpu-haswell.so", "libggml.so.0", "libllama.so",
        "libmtmd.so",
    }  # fmt: skip
    assert not any(path.is_symlink() for path in folder.iterdir())
    assert (folder / "libllama.so").read_bytes() == b"llama"
    manifest = engine.manifest
    assert (manifest.release, manifest.package_version, manifest.replaces) == (TAG, "", "installed")
    assert (manifest.architectures, manifest.n_types) == (("qwen35", "qwen4"), 44)
    assert read_abi(folder / "abi.json").release == TAG
    assert reason_not_startable(manifest, "0.3.36", ()) == ""
    assert unfit_layouts(engine) == ""


def test_what_windows_gets() -> None:
    names = (
        "llama.dll", "mtmd.dll", "ggml.dll", "ggml-base.dll", "ggml-cpu-haswell.dll", "ggml-cpu-x64.dll",
        "ggml-vulkan.dll", "ggml-rpc.dll", "libomp140.x86_64.dll", "llama-server.exe", "cudart64_12.dll",
    )  # fmt: skip
    kept = set(kept_libraries(dict.fromkeys(names, True), "vulkan"))
    assert set(names) - kept == {"ggml-rpc.dll", "llama-server.exe"}
    assert "ggml-vulkan.dll" not in kept_libraries(dict.fromkeys(names, True), "cpu")
    assert "ggml-hip.dll" in kept_libraries({"ggml-hip.dll": True}, "rocm")


@pytest.mark.parametrize(
    ("pattern", "new", "says"),
    [
        (r"bool vocab_only;", "bool vocab_only; int32 novel;", "llama_model_params.novel of type int32 was added."),
        (r"LLAMA_SPLIT_MODE_ROW = 2", "LLAMA_SPLIT_MODE_ROW = 5", "LLAMA_SPLIT_MODE_ROW is now 5 instead of 2."),
        (r"LLAMA_API void llama_backend_init\(void\);", "", "llama_backend_init is missing."),
    ],
)  # fmt: skip
def test_headers_that_do_not_fit_are_refused_by_name(tmp_path: Path, pattern: str, new: str, says: str) -> None:
    sources = NAMES | {"llama.h": sources_of(changed_abi(pattern, new))["include/llama.h"]}
    with pytest.raises(BadPack) as refused:
        made(tmp_path, files(tmp_path, linux(), sources=sources))
    assert says in refused.value.sentence
    assert "QwenDesk can't call b99999, because it differs from b11312." in refused.value.sentence
    assert list((tmp_path / f"{TAG}-cpu").iterdir()) == []


def test_without_a_header_nothing_is_believed(tmp_path: Path) -> None:
    sources = {name: text for name, text in NAMES.items() if name != "mtmd.h"}
    with pytest.raises(BadPack) as refused:
        made(tmp_path, files(tmp_path, linux(), sources=sources))
    assert "has no mtmd.h" in refused.value.sentence


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (linux()[:200], "llama.tar.gz"),
        (b"<html>", "llama.tar.gz"),
        (b"<html>", "llama.zip"),
        (tar_of(TAG, {}, {"libllama.so": "../../../etc/passwd"}), "llama.tar.gz"),
        (tar_of(TAG, {}, {"libllama.so": "libmtmd.so", "libmtmd.so": "libllama.so"}), "llama.tar.gz"),
    ],
    ids=["cut", "page", "page as zip", "link out", "links in a circle"],
)
def test_damaged_archives_are_refused(tmp_path: Path, content: bytes, name: str) -> None:
    with pytest.raises(BadPack) as refused:
        made(tmp_path, files(tmp_path, content, name=name))
    assert f"{name} is damaged: " in refused.value.sentence


def test_an_engine_no_longer_fits_a_worker_that_makes_other_calls(tmp_path: Path) -> None:
    engine = read_engine(made(tmp_path, files(tmp_path, linux())))
    assert isinstance(engine, EngineFolder)
    table = Path(engine.path, "abi.json")
    abi = json.loads(table.read_bytes())
    del abi["functions"]["llama_decode"]
    table.write_text(json.dumps(abi), encoding="utf-8")
    assert "llama_decode is missing." in unfit_layouts(engine)
    table.unlink()
    assert "abi.json can't be read" in unfit_layouts(engine)


def test_sources_are_found_in_githubs_archives(tmp_path: Path) -> None:
    texts = {f"llama.cpp-{TAG}/{path}": text.encode() for path, text in sources_of().items()}
    texts |= {f"llama.cpp-{TAG}/examples/deep/er/llama.h": b"another one", f"llama.cpp-{TAG}/README.md": b"read me"}
    archive = tmp_path / f"llama.cpp-{TAG}.zip"
    archive.write_bytes(zip_of(texts))
    found = sources_in(archive)
    assert found["llama.h"] == sources_of()["include/llama.h"]
    assert set(found) == set(NAMES)
    plain = tmp_path / f"llama.cpp-{TAG}.tar.gz"
    plain.write_bytes(tar_of(TAG, {path: text.encode() for path, text in sources_of().items()}))
    assert sources_in(plain)["mtmd.h"] == NAMES["mtmd.h"]
