"""Checks that the worker's calls fit the libraries of an engine: `python -m tools.abi_check [SOURCE]`.

SOURCE is a folder or an archive (tar or zip) with llama.cpp's headers, such as the source of a release; without one,
the headers beside the installed llama-cpp-python are read. They are compared with the tables in resources/engine_abi.
A llama-cpp-python source is also compared with its own ctypes classes, as is the installed one.

    --libraries FOLDER   also ask the libraries in FOLDER for their default values
    --table FILE         write the layouts for an engine of that release, if it fits: abi.json beside its libraries
    --write RELEASE      make the table of a release for which the worker is written, after reading what has changed
"""

import argparse
import ast
import ctypes
import importlib
import importlib.util
import os
import re
import sys
import tarfile
import tempfile
import types
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.core.engine_abi import AbiReport, EngineAbi, Signature, check_against_all, encode_abi, known_abis
from qwendesk.engine.worker.struct_layouts import read_defaults
from qwendesk.engines.c_headers import HEADER_NAMES, Declarations, read_headers
from qwendesk.engines.c_tokens import CannotRead
from tools.setup.project import ROOT, SetupError

TABLES = ROOT / "resources" / "engine_abi"
_WORKER = ROOT / "qwendesk" / "engine" / "worker"
_MEASUREMENT = _WORKER / "stream.py"
_PACKAGE = "llama_cpp"
_GGML_FUNCTION = re.compile(r"ggml_[a-z0-9_]*[a-z0-9]")
_MODULES = ("llama_cpp", "mtmd_cpp", "llama_cpp_ext")
_FULL_MODULES = [f"{_PACKAGE}.{name}" for name in _MODULES]
# The worker makes arrays of them in a layout of its own: a numpy type and a class (logits.py, params.py).
_FIXED = ("llama_token_data", "llama_model_tensor_buft_override")
# Constants that the worker has as numbers, because the binding lacks them or an option names them (params.py,
# devices.py, log.py).
_AS_NUMBERS = (
    "GGML_TYPE_BF16",
    *(f"LLAMA_SPLIT_MODE_{name}" for name in ("NONE", "LAYER", "ROW", "TENSOR")),
    *(f"LLAMA_LOAD_MODE_{name}" for name in ("NONE", "MMAP", "MMAP_MLOCK")),
    *(f"LLAMA_LAZY_MODE_{name}" for name in ("OFF", "AUTO", "ON")),
    *(f"LLAMA_FLASH_ATTN_TYPE_{name}" for name in ("AUTO", "DISABLED", "ENABLED")),
    *(f"LLAMA_ROPE_SCALING_TYPE_{name}" for name in ("UNSPECIFIED", "NONE", "LINEAR", "YARN")),
    *(f"GGML_NUMA_STRATEGY_{name}" for name in ("DISABLED", "DISTRIBUTE", "ISOLATE", "NUMACTL")),
    *(f"GGML_BACKEND_DEVICE_TYPE_{name}" for name in ("CPU", "GPU", "IGPU")),
    *(f"GGML_LOG_LEVEL_{name}" for name in ("WARN", "CONT")),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what fits and what doesn't. Return the exit code: 1 if something doesn't."""
    parser = argparse.ArgumentParser(prog="python -m tools.abi_check", description=__doc__.split("\n\n")[0])
    parser.add_argument("source", nargs="?", type=Path)
    parser.add_argument("--libraries", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--write", metavar="RELEASE", default="")
    chosen = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folder = _unpacked(chosen.source, Path(scratch)) if chosen.source else _installed().parent
            declared = _declared_in(folder, is_whole=chosen.source is not None)
            if chosen.write:
                print(f"Written: {_write(chosen.write, declared, chosen.libraries)}")
            return _check(folder, declared, chosen)
    except (SetupError, CannotRead, OSError) as error:
        print(error, file=sys.stderr)
        return 2


def used_names(files: Iterable[Path] = tuple(_WORKER.rglob("*.py"))) -> tuple[set[str], set[str]]:
    """Return what the worker's modules take from the binding, and which of ggml's functions they call.

    The binding has none of ggml: they are fields of a protocol (devices.py) or keys of a table (stream.py), so that
    every name that is spelled like one counts.
    """
    from_binding, of_ggml = set(), set()
    for file in files:
        nodes = tuple(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        bindings = {alias.asname or alias.name for node in nodes for alias in _binding_imports(node)}
        for node in nodes:
            match node:
                case ast.Attribute(value=value, attr=attribute) if _root(value) in bindings:
                    from_binding.add(attribute)
                case ast.ImportFrom(module=module, names=names) if module in _FULL_MODULES:
                    from_binding |= {alias.name for alias in names}
                case (
                    ast.Attribute(attr=name) | ast.AnnAssign(target=ast.Name(id=name)) | ast.Constant(value=str(name))
                ) if _GGML_FUNCTION.fullmatch(name):
                    of_ggml.add(name)
    return from_binding, of_ggml


def optional_names() -> set[str]:
    """Return ggml's functions that the worker calls in the measurement of the RAM's speed alone."""
    others = (file for file in _WORKER.rglob("*.py") if file != _MEASUREMENT)
    return used_names([_MEASUREMENT])[1] - used_names(others)[1]


def binding_problems(folder: Path, declared: Declarations) -> tuple[int, list[str]]:
    """Compare all ctypes classes and functions of the binding in `folder` with the headers.

    Return how many were compared, and what contradicts. The binding is imported without its libraries: do this once in
    a process, and in none that uses them.
    """
    n_compared = 0
    problems: list[str] = []
    for module in _binding_without_libraries(folder):
        for name, value in vars(module).items():
            if isinstance(value, type) and hasattr(value, "_fields_") and name in declared.structs:
                n_compared += 1
                problems += _class_problems(name, value, declared)
            elif isinstance(value, _Function) and name in declared.functions:
                n_compared += 1
                problems += _function_problems(name, value, declared.functions[name])
    return n_compared, problems


def _check(folder: Path, declared: Declarations, chosen: argparse.Namespace) -> int:
    known = known_abis(TABLES)
    if not known:
        raise SetupError(f"{TABLES} has no table. Make one with --write.")
    found = declared.abi(folder.name, known[0])
    if chosen.libraries:
        found = msgspec.structs.replace(found, defaults=_defaults_of(chosen.libraries, found))
    report = check_against_all(known, found)
    _print(report, found)
    problems: list[str] = []
    if (folder / _PACKAGE).is_dir():
        n_compared, problems = binding_problems(folder / _PACKAGE, declared)
        print(f"{n_compared} ctypes classes and functions compared with the headers: {len(problems)} contradict.")
        for problem in problems:
            print(f"  {problem}")
    if chosen.table and report.fits:
        chosen.table.write_bytes(encode_abi(found))
        print(f"Written: {chosen.table}")
    return 0 if report.fits and not problems else 1


def _print(report: AbiReport, found: EngineAbi) -> None:
    parts = (f"{len(found.functions)} functions", f"{len(found.structs)} structs", f"{len(found.constants)} constants")
    print(f"{report.release}: {', '.join(parts)}, compared with {report.known_release}.")
    print("It fits." if report.fits else "It doesn't fit:")
    for sentence in report.sentences:
        print(f"  {sentence}")
    for note in report.notes:
        print(f"  Without harm: {note.sentence}")


def _write(release: str, declared: Declarations, libraries: Path | None) -> Path:
    """Make the table of a release from what the worker uses. Raise SetupError if the headers lack some of it."""
    from_binding, of_ggml = used_names()
    functions = {name for name in {*from_binding, *of_ggml} if name in declared.functions}
    lost = of_ggml - functions
    constants = {name for name in {*from_binding, *_AS_NUMBERS} if name in declared.constants}
    lost |= {*_AS_NUMBERS} - constants
    optional = optional_names() & functions
    needed = {name for each in functions - optional for name in _structs_in(declared.functions[each])}
    needed |= {name for name in {*from_binding, *_FIXED} if name in declared.structs}
    structs = needed | {name for each in optional for name in _structs_in(declared.functions[each])}
    optional |= structs - needed
    structs |= {f"{name}.value" for name in structs if f"{name}.value" in declared.structs}
    if lost:
        raise SetupError(f"The headers lack {', '.join(sorted(lost))}.")
    empty = EngineAbi(
        release=release,
        functions=dict.fromkeys(sorted(functions), Signature("", ())),
        structs=dict.fromkeys(sorted(structs), msgspec.UNSET),  # type: ignore[arg-type]
        fixed=_FIXED,
        optional=tuple(sorted(optional)),
        constants=dict.fromkeys(sorted(constants), 0),
    )
    abi = declared.abi(release, empty)
    if libraries:
        abi = msgspec.structs.replace(abi, defaults=_defaults_of(libraries, abi))
    TABLES.mkdir(exist_ok=True)
    file = TABLES / f"{release}.json"
    file.write_bytes(encode_abi(abi))
    return file


def _structs_in(signature: Signature) -> Iterator[str]:
    for text in (signature.result, *signature.parameters):
        if text.startswith("struct ") and not text.endswith("*"):
            yield text.removeprefix("struct ")


def _defaults_of(folder: Path, abi: EngineAbi) -> dict[str, dict[str, bool | int | float]]:
    names = {"win32": "{}.dll", "darwin": "lib{}.dylib"}.get(sys.platform, "lib{}.so")
    if sys.platform == "win32":
        os.add_dll_directory(str(folder.resolve()))
    libraries = [ctypes.CDLL(str((folder / names.format(name)).resolve())) for name in ("llama", "mtmd")]

    def function_named(name: str) -> Any:
        return getattr(libraries[name.startswith("mtmd_")], name)

    return read_defaults(abi, function_named)


def _installed() -> Path:
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise SetupError("llama-cpp-python isn't installed.")
    return Path(package.origin).parent


def _unpacked(source: Path, scratch: Path) -> Path:
    """Return the folder of a source; of an archive, only headers and Python files are unpacked."""
    if source.is_dir():
        return source
    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as packed:
            packed.extractall(scratch, [name for name in packed.namelist() if name.endswith((".h", ".py"))])
    elif not tarfile.is_tarfile(source):
        raise SetupError(f"{source} is neither a folder nor an archive.")
    else:
        with tarfile.open(source) as packed_tar:
            members = [each for each in packed_tar.getmembers() if each.isfile() and each.name.endswith((".h", ".py"))]
            packed_tar.extraction_filter = getattr(tarfile, "data_filter", None)
            packed_tar.extractall(scratch, members)
    roots = [each for each in scratch.iterdir() if each.is_dir()]
    return roots[0] if len(roots) == 1 else scratch


def _declared_in(folder: Path, *, is_whole: bool) -> Declarations:
    """Read the headers. What an installed release lacks, which has no llama-ext.h, is taken from its table."""
    places = [path for path in folder.rglob("*.h") if path.name in HEADER_NAMES] if is_whole else []
    places = places or [*(folder / "include").glob("*.h")]
    files = {path.name: path for path in sorted(places, reverse=True)}
    if "llama.h" not in files:
        raise SetupError(f"There is no llama.h in {folder}.")
    declared = read_headers([files[name].read_text(encoding="utf-8") for name in HEADER_NAMES if name in files])
    if not is_whole:
        known = known_abis(TABLES)[0]
        lacking = {name: sign for name, sign in known.functions.items() if name not in declared.functions}
        if lacking and "llama-ext.h" not in files:
            print(f"Not compared, because llama-ext.h isn't installed: {', '.join(lacking)}.")
            declared.functions.update(lacking)
    return declared


def _root(node: ast.expr) -> str:
    """Return "a" for a.b.c; "" for what isn't a name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _binding_imports(node: ast.AST) -> Iterator[ast.alias]:
    if isinstance(node, ast.Import):
        yield from (alias for alias in node.names if alias.name.startswith(_PACKAGE))
    elif isinstance(node, ast.ImportFrom) and node.module == _PACKAGE:
        yield from node.names


_WORDS = {
    "char": "int8",
    **{name: name for name in ("void", "bool", "float", "double")},
    **{f"{sign}int{bits}": f"int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class _Function:
    """Stands for a function of the library; the binding sets its types."""

    argtypes: Sequence[Any] = ()
    restype: Any = None

    def __call__(self) -> int:
        return 1


class _Library:
    def __getattr__(self, name: str) -> _Function:
        function = _Function()
        setattr(self, name, function)
        return function


def _binding_without_libraries(folder: Path) -> list[types.ModuleType]:
    package = types.ModuleType(_PACKAGE)
    package.__path__ = [str(folder)]
    sys.modules[_PACKAGE] = package
    extensions: Any = importlib.import_module(f"{_PACKAGE}._ctypes_extensions")
    no_library: Callable[..., _Library] = lambda *_: _Library()  # noqa: E731 - it stands in for a function
    extensions.load_shared_library = no_library
    there = [name for name in _MODULES if (folder / f"{name}.py").is_file()]
    return [importlib.import_module(f"{_PACKAGE}.{name}") for name in there]


def _class_problems(name: str, made: Any, declared: Declarations) -> Iterator[str]:
    layout = declared.structs[name]
    in_class = [(field[0], getattr(made, field[0]).offset, ctypes.sizeof(field[1])) for field in made._fields_]
    in_headers = [(field.name, field.offset, field.size) for field in layout.fields]
    for one, two in zip(in_class, in_headers, strict=False):
        if one != two:
            yield f"{name}: {one} instead of {two} (field, offset, size)"
    if len(in_class) != len(in_headers) or ctypes.sizeof(made) != layout.size:
        yield f"{name}: {len(in_class)} fields, {ctypes.sizeof(made)} bytes instead of {len(in_headers)}, {layout.size}"


def _function_problems(name: str, function: _Function, signature: Signature) -> Iterator[str]:
    in_headers = tuple(map(_kind_in_header, (signature.result, *signature.parameters)))
    in_binding = tuple(map(_kind_in_binding, (function.restype, *function.argtypes)))
    # A type of a header that isn't read, such as ggml-opt.h, has no word of its own.
    if "" not in in_headers and in_headers != in_binding:
        yield f"{name}: {in_binding} instead of {in_headers}"


def _kind_in_header(text: str) -> str:
    if text.endswith("*") or "(*" in text:
        return "pointer"
    kind, _, name = text.partition(" ")
    return _WORDS.get(text, {"enum": "int32", "struct": name}.get(kind, ""))


def _kind_in_binding(kind: Any) -> str:
    """Return the same word for a ctypes type as `_kind_in_header` for the C type; signs are left out."""
    if kind is None:
        return "void"
    if issubclass(kind, ctypes._Pointer | ctypes._CFuncPtr | ctypes.c_void_p | ctypes.c_char_p):  # type: ignore[attr-defined]
        return "pointer"
    if issubclass(kind, ctypes.Structure):
        return str(kind.__name__)
    if kind in (ctypes.c_bool, ctypes.c_float, ctypes.c_double):
        return str(kind.__name__).removeprefix("c_")
    return f"int{8 * ctypes.sizeof(kind)}"


if __name__ == "__main__":
    sys.exit(main())
