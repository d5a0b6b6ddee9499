"""`make bundle`: engines, programs, licences, size."""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from qwendesk.core.engine_manifest import EngineManifest
from tools.bundle import needed, windows
from tools.bundle.engines import (
    CPU_ENGINES,
    METAL,
    VULKAN,
    BundledEngine,
    lacks_matrix_shaders,
    make_engine_folder,
    same_files,
)
from tools.bundle.licences import collect_licences
from tools.bundle.size import report
from tools.setup import engine, system_packages
from tools.setup.project import ROOT, WORK, SetupError, engine_version

DIST = ROOT / "dist"
_ON_MAC = sys.platform == "darwin"
BUNDLE = DIST / ("QwenDesk.app" if _ON_MAC else "QwenDesk")


def main(arguments: Sequence[str]) -> int:
    """Returns 0, or 1 with a sentence when something is missing or the bundle is too large."""
    parser = argparse.ArgumentParser(prog="python -m tools.bundle", description="Makes the app in dist/QwenDesk.")
    parser.add_argument(
        "--vulkan", choices=["auto", "yes", "no"], default="auto",
        help="the engine for graphics cards: auto leaves it out where it cannot be built, yes fails then",
    )  # fmt: skip
    parser.add_argument(
        "--engines", type=Path, metavar="FOLDER",
        help="compiled engines, each in a folder with its name, and in the folder runtime what they need beside them",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    try:
        _make(options.vulkan, options.engines)
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def chosen_engines(vulkan: str, version: str) -> tuple[BundledEngine, ...]:
    """The engines of this bundle; says in a sentence when and why the Vulkan engine is left out.

    Raises SetupError when it must be in and cannot be built.
    """
    if sys.platform == "darwin":
        return (METAL,)
    if vulkan == "no":
        _say("Without Vulkan, as asked: this bundle computes on the processor only.")
        return CPU_ENGINES
    missing = system_packages.missing(system_packages.needs(VULKAN.purposes, platform.system()))
    if engine.kept_wheel(VULKAN.build, version) is None and missing:
        try:
            system_packages.provide(missing, say=_say)
        except SetupError as error:
            if vulkan == "yes":
                raise
            _say(f"Without Vulkan, which cannot be built here. {error} docs/release.md says what it needs.")
            return CPU_ENGINES
    return (*CPU_ENGINES, VULKAN)


def compiled_engines(folder: Path) -> dict[BundledEngine, Path]:
    """Return the engines that lie compiled in `folder`, with their folders.

    Raises SetupError if the first one is missing.
    """
    found = {each: folder / each.name for each in (*CPU_ENGINES, VULKAN) if (folder / each.name).is_dir()}
    if CPU_ENGINES[0] not in found:
        raise SetupError(f"{folder} has no folder {CPU_ENGINES[0].name}.")
    return found


def _make(vulkan: str, compiled: Path | None) -> None:
    shutil.rmtree(BUNDLE, ignore_errors=True)
    version = engine_version()
    if compiled is not None:
        sources = compiled_engines(compiled)
    else:
        sources = dict(_wheels(chosen_engines(vulkan, version), version, may_lack_vulkan=vulkan == "auto"))
    runtime: tuple[Path, ...] = ()
    if sys.platform == "win32":
        runtime = windows.runtime_of(compiled / "runtime") if compiled else windows.installed_runtime()
    _freeze(runtime)
    _strip_python()
    _add_engines(sources, version, [library.name for library in runtime])
    parts = collect_licences(
        WORK / "bundle" / "contents.json", (BUNDLE / "Contents" / "Resources" if _ON_MAC else BUNDLE) / "licences"
    )
    _say(f"Licences of {len(parts)} parts")
    sizes, table = report(BUNDLE)
    _say(table)
    if sys.platform.startswith("linux") and not sizes.fits:
        raise SetupError("The bundle is too large.")
    _say(f"The app is in {BUNDLE.relative_to(ROOT)}. Try it: make bundle-test")


def _freeze(runtime: Sequence[Path]) -> None:
    _say("Freezing the app")
    spec = ROOT / "packaging" / "qwendesk.spec"
    places = ["--distpath", str(DIST), "--workpath", str(WORK / "bundle")]
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--clean", "--log-level", "WARN", *places, str(spec)]
    path = {"PATH": windows.build_path(Path(sys.base_prefix))} if sys.platform == "win32" else {}
    line = [*command, "--", *map(str, runtime)]
    if subprocess.run(line, cwd=ROOT, env={**os.environ, **path}, check=False).returncode:
        raise SetupError("PyInstaller failed; what it printed is above.")


def _add_engines(sources: dict[BundledEngine, Path], version: str, runtime: Sequence[str]) -> None:
    first: EngineManifest | None = None
    for each, source in sources.items():
        folder = _inside() / "engines" / each.name
        manifest = make_engine_folder(source, folder, each, version)
        if sys.platform == "win32":
            needed.refuse_unmet(sorted(folder.glob("*.dll")), runtime)
        first = first or manifest
        n_bytes = sum(file.n_bytes for file in manifest.files)
        same = sum(file.n_bytes for file in same_files(manifest, first)) if manifest is not first else 0
        also = f", of which {_mib(same)} are the same as in {first.name}" if same else ""
        _say(f"Engine {each.name}: {_mib(n_bytes)}{also}")
        if each.backend == "vulkan" and lacks_matrix_shaders(folder):
            _say(
                "  Its shaders were compiled by a glslc that knows no cooperative matrices: long prompts are read more "
                "slowly on cards with matrix cores. A release is built with the Vulkan SDK's glslc (docs/release.md)."
            )


def _strip_python() -> None:
    """Takes the symbols for debuggers out of Python's own libraries: 25 MB on Linux where it was built from source.

    Only these: libraries out of wheels were rewritten after their build, and `strip` may break such a file.
    """
    if sys.platform.startswith("linux") and shutil.which("strip") is not None:
        for pattern in ("libpython3.*.so.*", "python3.*/lib-dynload/*.so"):
            for library in _inside().glob(pattern):
                subprocess.run(["strip", "--strip-unneeded", str(library)], check=False)


def _inside() -> Path:
    """Where PyInstaller puts what is not a program."""
    return BUNDLE / "Contents" / "Frameworks" if _ON_MAC else BUNDLE / "_internal"


def _wheels(
    engines: Sequence[BundledEngine], version: str, *, may_lack_vulkan: bool
) -> Iterator[tuple[BundledEngine, Path]]:
    for each in engines:
        try:
            yield each, _wheel(each, version)
        except SetupError as error:
            if each is not VULKAN or not may_lack_vulkan:
                raise
            _say(f"{error}\nWithout Vulkan, whose engine did not build: see above.")


def _wheel(each: BundledEngine, version: str) -> Path:
    kept = engine.kept_wheel(each.build, version)
    if kept is not None:
        return kept
    _say(f"Building the engine {each.name}, about {each.minutes} minutes on two cores")
    return engine.build(each.build, version, Path(sys.executable))


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:.1f} MiB"


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
