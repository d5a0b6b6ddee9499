"""The licences of everything inside the bundle, found by where each file came from.

Python packages carry theirs in their metadata, files of the system in the package manager's records, libraries of a
compiler for another system in a text beside them. A file whose origin nobody knows fails the bundle: nothing goes out
unnamed.
"""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.setup.project import ROOT, SetupError

_OWN = ROOT / "packaging" / "licences"
_LICENCE_FILE = re.compile(r"(?:^|/)(?:licen[cs]e|copying|notice|authors|copyright)[^/]*$", re.IGNORECASE)
_BUILD_TOOL = "pyinstaller"
"""Its start-up program is in every bundle, under the GPL with an exception for just that."""
_VISUAL_CPP = re.compile(r"(?:msvcp|vcruntime|vcomp|concrt)140\w*\.dll", re.IGNORECASE)
_VISUAL_CPP_TEXT = """\
Microsoft Visual C++ runtime (msvcp140.dll, vcomp140.dll, vcruntime140.dll, vcruntime140_1.dll)
Copyright (C) Microsoft Corporation. All rights reserved.

These files are unmodified redistributable parts of Visual Studio ("Distributable Code" of its licence terms). They may
be used with this program, and not be changed or taken apart. Microsoft's terms, and its list of these parts:
https://visualstudio.microsoft.com/license-terms/
https://learn.microsoft.com/visualstudio/releases/2022/redistribution
"""
_SYSTEM_PREFIXES = ("/usr", "/usr/local")
"""Where a distribution's own Python lies: beside it are the libraries of everybody else."""


def collect_licences(contents: Path, target: Path) -> tuple[str, ...]:
    """Writes one file for each part into `target` and returns the parts' names.

    `contents` is what packaging/qwendesk.spec noted. Raises SetupError that names the files of unknown origin.
    """
    noted = json.loads(contents.read_text(encoding="utf-8"))
    sources = {Path(source).resolve() for _, source in [*noted["files"], *noted["modules"]] if source not in {"", "-"}}
    owners = _owners_of_files()
    packages, unknown = {_BUILD_TOOL, "llama_cpp_python"}, set[Path]()
    system = set[Path]()
    for source in sources:
        owner = owners.get(source)
        if owner is not None:
            packages.add(owner)
        elif not _is_ours_or_pythons(source):
            system.add(source)
    texts = {name: _package_text(name) for name in packages}
    for source in system:
        part, text = _system_text(source)
        if part:
            texts[part] = text
        else:
            unknown.add(source)
    if unknown:
        raise SetupError(f"Where do these come from? {', '.join(map(str, sorted(unknown)))}")
    texts["Python"] = _python_text()
    return _write(texts, target)


def _write(texts: Mapping[str, str], target: Path) -> tuple[str, ...]:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name, text in texts.items():
        (target / f"{name}.txt").write_text(text, encoding="utf-8")
    for own in sorted(_OWN.glob("*.txt")):
        shutil.copyfile(own, target / own.name)
    shutil.copyfile(ROOT / "LICENSE", target / "QwenDesk.txt")
    return tuple(sorted(path.stem for path in target.iterdir()))


def _owners_of_files() -> dict[Path, str]:
    """The installed Python package that each file belongs to."""
    owners: dict[Path, str] = {}
    for package in importlib.metadata.distributions():
        # Resolved once for each package: asking the disk for each of 10,000 files takes a minute on a slow one.
        root, name = Path(str(package.locate_file(""))).resolve(), package.metadata["Name"]
        owners |= {Path(os.path.normpath(root / file)): name for file in package.files or ()}
    return owners


def _is_ours_or_pythons(source: Path) -> bool:
    if source.is_relative_to(ROOT):
        # What PyInstaller makes while it works, and our own files; packages of the environment have owners.
        return not source.is_relative_to(ROOT / ".venv")
    places = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    if sys.base_prefix not in _SYSTEM_PREFIXES:
        places.append(sys.base_prefix)
    return any(source.is_relative_to(Path(place).resolve()) for place in places)


def _package_text(name: str) -> str:
    package = importlib.metadata.distribution(name)
    said = package.metadata
    licence = _field(package, "License-Expression") or _field(package, "License")
    classifiers = [each for each in said.get_all("Classifier") or () if each.startswith("License ::")]
    head = [f"{said['Name']} {package.version}", _field(package, "Home-page"), licence.split("\n")[0], *classifiers]
    texts = [
        text
        for file in package.files or ()
        if _LICENCE_FILE.search(str(file)) and file.suffix not in {".py", ".pyc"}
        for text in [Path(str(package.locate_file(file))).read_text(encoding="utf-8", errors="replace")]
    ]
    if not texts and not licence and not classifiers:
        raise SetupError(f"The package {name} says nothing about its licence.")
    return "\n".join([*filter(None, head), "", *texts])


def _field(package: importlib.metadata.Distribution, key: str) -> str:
    return str(package.metadata[key]) if key in package.metadata else ""


def _system_text(source: Path) -> tuple[str, str]:
    """The part that a system file belongs to, a Debian package for one, and its licence; ("", "") if nobody knows."""
    beside = source.with_suffix(".txt")
    if beside.is_file():
        return source.stem, beside.read_text(encoding="utf-8", errors="replace")
    if _VISUAL_CPP.fullmatch(source.name):
        return "Microsoft Visual C++ runtime", _VISUAL_CPP_TEXT
    if shutil.which("dpkg") is None:
        return "", ""
    for asked in _spellings(source):
        done = subprocess.run(["dpkg", "-S", str(asked)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            package = done.stdout.split(":")[0].strip()
            copyright_file = Path("/usr/share/doc", package, "copyright")
            if copyright_file.is_file():
                return package, copyright_file.read_text(encoding="utf-8", errors="replace")
    return "", ""


def _spellings(source: Path) -> Iterable[Path]:
    """/lib and /usr/lib are one folder, but the records know a file by one of the two."""
    yield source
    if source.is_relative_to("/usr"):
        yield Path("/") / source.relative_to("/usr")
    else:
        yield Path("/usr") / source.relative_to("/")


def _python_text() -> str:
    candidates = [Path(sysconfig.get_path("stdlib"), "LICENSE.txt"), Path(sys.base_prefix, "LICENSE.txt")]
    text = next((path.read_text(encoding="utf-8") for path in candidates if path.is_file()), None)
    if text is None:
        raise SetupError("This Python has no LICENSE.txt: use one from python.org, pyenv or the system.")
    return text
