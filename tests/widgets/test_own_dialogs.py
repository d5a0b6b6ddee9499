"""Menus, questions, file dialogs and chevrons come from our own widgets, so that they look alike everywhere."""

import re
from pathlib import Path

import qwendesk

_STOCK = re.compile(r"\bQ(Menu|FileDialog)\(|\bQInputDialog\b|\bQMessageBox\b|[▾▸▼▶▲◂]")
_ALLOWED = {
    "widgets/popups.py",
    "widgets/file_dialogs.py",
    "app/window/tray.py",  # the menu of the system's tray
    "settings/view/privacy_section.py",  # shown when the window is gone
}


def test_no_stock_dialogs_menus_or_text_chevrons() -> None:
    root = Path(qwendesk.__file__).parent
    found = [
        f"{path.relative_to(root).as_posix()}:{number}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).as_posix() not in _ALLOWED
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if _STOCK.search(line)
    ]
    assert found == []
