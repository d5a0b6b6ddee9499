"""Highlighting never blocks the window, and its process exits with the app."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from qwendesk.chat.view.answer import highlighter as highlighter_module
from qwendesk.chat.view.answer.highlight_protocol import HighlightRequest
from qwendesk.chat.view.answer.highlighter import Highlighter
from qwendesk.core.processes import own_command
from tests.chat.view.answer.colours import Shown, drawn_colours, wait_for_colours
from tests.fakes.engine import ScriptedAnswer
from tests.import_rules import imports_of
from tests.window_desk import Desk

ROOT = Path(__file__).resolve().parents[4]
CODE = "def add(a, b):\n    return a + b  # sum\n"
SHORT_S = 0.2
_WORDS = re.compile("pygments|highlight")
MINUTES_OF_WORK = {
    "systemd": "\n".join(["a" * 500] * 40),
    "lilypond": "\n".join(["a" * 500] * 40),
    "easytrieve": "\n".join(["\t" * 500] * 40),
}
"""Lines as long as is allowed, on which these lexers work for seconds to minutes."""


@pytest.fixture
def make(app: QApplication) -> Iterator[Callable[..., Highlighter]]:
    made: list[Highlighter] = []

    def make_one(**changes: object) -> Highlighter:
        made.append(Highlighter(**changes))  # type: ignore[arg-type]
        return made[-1]

    yield make_one
    for each in made:
        each.close()


class OtherWork:
    """Counts how often the event loop came to something else."""

    def __init__(self) -> None:
        self.done = 0
        self._timer = QTimer(interval=0)
        self._timer.timeout.connect(self._count)
        self._timer.start()

    def _count(self) -> None:
        self.done += 1


def test_code_is_highlighted_in_another_process(make: Callable[..., Highlighter], app: QApplication) -> None:
    highlighter = make()
    assert highlighter.process_id == 0
    shown = Shown(highlighter, CODE, "Python")
    assert shown.result is None
    wait_for_colours(highlighter, app)
    assert shown.result is not None
    assert not shown.is_plain
    assert shown.result.length == len(CODE)
    assert highlighter.process_id not in (0, os.getpid())


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("systemd", " " * 1600),
        ("lilypond", "a" * 1200),
        ("easytrieve", "a" * 15_000),
        ("autohotkey", "x " * 9_000),
        ("desktop", "[" * 15_000),
        ("diff", "\t" * 15_000),
        ("console", "$ " + "a" * 15_000),
        ("python", "x = 1\n" * 5_000),
        ("", CODE),
        ("a" * 51, CODE),
        ("python", "'\ud83d'"),
    ],
)
def test_code_that_may_be_slow_to_highlight_stays_plain(
    make: Callable[..., Highlighter], language: str, code: str
) -> None:
    highlighter = make()
    shown = Shown(highlighter, code, language)
    assert shown.is_plain
    assert not highlighter.is_busy
    assert highlighter.process_id == 0


@pytest.mark.parametrize("language", MINUTES_OF_WORK)
def test_window_responds_while_a_lexer_hangs(
    make: Callable[..., Highlighter], app: QApplication, language: str
) -> None:
    highlighter, other = make(limit_s=SHORT_S), OtherWork()
    shown = Shown(highlighter, MINUTES_OF_WORK[language], language)
    next_one = Shown(highlighter, CODE, "python")
    assert shown.result is None, "asking does not wait"
    while highlighter.requests_sent == 0:
        app.processEvents()
    before = other.done
    while shown.result is None:
        app.processEvents()
    assert other.done > before
    assert shown.is_plain
    wait_for_colours(highlighter, app)
    assert next_one.result is not None, "a new process has taken over"
    sent = highlighter.requests_sent
    assert Shown(highlighter, MINUTES_OF_WORK[language] + "x", language).is_plain
    assert highlighter.requests_sent == sent, "the language is not tried again"


@pytest.mark.parametrize("language", ["autohotkey", "desktop", "diff", "console"])
@pytest.mark.parametrize("character", ["a", " ", "["])
def test_other_slow_lexers_finish_lines_of_the_maximum_length(
    make: Callable[..., Highlighter], app: QApplication, language: str, character: str
) -> None:
    highlighter, other = make(limit_s=SHORT_S), OtherWork()
    shown = Shown(highlighter, (character * 500 + "\n") * 40, language)
    wait_for_colours(highlighter, app)
    assert shown.result is not None
    assert other.done


async def test_window_stays_usable_with_code_that_hangs_the_lexer(desk: Desk) -> None:
    thread = desk.window.chat_page.thread_view
    code = "IF A\n" + ("\t" * 500 + "\n") * 6 + "x\n"
    answers = [ScriptedAnswer(text=f"```easytrieve\n{code}```\n"), ScriptedAnswer(text="Still here.")]
    desk.client.answers += answers
    await desk.ask("Some Easytrieve, please")
    await desk.until(lambda: not thread.is_busy)
    assert desk.message(1).answer_view.toPlainText().count("\t") == 3000
    await desk.ask("Are you there?")
    await desk.until(lambda: not thread.is_busy)
    assert desk.message(2).answer_view.toPlainText() == "Still here."
    await desk.until(lambda: thread.highlighter.requests_sent > 0 and not thread.highlighter.is_busy)
    pane = desk.message(1).answer_view.pane_at(0)
    assert len({colour for _, colour in drawn_colours(pane.document())}) == 1


def test_cache_of_colours_is_bounded(
    make: Callable[..., Highlighter], app: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(highlighter_module, "_MAX_CACHED_CHARACTERS", 100)
    highlighter = make()
    for code in ("x = 1\n", "x = 1\n", *(f"y = {number}\n" for number in range(30)), "x = 1\n"):
        shown = Shown(highlighter, code, "python")
        wait_for_colours(highlighter, app)
        assert not shown.is_plain
        assert highlighter.cached_characters <= 100
    assert highlighter.requests_sent == 32, "the second time it was known, the last time not any more"


def test_the_same_code_twice_is_highlighted_once(make: Callable[..., Highlighter], app: QApplication) -> None:
    highlighter = make()
    both = [Shown(highlighter, CODE, "python") for _ in range(2)]
    wait_for_colours(highlighter, app)
    assert highlighter.requests_sent == 1
    assert [each.is_plain for each in both] == [False, False]


def test_extended_code_reuses_the_colours_of_its_beginning(make: Callable[..., Highlighter], app: QApplication) -> None:
    highlighter = make()
    first = Shown(highlighter, CODE, "python")
    wait_for_colours(highlighter, app)
    assert not first.is_plain
    grown = Shown(highlighter, CODE + "x = 1\n", "python")
    assert grown.result is not None
    assert grown.result.length == len(CODE)
    wait_for_colours(highlighter, app)
    assert grown.result.length == len(CODE) + 6
    assert grown.times_told == 1


def test_replaced_and_cancelled_requests_are_dropped(make: Callable[..., Highlighter], app: QApplication) -> None:
    highlighter = make()
    first = Shown(highlighter, CODE, "python")
    first.show("x = 1\n")
    gone = Shown(highlighter, "y = 2\n", "python")
    highlighter.forget(gone)
    del gone
    wait_for_colours(highlighter, app)
    assert highlighter.requests_sent == 1


def test_a_process_that_was_killed_is_replaced(make: Callable[..., Highlighter], app: QApplication) -> None:
    highlighter = make()
    first = Shown(highlighter, CODE, "python")
    wait_for_colours(highlighter, app)
    assert not first.is_plain
    killed = highlighter.process_id
    psutil.Process(killed).kill()
    while highlighter.process_id:
        app.processEvents()
    shown = Shown(highlighter, CODE + "x = 1\n", "python")
    wait_for_colours(highlighter, app)
    assert not shown.is_plain
    assert highlighter.process_id not in (0, killed)


@pytest.mark.parametrize("command", [("no-such-program-anywhere",), (sys.executable, "-c", "raise SystemExit(3)")])
def test_code_stays_plain_without_a_process(
    make: Callable[..., Highlighter], app: QApplication, command: tuple[str, ...]
) -> None:
    highlighter = make(command=command)
    shown = Shown(highlighter, CODE, "python")
    wait_for_colours(highlighter, app)
    assert shown.is_plain
    assert highlighter.process_id == 0


def test_invalid_output_of_the_process_leaves_the_code_plain(
    make: Callable[..., Highlighter], app: QApplication
) -> None:
    noise = "import sys; print(); print('{', flush=True); sys.stdin.read()"
    highlighter = make(command=(sys.executable, "-c", noise))
    shown = Shown(highlighter, CODE, "python")
    wait_for_colours(highlighter, app)
    assert shown.is_plain


def test_process_exits_when_the_app_is_killed() -> None:
    app = (
        "from PySide6.QtCore import QCoreApplication\n"
        "from qwendesk.chat.view.answer.highlighter import Highlighter\n"
        "from tests.chat.view.answer.colours import Shown\n"
        "app, highlighter = QCoreApplication([]), Highlighter()\n"
        "shown = Shown(highlighter, 'x = 1', 'python')\n"
        "while highlighter.is_busy:\n"
        "    app.processEvents()\n"
        "print(highlighter.process_id, flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", app], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        helper = psutil.Process(int(process.stdout.readline()))
        process.kill()
    helper.wait(60)
    assert not helper.is_running()


@pytest.mark.parametrize("is_stuck", [False, True])
def test_process_exits_when_its_standard_input_closes(is_stuck: bool) -> None:
    request = HighlightRequest(MINUTES_OF_WORK["systemd"] if is_stuck else CODE, "systemd", SHORT_S)
    done = subprocess.run(
        own_command("--highlighter"),
        input=msgspec.json.encode(request) + b"\n",
        capture_output=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == (1 if is_stuck else 0)
    assert done.stdout.count(b"\n") == (1 if is_stuck else 2)


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C goes to one process there")
def test_process_ignores_ctrl_c_in_a_terminal(make: Callable[..., Highlighter], app: QApplication) -> None:
    highlighter = make()
    first = Shown(highlighter, CODE, "python")
    wait_for_colours(highlighter, app)
    assert not first.is_plain
    process_id = highlighter.process_id
    os.kill(process_id, signal.SIGINT)
    shown = Shown(highlighter, "x = 1\n", "python")
    wait_for_colours(highlighter, app)
    assert not shown.is_plain
    assert highlighter.process_id == process_id


def test_only_the_highlighter_process_loads_pygments() -> None:
    files = [path for path in (ROOT / "qwendesk").rglob("*.py") if _WORDS.search(path.read_text(encoding="utf-8"))]
    imported = [(path.relative_to(ROOT).as_posix(), each) for path in files for each in imports_of(path)]
    assert {name for name, each in imported if each.module.startswith("pygments")} == {
        "qwendesk/chat/view/answer/highlight.py"
    }
    module = "qwendesk.chat.view.answer.highlight"
    users = {(name, each.in_function) for name, each in imported if each.module == module}
    assert users == {("qwendesk/__main__.py", True)}
    loaded = f"import sys, {module}; print(any(name.startswith('PySide6') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
