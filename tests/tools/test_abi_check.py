"""`python -m tools.abi_check`: the pinned release fits, and its table has what the worker's code uses."""

import ctypes
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from qwendesk.core.engine_abi import known_abis, read_abi
from qwendesk.engine.worker import devices, log, mtp_head, params, stream
from tests.engines.made_headers import headers_of
from tools.abi_check import _kind_in_binding, _kind_in_header, optional_names, used_names

ROOT = Path(__file__).parents[2]
PIN = known_abis()[0]


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.abi_check", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_the_table_has_everything_that_the_worker_uses() -> None:
    """What else it takes from the binding are pointers to structs without a layout, and types of callbacks."""
    from_binding, of_ggml = used_names()

    known = {*PIN.functions, *PIN.structs, *PIN.constants}
    assert {name for name in from_binding if _is_of_c(name)} - known == set()
    assert of_ggml - known == set()
    assert {"llama_decode", "llama_sampler_init_top_p", "mtmd_tokenize", "ggml_flash_attn_ext"} <= known


def _is_of_c(name: str) -> bool:
    """Whether the binding has it from the library or its headers: a function, a struct or a constant."""
    values = [getattr(module, name) for module in (params.C, params.mtmd_cpp, mtp_head.X) if hasattr(module, name)]
    return any(isinstance(value, int | ctypes._CFuncPtr) or hasattr(value, "_fields_") for value in values)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "code",
    [
        "import llama_cpp.llama_cpp as C\nC.llama_novel(1)",
        "import llama_cpp\nllama_cpp.llama_cpp.llama_novel(1)",
        "from llama_cpp import mtmd_cpp as M\nuse(M.llama_novel)",
        "from llama_cpp import mtmd_cpp\nmtmd_cpp.llama_novel",
        "from llama_cpp.llama_cpp import llama_novel as other",
        "class Library:\n    ggml_novel: Function",
        "TABLE = {'ggml_novel': (int, int)}",
        "library.ggml_novel(1)",
    ],
)
def test_a_call_is_found_however_it_is_written(code: str, tmp_path: Path) -> None:
    file = tmp_path / "novel.py"
    file.write_text(code, encoding="utf-8")

    from_binding, of_ggml = used_names([file])

    assert (from_binding | of_ggml) & {"llama_novel", "ggml_novel"}


def test_the_measurements_own_calls_have_the_types_of_the_headers() -> None:
    """They are optional: an engine that has them otherwise is used, and measures nothing (stream.py)."""
    assert optional_names() <= {*PIN.optional} <= {*stream._SIGNATURES, "ggml_init_params"}
    for name, kinds in stream._SIGNATURES.items():
        signature = PIN.functions[name]
        declared = [_kind_in_header(each) for each in (signature.result, *signature.parameters)]
        assert [_kind_in_binding(kind) for kind in kinds] == [
            "_Params" if kind == "ggml_init_params" else kind for kind in declared
        ], name
    layout = PIN.structs["ggml_init_params"]
    own = stream._Params
    assert [(field.name, field.offset) for field in layout.fields] == [
        (field[0], getattr(own, field[0]).offset) for field in own._fields_
    ]
    assert layout.size == ctypes.sizeof(own)


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
    assert "llama.cpp-b99999: 132 functions" in done.stdout
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
