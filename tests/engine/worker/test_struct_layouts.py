"""The worker with the struct layouts of a table beside the engine's libraries, instead of the binding's classes."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.engine_abi import EngineAbi, Field, StructLayout, encode_abi, known_abis
from qwendesk.core.engine_manifest import ABI_TABLE_NAME
from qwendesk.engine.engine_folders import LIBRARY_VARIABLES
from qwendesk.engine.worker import loader
from qwendesk.engines.c_headers import read_headers
from tests.engine.worker.process import GREEDY, WorkerProcess, demo_options, draw_circle, user, worker_process
from tests.engines.made_headers import headers_of
from tests.real_libraries import real_libraries

PIN = known_abis()[0]


def changed_abi(pattern: str, new: str) -> EngineAbi:
    """The table of a release whose headers differ from the pinned one's in one place."""
    text, n_found = re.subn(pattern, new, headers_of(PIN), count=1)
    assert n_found == 1
    return read_headers([text]).abi("b99999", PIN)


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A folder with the installed engine's libraries, and no table."""
    folder = tmp_path / "engine"
    folder.mkdir()
    for library in real_libraries():
        shutil.copy(library, folder)
    return folder


def variables(engine: Path) -> Mapping[str, str]:
    return dict.fromkeys(LIBRARY_VARIABLES, str(engine))


@pytest.fixture
def longer(engine: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerProcess]:
    """A worker whose table has a field more in two structs that are passed by pointer."""
    abi = PIN
    for name in ("mtmd_input_text", "llama_token_data_array"):
        layout = PIN.structs[name]
        fields = (*layout.fields, Field("novel", "int64", layout.size, 8))
        abi = msgspec.structs.replace(abi, structs={**abi.structs, name: StructLayout(layout.size + 8, fields)})
    (engine / ABI_TABLE_NAME).write_bytes(encode_abi(abi))
    for name, value in variables(engine).items():
        monkeypatch.setenv(name, value)
    with worker_process() as process:
        process.load(demo_options())
        yield process


def test_text_thinking_and_pictures_work_with_longer_structs(longer: WorkerProcess, tmp_path: Path) -> None:
    """The libraries that are here don't look at the new fields, as those of such a release don't when they are 0."""
    assert longer.ask([user("What is 2 + 3?")], GREEDY).text.startswith("2 + 3 = 5")
    picture = draw_circle(tmp_path / "red.png", "red")
    assert "red circle" in longer.ask([user("What is in this picture?", picture)], GREEDY).text


def run_python(code: str, engine: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables(engine)}, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


_USE = """
import ctypes, os, pathlib
from qwendesk.engine.worker.struct_layouts import use_table
use_table(pathlib.Path(os.environ["LLAMA_CPP_LIB_PATH"], "abi.json"))
import llama_cpp.llama_cpp as C
from llama_cpp import mtmd_cpp as M
"""


def test_parameters_are_written_where_the_table_has_them(engine: Path) -> None:
    """The libraries that are here have no such field, so their defaults can't be asked."""
    abi = changed_abi(r"(struct llama_model_params \{)", r"\1 int64 novel;")
    (engine / ABI_TABLE_NAME).write_bytes(encode_abi(abi))

    done = run_python(
        "from qwendesk.engine.worker import struct_layouts\n"
        f"struct_layouts._check_defaults = lambda *_: None\n{_USE}\n"
        "params = C.llama_model_params(main_gpu=7)\n"
        "print(ctypes.sizeof(params), C.llama_model_params.main_gpu.offset, params.main_gpu)\n"
        "print(C.llama_model_load_from_file.argtypes[1] is C.llama_model_params)\n"
        "print(C.llama_model_default_params.restype is C.llama_model_params)\n"
        "params.progress_callback = C.llama_progress_callback(lambda done, data: True)\n"
        "params.kv_overrides = (C.llama_model_kv_override * 2)()\n"
        "print(C.llama_sampler_apply.argtypes[1] is ctypes.POINTER(C.llama_token_data_array))\n",
        engine,
    )

    assert done.stderr == ""
    assert done.stdout.split() == ["88", "40", "7", "True", "True", "True"]


def test_defaults_that_the_library_can_not_mean_refuse_it(engine: Path) -> None:
    """The headers are of one build and the library of another: a bool lies where the library has its 4 threads."""
    text = headers_of(PIN).replace("bool offload_kqv;", "bool novel;")
    text, n_found = re.subn(r"int32 n_threads;", "bool offload_kqv; bool a; bool b; bool c;", text, count=1)
    assert n_found == 1
    (engine / ABI_TABLE_NAME).write_bytes(encode_abi(read_headers([text]).abi("b99999", PIN)))

    code, said = exit_of_worker(engine)

    assert code == 1
    assert "The default of llama_context_params.offload_kqv is now 4 instead of True." in said


def test_without_a_table_nothing_of_it_is_imported(engine: Path) -> None:
    code = (
        "import sys\n"
        "from qwendesk.engine.worker import main, service\n"
        "main._use_layouts_of_engine()\n"
        "print(*(name for name in sys.modules if name.endswith(('.engine_abi', '.struct_layouts'))))\n"
    )

    assert run_python(code, engine).stdout == "\n"


def test_a_field_that_the_table_lacks_can_not_be_set(engine: Path) -> None:
    (engine / ABI_TABLE_NAME).write_bytes(encode_abi(changed_abi(r"bool swa_full;", "")))

    done = run_python(f"{_USE}\nC.llama_context_params().swa_full = True", engine)

    assert "AttributeError" in done.stderr


def test_functions_that_only_the_binding_uses_may_be_gone(engine: Path) -> None:
    """llama-cpp-python binds each function of its headers when it is imported, and fails at the first missing one."""
    (engine / ABI_TABLE_NAME).write_bytes(encode_abi(PIN))
    hidden = (
        "import ctypes\n"
        "found = ctypes.CDLL.__getattr__\n"
        "def without(library, name):\n"
        "    if name == 'llama_supports_rpc':\n"
        "        raise AttributeError(name)\n"
        "    return found(library, name)\n"
        "ctypes.CDLL.__getattr__ = without\n"
    )

    assert "llama_supports_rpc" in run_python(f"{hidden}import llama_cpp", engine).stderr
    done = run_python(f"{hidden}{_USE}print(C.llama_max_devices())", engine)
    assert (done.returncode, done.stderr) == (0, "")


def exit_of_worker(engine: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "qwendesk", "--worker"],
        env={**os.environ, **variables(engine)}, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_a_function_that_the_libraries_lack_is_named(engine: Path) -> None:
    abi = changed_abi(r"(LLAMA_API void llama_free\()", r"LLAMA_API void llama_novel(void);\n\1")
    functions = {**abi.functions, "llama_novel": abi.functions["llama_backend_init"]}
    (engine / ABI_TABLE_NAME).write_bytes(encode_abi(msgspec.structs.replace(abi, functions=functions)))

    code, said = exit_of_worker(engine)

    assert code == 1
    assert said == f"The engine in {engine} can't be used: Its libraries have no function llama_novel.\n"


@pytest.mark.parametrize("content", [b"", b"{}", b"not JSON"])
def test_a_damaged_table_ends_the_worker_with_a_sentence(engine: Path, content: bytes) -> None:
    (engine / ABI_TABLE_NAME).write_bytes(content)

    code, said = exit_of_worker(engine)

    assert code == 1
    assert said.startswith(f"The engine in {engine} can't be used: ")
    assert said.count("\n") == 1


def test_a_table_of_another_system_is_refused(engine: Path) -> None:
    layout = PIN.structs["llama_batch"]
    moved = StructLayout(layout.size, (*layout.fields[:-1], msgspec.structs.replace(layout.fields[-1], offset=52)))
    abi = msgspec.structs.replace(PIN, structs={**PIN.structs, "llama_batch": moved})
    (engine / ABI_TABLE_NAME).write_bytes(encode_abi(abi))

    assert "layout of llama_batch" in exit_of_worker(engine)[1]


def test_states_of_chats_belong_to_the_release_of_the_table(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIBRARY_VARIABLES[0], str(engine))
    fingerprints = {loader._fingerprint(demo_options())}
    for release in ("b99998", "b99999"):
        (engine / ABI_TABLE_NAME).write_bytes(encode_abi(msgspec.structs.replace(PIN, release=release)))
        fingerprints.add(loader._fingerprint(demo_options()))

    assert len(fingerprints) == 3
