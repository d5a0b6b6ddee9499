"""What is installed for running and what only for tests; the screen shows no addresses and not all that pip says."""

import ast
import json
import os
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.setup import environment
from tools.setup.project import ROOT, SetupError
from tools.windows.python import NOT_PINNED

PIP = """#!{python}
import json, sys
with open({calls!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
print("Looking in indexes: https://index.example/simple")
print("Downloading msgspec-0.22.0-cp311-cp311-win_amd64.whl (219 kB)")
if {fails}:
    sys.exit("ERROR: no connection to https://index.example/simple")
print("Installing collected packages: msgspec, qwendesk")
"""


def pip(folder: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> Path:
    """Put a script in place of the environment's Python; returns the file in which it writes down its arguments."""
    if os.name == "nt":
        pytest.skip("a script cannot stand in for python.exe")
    python, calls = folder / "python", folder / "calls"
    python.write_text(PIP.format(python=sys.executable, calls=str(calls), fails=fails))
    python.chmod(0o755)
    monkeypatch.setattr(environment, "venv_python", lambda: python)
    monkeypatch.setattr(environment, "WORK", folder / "work")
    return calls


def test_run_environment_has_no_test_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = pip(tmp_path, monkeypatch)

    environment.install(tmp_path / "engine.whl", new_engine=True, with_tests=False)
    environment.install(tmp_path / "engine.whl", new_engine=False, with_tests=True)

    engine, run, test = (json.loads(line) for line in calls.read_text().splitlines())
    assert engine[-1] == str(tmp_path / "engine.whl")
    assert (run[-1], test[-1]) == (str(ROOT), f"{ROOT}[dev]")
    assert {"uninstall", "sync"} & {*run, *test} == set()
    said = capsys.readouterr().out
    assert f"downloading 1 of about {environment.pinned_count(with_tests=False)}: msgspec" in said
    assert "://" not in said
    assert "index.example" in (tmp_path / "work" / "setup-libraries.log").read_text()


def test_failed_installation_shows_pips_output_without_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip(tmp_path, monkeypatch, fails=True)

    with pytest.raises(SetupError, match=r"Are you online\?[\s\S]*ERROR: no connection to \(an address\)"):
        environment.install(tmp_path / "engine.whl", new_engine=False, with_tests=False)


def pins(text: str) -> set[str]:
    return {canonicalize_name(line.split("==")[0]) for line in text.splitlines() if "==" in line}


def test_constraints_match_the_run_and_test_dependencies() -> None:
    """Followed through what is installed here; a library for Windows alone is in neither."""
    first, heading, second = (ROOT / "constraints.txt").read_text(encoding="utf-8").partition(environment.FOR_TESTS)
    assert heading
    running = needed_by(Requirement("qwendesk"))
    testing = needed_by(Requirement("qwendesk[dev]"))
    beside = pins("\n".join(NOT_PINNED))
    assert running - beside <= pins(first)
    assert not pins(second) & running
    assert pins(second) >= testing - running - beside
    assert not {"mypy", "pytest", "pyinstaller", "ruff", "hypothesis"} & pins(first)


def needed_by(start: Requirement) -> set[str]:
    """The names of all distributions that `start` brings, itself left out.

    What is not installed here is named, but what it brings in turn is not known.
    """
    seen: set[tuple[str, str]] = set()
    waiting = [(start.name, extra) for extra in ("", *start.extras)]
    while waiting:
        name, extra = waiting.pop()
        if (canonicalize_name(name), extra) in seen:
            continue
        seen.add((canonicalize_name(name), extra))
        try:
            requires = metadata.distribution(name).requires or ()
        except metadata.PackageNotFoundError:  # on Windows under Wine, what only mypy and ruff need
            requires = ()
        for requirement in map(Requirement, requires):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(requirement.name, each) for each in ("", *requirement.extras)]
    return {name for name, _ in seen} - {canonicalize_name(start.name)}


def test_app_imports_no_test_dependency() -> None:
    sources = metadata.packages_distributions()
    running = needed_by(Requirement("qwendesk"))
    imported = {module.partition(".")[0] for file in (ROOT / "qwendesk").rglob("*.py") for module in imports(file)}
    strange = {
        name: sources[name]
        for name in imported & sources.keys() - {"qwendesk"}
        if not {canonicalize_name(each) for each in sources[name]} & running
    }
    assert strange == {}


def imports(file: Path) -> list[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    whole = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    return [*whole, *(node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))]
