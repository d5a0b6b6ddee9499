"""Whether the window keeps up with a long answer in a long chat, and how soon a long chat is on screen.

    python -m bench.ui_stream [--quick]

32,000 tokens at 200 a second from a scripted engine, through chat service and page, into a chat of 500
messages. Nothing is stored. Prints the event loop's stalls beside those of an idle loop in the same run, what a token
costs at the end against the start, the memory it took, and the first screen of a chat of 2,000 messages. It takes about
three minutes; --quick streams 6,000 tokens and says so.
"""

import argparse
import asyncio
import contextlib
import gc
import itertools
import os
import re
import sys
import time
from collections.abc import Sequence

import msgspec
import psutil
import qasync
from PySide6.QtWidgets import QApplication

from qwendesk.app.event_loop import keep_collector_quick
from qwendesk.chat.chat_state import ChatEvent, TextAdded, TurnEnded
from qwendesk.chat.context_fill import ContextGauge
from qwendesk.chat.presets import PresetsService
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.chat_page import ChatPage
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.messages import text_message
from qwendesk.engines.engine_service import EngineService
from qwendesk.widgets.bind import bind
from qwendesk.widgets.tasks import Tasks
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.engine import FakeEngineClient, decide_by_default

_BEAT_S = 0.002
_TOKENS_PER_S = 200.0
_LATE_S = 2.0
"""The engine makes up for what it was late, up to this."""
_SCREEN_TARGET_MS = 150.0


class Beats(msgspec.Struct):
    """Pauses of the event loop beyond what was asked for, and the processor time the window used in each, in ms."""

    waits: list[float]
    work: list[float]

    def line(self, what: str, p99: float, p999: float) -> str:
        waits, work = sorted(self.waits), sorted(self.work)
        return (
            f"{what:<46} stalls p99 {_at(waits, 0.99):5.1f} ms, p99.9 {_at(waits, 0.999):5.1f} ms, "
            f"worst {waits[-1]:5.1f} ms | our own work p99 {_at(work, 0.99):5.1f}, p99.9 {_at(work, 0.999):5.1f}, "
            f"worst {work[-1]:5.1f} | target {p99:.0f} and {p999:.0f} ms"
        )


async def beat(beats: Beats) -> None:
    before, cpu_before = time.perf_counter(), time.thread_time()
    while True:
        await asyncio.sleep(_BEAT_S)
        now, cpu_now = time.perf_counter(), time.thread_time()
        beats.waits.append(max(0.0, (now - before - _BEAT_S) * 1000))
        beats.work.append((cpu_now - cpu_before) * 1000)
        before, cpu_before = now, cpu_now


def text_of(tokens: int) -> str:
    """A mixed answer of that many words, each a token: prose, lists, code, tables."""
    text, words, number = "", 0, 0
    while words < tokens:
        number += 1
        part = (
            f"## Part {number}\n\nA paragraph with **bold**, *italic*, `code`, a [link](https://example.org/{number}) "
            "that is long enough to be wrapped on the screen a few times, because answers of real models are like "
            "that, and nobody reads them on one line.\n\n- a first point\n- a second point with `code`\n  - nested"
            f"\n\n| name | value |\n|---|---|\n| alpha | {number} |\n| beta | 2 |\n\n"
            f'```python\ndef part_{number}(value):\n    """Says what it does."""\n    return value * {number}\n```\n\n'
            f"So $x_{{{number % 9}}}^2 + y^2 = r^2$ holds.\n\n> A quote that closes the part.\n\n"
        )
        if number % 40 == 0:
            lines = "".join(f"value_{n} = compute({n}, 'text')  # line {n}\n" for n in range(150))
            part += f"```python\n{lines}```\n\n"
        text += part
        words += len(part.split())
    return "".join(re.findall(r"\s*\S+\s*", text)[:tokens])


def long_chat(turns: int, tokens: int = 120) -> ChatTree:
    """A chat of twice as many messages, with answers of so many tokens."""
    answer = text_of(tokens)
    nodes: dict[str, ChatNode] = {}
    for n in range(1, turns + 1):
        question = text_message("user", f"Question number {n}?")
        nodes[f"q{n}"] = ChatNode(id=f"q{n}", parent_id=f"a{n - 1}" if n > 1 else "", message=question)
        said = text_message("assistant", answer)
        nodes[f"a{n}"] = ChatNode(id=f"a{n}", parent_id=f"q{n}", message=said, stop_reason="eos")
    return ChatTree(nodes)


class OnTime(FakeEngineClient):
    """A scripted engine that keeps its speed: what a busy window made late comes at once."""

    def __init__(self, answers: Sequence[ScriptedAnswer]) -> None:
        super().__init__(answers=answers)
        self._due = 0.0

    async def pause(self, seconds: float, interrupt: asyncio.Event) -> None:
        now = asyncio.get_running_loop().time()
        self._due = (self._due if now - self._due < _LATE_S else now) + seconds
        await super().pause(self._due - now, interrupt)


class Room(msgspec.Struct, frozen=True):
    """The chat page with what is under it."""

    service: ChatService
    page: ChatPage
    tasks: Tasks


def room(app: QApplication, tokens: int) -> Room:
    answer = ScriptedAnswer(text=text_of(tokens), tokens_per_second=_TOKENS_PER_S)
    client = OnTime([answer])
    engine = EngineService(client, decide=decide_by_default)
    service, tasks = ChatService(client, engine), Tasks()
    ThemeKeeper(app, "dark")
    page = ChatPage(service, ContextGauge(client, engine, service), PresetsService(service))
    bind(page, engine.observed, page.show_engine)
    page.resize(1000, 900)
    page.show()
    tasks.start(engine.load_demo())
    return Room(service, page, tasks)


async def run(app: QApplication, tokens: int) -> None:
    shown = room(app, tokens)
    shown.service.open("warm", long_chat(3), ChatSettings())
    await asyncio.sleep(1)
    await first_screen(app, shown)
    shown.service.open("long", long_chat(250), ChatSettings())
    await asyncio.sleep(1)
    keep_collector_quick()
    idle = Beats([], [])
    task = asyncio.create_task(beat(idle))
    await asyncio.sleep(5)
    task.cancel()
    print(idle.line("nothing (an idle loop, the control)", 16, 50))
    await stream(shown, tokens)
    await shown.service.stop()
    shown.page.thread_view.highlighter.close()
    shown.page.close()


async def first_screen(app: QApplication, shown: Room) -> None:
    chat = long_chat(1000)
    took, work = [], []
    for number in range(5):
        shown.service.new_chat()
        app.processEvents()
        gc.collect()
        started, cpu = time.perf_counter(), time.thread_time()
        shown.service.open(f"chat {number}", chat, ChatSettings())
        app.processEvents()
        shown.page.repaint()
        took.append((time.perf_counter() - started) * 1000)
        work.append((time.thread_time() - cpu) * 1000)
        await asyncio.sleep(0.3)
    print(
        f"{'first screen of 2,000 messages':<46} median {sorted(took)[2]:.0f} ms (own work {sorted(work)[2]:.0f} ms)"
        f" | target {_SCREEN_TARGET_MS:.0f} ms"
    )


async def stream(shown: Room, tokens: int) -> None:
    """Ask, and look on while the scripted engine answers through service and page."""
    process = psutil.Process()
    beats, costs, memory = Beats([], []), list[float](), list[int]()
    words = [0]
    ended = asyncio.Event()

    def on_event(event: ChatEvent) -> None:
        if isinstance(event, TextAdded):
            words[0] += len(event.text.split())
        elif isinstance(event, TurnEnded):
            ended.set()

    shown.service.subscribe(on_event)
    task = asyncio.create_task(beat(beats))
    started = time.perf_counter()
    shown.page.ask("Write a long answer")
    before, cpu = 0, time.thread_time()
    while not ended.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), 0.25)
        if words[0] - before >= tokens // 10:
            costs.append((time.thread_time() - cpu) * 1000 / (words[0] - before))
            memory.append(process.memory_info().rss)
            before, cpu = words[0], time.thread_time()
    seconds = time.perf_counter() - started
    await asyncio.sleep(0.5)
    task.cancel()
    print(beats.line(f"streaming {tokens:,} tokens into 500 messages", 16, 50))
    print(f"{'speed kept':<46} {tokens / seconds:.0f} tok/s over {seconds:.0f} s | asked for {_TOKENS_PER_S:.0f}")
    if len(costs) >= 4:
        begin, end = sum(costs[1:3]) / 2, sum(costs[-2:]) / 2
        print(f"{'processor time per token, ms':<46} start {begin:.2f}, end {end:.2f}: {end / begin:.2f} | target 1.3")
        steps = [round((b - a) / 2**20, 1) for a, b in itertools.pairwise(memory)]
        print(f"{'memory per tenth of the answer, MiB':<46} {steps}")
    view = shown.page.thread_view
    answer = view.answer(view.rows[-1].turn.id)
    if answer is not None:
        print(
            f"{'finished blocks written':<46} {answer.answer_view.blocks_written:,}, open ones redrawn "
            f"{answer.answer_view.open_writes:,} times in what is on screen"
        )


def _at(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.ui_stream")
    parser.add_argument("--quick", action="store_true", help="6,000 tokens instead of 32,000")
    quick = bool(parser.parse_args().quick)
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QApplication(["bench"])
    app.setQuitOnLastWindowClosed(False)
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app)) as runner:
        runner.run(run(app, 6_000 if quick else 32_000))
    return 0


if __name__ == "__main__":
    sys.exit(main())
