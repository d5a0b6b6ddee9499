"""What the first argument opens: the window or a command."""

import gc

import pytest

import qwendesk.app.main
import qwendesk.cli.main
from qwendesk.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "opened"),
    [
        ([], "window"),
        (["--theme", "dark"], "window"),
        (["--lang", "zh"], "window"),
        (["photo.png"], "window"),
        (["/models/Some.gguf", "other.png"], "window"),
        (["..\\folder\\notes"], "window"),
        (["doctor"], "command"),
        (["--help"], "command"),
        (["unheard-of"], "command"),
    ],
)
def test_files_open_the_window_and_words_are_commands(
    arguments: list[str], opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[tuple[str, list[str]]] = []

    def note(what: str, given: list[str]) -> int:
        called.append((what, given))
        return 0

    monkeypatch.setattr(gc, "disable", lambda: None)  # the window goes on without it, the tests don't
    monkeypatch.setattr(qwendesk.app.main, "main", lambda given: note("window", given))
    monkeypatch.setattr(qwendesk.cli.main, "main", lambda given: note("command", given))
    assert main(arguments) == 0
    assert called == [(opened, arguments)]
