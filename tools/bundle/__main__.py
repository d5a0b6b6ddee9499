"""`make bundle`: engines, programs, licences, size."""

import shutil
import subprocess
import sys
from pathlib import Path

from tools.bundle.engines import make_engine_folder
from tools.bundle.licences import collect_licences
from tools.bundle.size import MOST_BYTES, report
from tools.setup import engine
from tools.setup.backends import Backend
from tools.setup.project import ROOT, WORK, SetupError, engine_version

DIST = ROOT / "dist"
BUNDLE = DIST / "QwenDesk"
_CPU_ENGINES: tuple[Backend, ...] = ("cpu-avx2", "cpu-sse42")


def main() -> int:
    """Returns 0, or 1 with a sentence when something is missing or the bundle is too large."""
    try:
        _make()
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


def _make() -> None:
    shutil.rmtree(BUNDLE, ignore_errors=True)
    version = engine_version()
    wheels = {backend: _wheel(backend, version) for backend in _CPU_ENGINES}
    print("Freezing the app", flush=True)
    spec = ROOT / "packaging" / "qwendesk.spec"
    places = ["--distpath", str(DIST), "--workpath", str(WORK / "bundle")]
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--clean", "--log-level", "WARN", *places]
    if subprocess.run([*command, str(spec)], cwd=ROOT, check=False).returncode:
        raise SetupError("PyInstaller failed; what it printed is above.")
    _strip_python()
    for backend, wheel in wheels.items():
        manifest = make_engine_folder(wheel, _inside() / "engines" / backend, "cpu", version)
        print(f"Engine {manifest.name}: {sum(file.n_bytes for file in manifest.files) / 2**20:.1f} MiB", flush=True)
    parts = collect_licences(WORK / "bundle" / "contents.json", BUNDLE / "licences")
    print(f"Licences of {len(parts)} parts", flush=True)
    total, table = report(BUNDLE)
    print(table, flush=True)
    if sys.platform.startswith("linux") and total > MOST_BYTES:
        raise SetupError("The bundle is too large.")


def _strip_python() -> None:
    """Takes the symbols for debuggers out of Python's own libraries: 25 MB on Linux where it was built from source.

    Only these: libraries out of wheels were rewritten after their build, and `strip` may break such a file.
    """
    if not sys.platform.startswith("linux") or shutil.which("strip") is None:
        return
    for pattern in ("libpython3.*.so.*", "python3.*/lib-dynload/*.so"):
        for library in _inside().glob(pattern):
            subprocess.run(["strip", "--strip-unneeded", str(library)], check=False)


def _inside() -> Path:
    """Where PyInstaller puts what is not a program."""
    return BUNDLE / "_internal"


def _wheel(backend: Backend, version: str) -> Path:
    kept = engine.kept_wheel(backend, version)
    if kept is not None:
        return kept
    print(f"Building the engine {backend}, about 9 minutes on two cores", flush=True)
    return engine.build(backend, version, Path(sys.executable))


if __name__ == "__main__":
    sys.exit(main())
