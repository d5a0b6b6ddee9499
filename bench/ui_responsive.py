"""How long the window's event loop ever keeps people waiting: while a model loads, while a long answer streams, while
the engine is killed, when a page, a tab or a dialog is opened for the first time, and when the text size or the theme
changes after all pages were opened; and how soon a long chat of the list is on screen.

    python -m bench.ui_responsive [--quick]

Prints the worst stall of each part next to its target: 50 ms, and 100 ms for a change of the look. The answer is 30,000
characters of mixed Markdown at 200 tokens a second from a scripted engine, which takes about 40 seconds; --quick
streams it five times as fast.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import qasync
from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QWidget

from bench.ui_stream import long_chat
from qwendesk.app.application import use_plain_imports
from qwendesk.app.event_loop import keep_collector_quick
from qwendesk.app.parts import Parts, build
from qwendesk.core.chats import ChatSummary
from qwendesk.engine.state import Phase
from qwendesk.widgets.actions import ActionId, installed
from qwendesk.widgets.theme_keeper import ThemeKeeper, app_theme
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.engine import FakeEngineClient, decide_by_default

TARGET_MS = 50.0
LOOK_TARGET_MS = 100.0
OPENING_TARGET_MS = 300.0
_BEAT_S = 0.002
_CHARACTERS = 30_000
_TOKENS_PER_S = 200.0
_LOAD_S = 3.0
_LAZY_PAGES = ("models", "engine", "bench", "server", "settings")
_SECTIONS = ("speed", "tune", "compare", "quality", "pc")
_INSPECTOR_TABS = ("load", "sampling", "system")
_WINDOWS: tuple[ActionId, ...] = ("model_menu", "context", "palette", "load_options", "call_log", "shortcuts", "guide")
_LONG_CHAT_TURNS, _LONG_CHAT_TOKENS, _OPENINGS = 20, 30_000, 7


class Heart(QObject):
    """Beats on Qt's event loop and remembers its longest pauses: how long a click would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.worst_ms = 0.0
        """The longest time between two beats beyond what was asked for."""
        self.worst_cpu_ms = 0.0
        """The most processor time the window used between two beats: the stall a quiet machine would show."""
        self._before, self._cpu_before = time.perf_counter(), time.thread_time()
        # Qt's own timer: asyncio's sleep ends two passes of the loop after its time and would count both as one step.
        self._timer = QTimer(self, interval=round(_BEAT_S * 1000), timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def _beat(self) -> None:
        now, cpu_now = time.perf_counter(), time.thread_time()
        self.worst_ms = max(self.worst_ms, (now - self._before - _BEAT_S) * 1000)
        self.worst_cpu_ms = max(self.worst_cpu_ms, (cpu_now - self._cpu_before) * 1000)
        self._before, self._cpu_before = now, cpu_now


@asynccontextmanager
async def measured(what: str, target_ms: float = TARGET_MS) -> AsyncIterator[None]:
    """Prints the worst stall of the block."""
    heart = Heart()
    started = time.perf_counter()
    try:
        yield
    finally:
        await asyncio.sleep(0.2)  # what the block started may still be drawn
        heart.stop()
        seconds = time.perf_counter() - started
        verdict = "ok" if heart.worst_ms <= target_ms else "too long"
        print(
            f"{what:<50} worst stall {heart.worst_ms:6.1f} ms (of it our own work {heart.worst_cpu_ms:5.1f} ms) "
            f"in {seconds:4.1f} s   target {target_ms:.0f} ms   {verdict}"
        )


def long_answer() -> str:
    """30,000 characters of headings, paragraphs, lists, tables and code."""
    part = (
        "## Part {0}\n\nA paragraph with **bold**, *italic*, `code` and a [link](https://example.org/{0}) that is long "
        "enough to be wrapped on the screen a few times, because answers of real models are like that.\n\n"
        "- a first point\n- a second point with `code`\n  - and a nested one\n\n"
        "1. step one\n2. step two\n\n| name | value |\n|---|---|\n| alpha | {0} |\n| beta | 2 |\n\n"
        '```python\ndef part_{0}(value):\n    """Says what it does."""\n    return value * {0}  # a comment\n```\n\n'
        "> A quote that closes the part.\n\n"
    )
    code = "```python\n" + "".join(f"value_{n} = compute({n}, 'text')  # line {n}\n" for n in range(150)) + "```\n\n"
    text = code
    number = 0
    while len(text) < _CHARACTERS:
        number += 1
        text += part.format(number)
    return text[:_CHARACTERS]


async def until_idle(parts: Parts) -> None:
    """Wait until a model is loaded and nothing is being answered."""
    changed = asyncio.Event()
    unsubscribe_engine = parts.engine.observed.subscribe(lambda _state: changed.set())
    unsubscribe_chat = parts.chat.subscribe(lambda _event: changed.set())
    while parts.chat.busy or parts.engine.state.phase is not Phase.READY:
        changed.clear()
        await changed.wait()
    unsubscribe_engine()
    unsubscribe_chat()


async def run(app: QApplication, folder: Path, *, quick: bool) -> None:
    """All parts, one after the other, in one window whose chats are saved in `folder`."""
    speed = _TOKENS_PER_S * (5 if quick else 1)
    client = FakeEngineClient(
        answers=[
            ScriptedAnswer(reasoning="A thought before it. " * 60, text=long_answer(), tokens_per_second=speed),
            ScriptedAnswer(text="word " * 2000, tokens_per_second=speed, crashes_after=60),
        ]
    )
    client.load_delay_s = _LOAD_S
    ThemeKeeper(app, "dark")
    parts = build(client, decide=decide_by_default)
    parts.window.show()
    parts.chats.start(folder)
    keep_collector_quick()
    await asyncio.sleep(0.5)
    async with measured("nothing (other programs on this machine)"):
        await asyncio.sleep(2)
    async with measured("loading a model (progress in its button)"):
        parts.window.load_demo()
        await asyncio.sleep(0.1)
        await until_idle(parts)
    client.load_delay_s = 0.0
    async with measured(f"streaming {_CHARACTERS:,} characters at {speed:.0f} tok/s"):
        parts.window.chat_page.ask("Write a long answer")
        await asyncio.sleep(0.1)
        await until_idle(parts)
    async with measured("the worker is killed in the middle of an answer"):
        parts.window.chat_page.ask("Write, and die")
        await asyncio.sleep(0.1)
        await until_idle(parts)
    await open_long_chat(parts)
    await open_everything(parts)
    await change_the_look(parts)
    await parts.close()


async def open_long_chat(parts: Parts) -> None:
    """Open a stored chat of the list again and again, and print how soon its last answer is on screen."""
    chats, thread = parts.chats.services.chat_list, parts.window.chat_page.thread_view
    tree, now = long_chat(_LONG_CHAT_TURNS, _LONG_CHAT_TOKENS // _LONG_CHAT_TURNS), time.time()
    await chats.add_chats([(ChatSummary(id="long", title="Long", created_s=now, changed_s=now), tree)])
    took, work = list[float](), list[float]()
    for _ in range(_OPENINGS):
        chats.new()
        await asyncio.sleep(0.5)
        started, cpu = time.perf_counter(), time.process_time()
        await chats.open("long")
        last = f"thread.message.{parts.chat.conversation.turns[-1].id}"
        while not (row := thread.findChild(QWidget, last)) or not row.isVisible():  # noqa: ASYNC110
            await asyncio.sleep(0)
        parts.window.repaint()
        took.append((time.perf_counter() - started) * 1000)
        work.append((time.process_time() - cpu) * 1000)
    took_ms, work_ms = sorted(took)[_OPENINGS // 2], sorted(work)[_OPENINGS // 2]
    verdict = "ok" if took_ms <= OPENING_TARGET_MS else "too long"
    print(
        f"{f'a chat of {_LONG_CHAT_TOKENS:,} tokens, opened from the list':<50} on screen in {took_ms:.0f} ms (of it "
        f"processor time {work_ms:.0f} ms)   target {OPENING_TARGET_MS:.0f} ms   {verdict}"
    )


async def open_everything(parts: Parts) -> None:
    """Open each page for the first time, when it is imported and built, and then what the pages lead to."""
    window, navigation = parts.window, parts.navigation
    opened: list[tuple[str, Callable[[], None]]] = [
        *((f"the page {page}", partial(window.show_page, page)) for page in _LAZY_PAGES),
        *((f"models: {tab}", partial(navigation.models_tab_asked.emit, tab)) for tab in ("mine", "hub", "downloads")),
        ("server: engines", navigation.servers_asked.emit),
        *((f"bench: {key}", partial(navigation.bench_section_asked.emit, key)) for key in _SECTIONS),
        *((f"inspector: {tab}", partial(navigation.inspector_asked.emit, tab)) for tab in _INSPECTOR_TABS),
        *((f"the window of {action}", installed(window)[action].trigger) for action in _WINDOWS),
    ]
    for what, show in opened:
        async with measured(f"{what} is opened for the first time"):
            show()
            await asyncio.sleep(0.5)
        for other in QApplication.topLevelWidgets():
            if other is not window and other.isVisible():
                other.close()


async def change_the_look(parts: Parts) -> None:
    """Change the text size and the theme on each page, after all of them were opened."""
    for page in (*_LAZY_PAGES, "chat"):
        parts.window.show_page(page)
        await asyncio.sleep(0.5)
        changes: tuple[tuple[str, Callable[[], None]], ...] = (
            ("Ctrl+Plus", lambda: app_theme().zoom(1)),
            ("Ctrl+0", lambda: app_theme().zoom(0)),
            ("light theme", lambda: app_theme().choose("light")),
            ("dark theme", lambda: app_theme().choose("dark")),
        )
        for what, change in changes:
            async with measured(f"{what} on the page {page}", LOOK_TARGET_MS):
                change()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.ui_responsive")
    parser.add_argument("--quick", action="store_true", help="stream five times as fast")
    quick = bool(parser.parse_args().quick)
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    use_plain_imports()  # as the app does
    app = QApplication(["bench"])
    app.setQuitOnLastWindowClosed(False)
    with TemporaryDirectory() as folder, asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app)) as runner:
        runner.run(run(app, Path(folder), quick=quick))
    return 0


if __name__ == "__main__":
    sys.exit(main())
