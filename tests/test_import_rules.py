"""Imports point one way (docs/architecture.md): checked in the source, and once more by starting Python."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.import_rules import cycles, violations

ROOT = Path(__file__).resolve().parent.parent


def test_the_package_keeps_the_import_rules() -> None:
    found = violations(ROOT)

    assert not found, "\n" + "\n".join(found)


def test_no_modules_import_each_other() -> None:
    found = cycles(ROOT)

    assert not found, "\n" + "\n".join(found)


def test_a_cycle_is_named_also_when_only_the_type_checker_follows_it(tmp_path: Path) -> None:
    root = package_with(tmp_path, "core/x.py", "from qwendesk.core.y import Y")
    guarded = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from qwendesk.core.z import Z"
    (root / "qwendesk/core/y.py").write_text(guarded)
    (root / "qwendesk/core/z.py").write_text("import qwendesk.core.x")

    assert cycles(root) == ["qwendesk.core.x <-> qwendesk.core.y <-> qwendesk.core.z"]


FORBIDDEN = {
    "core asks the engine": ("core/x.py", "from qwendesk.engine.state import EngineState"),
    "protocol asks state": ("engine/protocol.py", "import qwendesk.engine.state"),
    "state asks the client": ("engine/state.py", "from qwendesk.engine import client"),
    "the client asks the worker": ("engine/client.py", "from qwendesk.engine.worker.main import run"),
    "the client asks a service": ("engine/client.py", "from qwendesk.chat import service"),
    "the worker asks state": ("engine/worker/x.py", "from qwendesk.engine.state import EngineState"),
    "hub asks hardware": ("hub/x.py", "from qwendesk.hardware.planner import Plan"),
    "hardware asks hub": ("hardware/x.py", "import qwendesk.hub.gguf"),
    "a service draws": ("chat/x.py", "from PySide6.QtCore import QTimer"),
    "a service asks its view": ("chat/x.py", "from qwendesk.chat.view.page import Page"),
    "a feature asks a later one": ("models/x.py", "from qwendesk.chat.service import ChatService"),
    "a view asks a later one": ("models/view/x.py", "from qwendesk.chat.service import ChatService"),
    "a view asks a later view": ("models/view/x.py", "from qwendesk.chat.view.page import Page"),
    "a service asks the view of another": ("chat/x.py", "from qwendesk.models.view.page import Page"),
    "a service asks the worker": ("chat/x.py", "import qwendesk.engine.worker.main"),
    "the window calls reduce": ("chat/view/x.py", "from qwendesk.engine.state import reduce"),
    "the window reads files": ("chat/view/x.py", "from qwendesk.hub.gguf import read_facts"),
    "the window takes a whole module": ("chat/view/x.py", "from qwendesk.hub import gguf"),
    "the window asks the client": ("chat/view/x.py", "from qwendesk.engine.client import WorkerClient"),
    "widgets ask a feature": ("widgets/x.py", "from qwendesk.chat.view.page import Page"),
    "llama.cpp outside the worker": ("hub/x.py", "import llama_cpp"),
    "the command line loads Qt": ("cli/x.py", "def f():\n    import PySide6.QtWidgets"),
    "the command line asks the worker": ("cli/ask.py", "def f():\n    import qwendesk.engine.worker.main"),
    "the worker at every start": ("__main__.py", "from qwendesk.engine.worker.main import run"),
    "the window at every start": ("__main__.py", "from qwendesk.app.main import main"),
    "by name": ("core/x.py", "import importlib\nimportlib.import_module('qwendesk.chat.service')"),
    "relative": ("core/x.py", "from ..engine import state"),
    "hidden in a function": ("core/x.py", "def f():\n    from qwendesk.chat.service import ChatService"),
}

ALLOWED = {
    "core asks core": ("core/x.py", "from qwendesk.core.errors import QwenDeskError"),
    "the version": ("core/x.py", "from qwendesk import __version__"),
    "the worker asks llama.cpp": ("engine/worker/x.py", "import llama_cpp.llama_cpp as C"),
    "client helpers": ("engine/client.py", "from qwendesk.engine.watchdog import Watchdog"),
    "services join": (
        "chat/x.py",
        "from qwendesk.hub.gguf import read_facts\nfrom qwendesk.hardware import planner",
    ),
    "a feature asks an earlier one": ("chat/x.py", "from qwendesk.models.service import Models"),
    "a view asks an earlier view": ("chat/view/x.py", "from qwendesk.models.view.page import Page"),
    "the window takes values": ("chat/view/x.py", "from qwendesk.engine.state import EngineState, Phase"),
    "the window draws": ("chat/view/x.py", "import qasync\nfrom PySide6.QtWidgets import QWidget"),
    "app puts it together": (
        "app/parts.py",
        "from qwendesk.engine.client import WorkerClient\nimport PySide6.QtWidgets",
    ),
    "the entry starts either": (
        "__main__.py",
        "def f():\n    from qwendesk.engine.worker.main import run\n    from qwendesk.app.main import main",
    ),
}


def package_with(folder: Path, file: str, source: str) -> Path:
    """A made-up package that holds one file of that text, and every module that the examples name."""
    libraries = ("core/errors", "engine/state", "engine/client", "engine/watchdog", "engine/worker/main", "hub/gguf")
    features = ("chat/service", "chat/view/page", "models/service", "models/view/page")
    for name in (*libraries, "hardware/planner", *features, "app", file.removesuffix(".py")):
        path = folder / "qwendesk" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (folder / "qwendesk" / file).write_text(source)
    return folder


@pytest.mark.parametrize("example", FORBIDDEN)
def test_a_forbidden_import_is_named_with_its_file_and_line(example: str, tmp_path: Path) -> None:
    file, source = FORBIDDEN[example]

    (message,) = violations(package_with(tmp_path, file, source))

    line = len(source.splitlines())
    assert message.startswith(f"qwendesk/{file}:{line}: ")


@pytest.mark.parametrize("example", ALLOWED)
def test_an_allowed_import_passes(example: str, tmp_path: Path) -> None:
    file, source = ALLOWED[example]

    assert violations(package_with(tmp_path, file, source)) == []


@pytest.mark.parametrize("module", ["qwendesk.__main__", "qwendesk.cli.main", "qwendesk.chat.service"])
def test_what_has_no_window_loads_neither_qt_nor_llama_cpp(module: str) -> None:
    script = f"import sys, {module}; print(*sorted({{'PySide6', 'qasync', 'llama_cpp'}} & set(sys.modules)))"

    loaded = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert loaded.stdout.split() == []
