"""`python -m tools.abi_check`: the pinned release fits, and its table has what the worker's code uses."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from qwendesk.core.engine_abi import known_abis, read_abi
from qwendesk.engine.worker import devices, log, params
from tests.engines.made_headers import headers_of
from tools.abi_check import used_names

ROOT = Path(__file__).parents[2]
PIN = known_abis()[0]
# Types and variables of the binding; pointers to opaque structs have no layout.
_NOT_IN_TABLE = ("_p", "_p_ctypes", "_callback", "_lib", "__file__", "llama_token", "llama_pos", "get")


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.abi_check", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_the_table_has_everything_that_the_worker_uses() -> None:
    from_binding, of_ggml = used_names()

    known = {*PIN.functions, *PIN.structs, *PIN.constants}
    assert {name for name in from_binding if not name.endswith(_NOT_IN_TABLE)} - known == set()
    assert of_ggml - known == set()


def test_the_table_has_no_function_that_the_worker_no_longer_uses() -> None:
    from_binding, of_ggml = used_names()

    assert PIN.functions.keys() - from_binding - of_ggml == set()


def test_numbers_in_the_worker_are_those_of_the_constants() -> None:
    def by_name(prefix: str, names: dict[str, str]) -> dict[str, int]:
        return {key: PIN.constants[f"{prefix}_{name}"] for key, name in names.items()}

    def upper(numbers: dict[str, int]) -> dict[str, str]:
        return {key: key.upper() for key in numbers}

    assert by_name("GGML_TYPE", upper(params.CACHE_TYPES)) == params.CACHE_TYPES
    assert by_name("LLAMA_SPLIT_MODE", upper(params._SPLIT_MODES)) == params._SPLIT_MODES
    assert by_name("LLAMA_LAZY_MODE", upper(params._LAZY_MODES)) == params._LAZY_MODES
    load_modes = {"none": "NONE", "mmap": "MMAP", "mlock": "MMAP_MLOCK"}
    assert by_name("LLAMA_LOAD_MODE", load_modes) == params._LOAD_MODES
    flash = {"auto": "AUTO", "off": "DISABLED", "on": "ENABLED"}
    assert by_name("LLAMA_FLASH_ATTN_TYPE", flash) == params._FLASH_ATTENTION
    rope = {**upper(params._ROPE_SCALING), "auto": "UNSPECIFIED"}
    assert by_name("LLAMA_ROPE_SCALING_TYPE", rope) == params._ROPE_SCALING
    assert by_name("GGML_NUMA_STRATEGY", {**upper(params._NUMA), "off": "DISABLED"}) == params._NUMA
    kinds = {PIN.constants[f"GGML_BACKEND_DEVICE_TYPE_{kind.upper()}"]: kind for kind in ("cpu", "gpu", "igpu")}
    assert kinds == devices._KINDS
    assert PIN.constants["GGML_LOG_LEVEL_CONT"] == log._CONTINUED
    assert PIN.constants["GGML_LOG_LEVEL_WARN"] == log._WARNING


def test_the_installed_engine_fits() -> None:
    package = Path(params.C.__file__).parent
    done = check("--libraries", package / "lib")

    if "There is no llama.h" in done.stderr:
        pytest.skip("llama-cpp-python brought no headers")
    assert (done.returncode, done.stderr) == (0, "")
    assert "It fits." in done.stdout
    assert ": 0 contradict." in done.stdout
    assert "Without harm" not in done.stdout


def test_an_archive_of_headers_is_checked_and_its_table_written(tmp_path: Path) -> None:
    archive, table = _archive(
        tmp_path, headers_of(PIN).replace("bool parse_special;", "bool parse_special; int64_t z;")
    )

    done = check(archive, "--table", table)

    assert (done.returncode, done.stderr) == (0, "")
    assert "llama.cpp-b99999: 107 functions" in done.stdout
    assert "Without harm: The field mtmd_input_text.z of type int64 was added." in done.stdout
    assert read_abi(table).structs["mtmd_input_text"].size == 32


def test_no_table_is_written_for_a_release_that_does_not_fit(tmp_path: Path) -> None:
    archive, table = _archive(tmp_path, headers_of(PIN).replace("llama_decode", "llama_decode_2"))

    done = check(archive, "--table", table)

    assert done.returncode == 1
    assert "llama_decode is missing." in done.stdout
    assert not table.exists()


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_what_is_no_source_is_a_plain_sentence(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "source.tar.gz"
    file.write_bytes(content)

    for source in (file, tmp_path, tmp_path / "missing"):
        done = check(source)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1


def _archive(folder: Path, headers: str) -> tuple[Path, Path]:
    source = folder / "llama.cpp-b99999" / "include"
    source.mkdir(parents=True)
    (source / "llama.h").write_text(headers, encoding="utf-8")
    archive = folder / "source.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(source.parent, source.parent.name)
    return archive, folder / "abi.json"
