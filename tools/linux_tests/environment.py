"""A Python environment of the place: its own Python, the libraries of constraints.txt, llama-cpp-python, the app.

pip runs outside the Debian folder, with this machine's own settings; nothing in the folder needs a network.
"""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from tools.linux_tests import engine
from tools.linux_tests.place import Place
from tools.setup.backends import Backend
from tools.setup.project import ROOT, SetupError, engine_version
from tools.windows.folders import SHARED
from tools.windows.python import PIN, metadata, pip

VENV = SHARED / "venv"
WHEELS = SHARED / "wheels"
VULKAN_PACKAGE = SHARED / "package-vulkan"
"""llama-cpp-python with the engine for Vulkan. Where PYTHONPATH names this folder, it is the installed engine."""
NOT_ON_LINUX = frozenset({"pywin32"})
NOT_PINNED = ("setuptools==80.9.0",)
"""What libraries ask for beside the pins of constraints.txt: present in most environments."""
_NEWEST_GLIBC = 41
"""Debian 13 has glibc 2.41."""


def pinned_for_linux(constraints: str) -> list[str]:
    """Return the requirements to install, from the text of constraints.txt. The engine is compiled here instead.

    Debian 13 has Python 3.13: pins for Python before 3.12 are left out.
    """
    left_out = {"llama-cpp-python", *NOT_ON_LINUX}
    found = [pin for pin in PIN.finditer(constraints) if _plain(pin[1]) not in left_out and pin[3] != "<"]
    return [*(f"{pin[1]}=={pin[2]}" for pin in found), *NOT_PINNED]


def install_libraries(place: Place, constraints: str) -> None:
    """Make the environment and install the libraries. Raises SetupError."""
    pins = pinned_for_linux(constraints)
    arguments = ["download", "--dest", str(WHEELS), "--no-deps", "--only-binary", ":all:", "--progress-bar", "off"]
    arguments += ["--implementation", "cp", "--python-version", _python_release(place)]
    for minor in range(_NEWEST_GLIBC, 4, -1):
        arguments += ["--platform", f"manylinux_2_{minor}_x86_64"]
    # Newest first; older releases of pip do not know that these are names of manylinux_2_17, 2_12 and 2_5.
    for name in ("manylinux2014", "manylinux2010", "manylinux1"):
        arguments += ["--platform", f"{name}_x86_64"]
    pip("linux-libraries", [*arguments, *pins])
    venv, wheels = place.path(VENV), place.path(WHEELS)
    script = f"""
rm -rf {venv}
python3 -m venv {venv}
{venv}/bin/python -m pip install --no-index --no-deps --find-links {wheels} {" ".join(pins)}
"""
    place.run("Installing the libraries", script, "linux-venv", SHARED)
    shutil.rmtree(WHEELS)


def install_engine(backend: Backend, folder: Path) -> None:
    """Put llama-cpp-python with the libraries of an engine into `folder`, as its wheel would."""
    version = engine_version()
    package, record = folder / "llama_cpp", folder / f"llama_cpp_python-{version}.dist-info"
    for each in (package, record):
        shutil.rmtree(each, ignore_errors=True)
    shutil.copytree(engine.SOURCE / "llama_cpp", package)
    shutil.copytree(engine.libraries(backend), package / "lib", symlinks=True, dirs_exist_ok=True)
    record.mkdir()
    shutil.copy(engine.SOURCE / "PKG-INFO", record / "METADATA")
    (record / "RECORD").touch()


def install_app(place: Place, tree: Path) -> None:
    """Install the app as an editable installation would: from the folder `tree`, with a record of what it asks for."""
    (site_packages() / "qwendesk.pth").write_text(f"{place.path(tree)}\n", encoding="utf-8")
    record = site_packages() / "qwendesk-0.dist-info"
    record.mkdir(exist_ok=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (record / "METADATA").write_text(metadata(project), encoding="utf-8")


def site_packages() -> Path:
    """Return the folder of the environment's libraries. Raises SetupError if there is no environment."""
    for folder in VENV.glob("lib/python3*/site-packages"):
        return folder
    raise SetupError(f"{VENV} is no Python environment. Delete it and {VENV.parent.parent / 'stamps'}, then try again.")


def _python_release(place: Place) -> str:
    script = "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'"
    done = subprocess.run(place.command(script, SHARED), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"python3 does not run: {done.stderr.strip()}")
    return done.stdout.strip()


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
