"""Whether the window keeps up with a long answer in a long chat, and how soon a long chat is on screen.

    python -m bench.ui_stream [--quick]

32,000 tokens at 200 a second from a scripted engine, into a chat of 500 messages, with the real widgets. Prints the
event loop's stalls beside those of an idle loop in the same run, what a token costs at the end against the start, the
memory it took, and the first screen of a chat of 2,000 messages. It takes about three minutes; --quick streams 6,000
tokens and says so.
"""

import argparse
import asyncio
import gc
import itertools
import os
import sys
import time

import msgspec
import psutil
import qasync
from PySide6.QtWidgets import QApplication

from qwendesk.app.main import keep_collector_quick
from qwendesk.core.conversation import Answer, Conversation, Turn
from qwendesk.core.messages import text_message
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.highlight import warm_up
from qwendesk.ui.thread.thread_view import ThreadView
from qwendesk.ui.thread.thumbnails import PictureShelf

_BEAT_S = 0.002
_TOKENS_PER_S = 200.0
_REPAINT_S = 0.03
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


def text_of(tokens: int) -> list[str]:
    """A mixed answer of that many words with the marks of Markdown, a word a token: prose, lists, code, tables."""
    words: list[str] = []
    number = 0
    while len(words) < tokens:
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
        words += _words(part)
    return words[:tokens]


def long_chat(turns: int) -> Conversation:
    answer = "".join(text_of(120))
    made = tuple(
        Turn(
            id=n, question=text_message("user", f"Question number {n}?"), answer=Answer(text=answer, stop_reason="eos")
        )
        for n in range(1, turns + 1)
    )
    return Conversation(turns=made)


async def run(app: QApplication, tokens: int) -> None:
    keeper = ThemeKeeper(app, "dark")
    view = ThreadView(keeper, PictureShelf(), Tasks())
    view.resize(1000, 740)
    view.show()
    await asyncio.to_thread(warm_up)
    view.show_conversation(long_chat(3))
    await asyncio.sleep(1)
    await first_screen(app, view)
    view.show_conversation(long_chat(250))
    await asyncio.sleep(1)
    keep_collector_quick()
    idle = Beats([], [])
    task = asyncio.create_task(beat(idle))
    await asyncio.sleep(5)
    task.cancel()
    print(idle.line("nothing (an idle loop, the control)", 16, 50))
    await stream(view, tokens)
    view.close()


async def first_screen(app: QApplication, view: ThreadView) -> None:
    conversation = long_chat(1000)
    took, work = [], []
    for _ in range(5):
        view.show_conversation(Conversation())
        app.processEvents()
        gc.collect()
        started, cpu = time.perf_counter(), time.thread_time()
        view.show_conversation(conversation)
        app.processEvents()
        view.repaint()
        took.append((time.perf_counter() - started) * 1000)
        work.append((time.thread_time() - cpu) * 1000)
        await asyncio.sleep(0.3)
    print(
        f"{'first screen of 2,000 messages':<46} median {sorted(took)[2]:.0f} ms (own work {sorted(work)[2]:.0f} ms)"
        f" | target {_SCREEN_TARGET_MS:.0f} ms"
    )


async def stream(view: ThreadView, tokens: int) -> None:
    """Write the answer as the bridge does: what came within 30 ms at once."""
    words = text_of(tokens)
    view.add_turn(Turn(id=10_000, question=text_message("user", "Write a long answer"), answer=Answer()))
    answer = view.answer(10_000)
    if answer is None:
        raise RuntimeError("the open answer has no widget")
    process = psutil.Process()
    beats = Beats([], [])
    costs: list[float] = []
    memory: list[int] = []
    task = asyncio.create_task(beat(beats))
    started, sent = time.perf_counter(), 0
    slice_tokens, slice_cpu = 0, time.thread_time()
    while sent < tokens:
        await asyncio.sleep(_REPAINT_S)
        due = min(tokens, int((time.perf_counter() - started) * _TOKENS_PER_S))
        answer.write("answer", "".join(words[sent:due]))
        slice_tokens += due - sent
        sent = due
        if slice_tokens >= tokens // 10:
            costs.append((time.thread_time() - slice_cpu) * 1000 / slice_tokens)
            memory.append(process.memory_info().rss)
            slice_tokens, slice_cpu = 0, time.thread_time()
    text = "".join(words)
    view.end_turn(Turn(id=10_000, question=text_message("user", "?"), answer=Answer(text=text, stop_reason="eos")))
    await asyncio.sleep(0.5)
    task.cancel()
    print(beats.line(f"streaming {tokens:,} tokens into 500 messages", 16, 50))
    if len(costs) >= 4:
        begin, end = sum(costs[1:3]) / 2, sum(costs[-2:]) / 2
        print(f"{'processor time per token, ms':<46} start {begin:.2f}, end {end:.2f}: {end / begin:.2f} | target 1.3")
        steps = [round((b - a) / 2**20, 1) for a, b in itertools.pairwise(memory)]
        print(f"{'memory per tenth of the answer, MiB':<46} {steps}")
    print(
        f"{'finished blocks written':<46} {answer.answer_view.blocks_written:,}, open ones redrawn "
        f"{answer.answer_view.open_writes:,} times in what is on screen"
    )


def _words(text: str) -> list[str]:
    words: list[str] = []
    for line in text.splitlines(keepends=True):
        indent = len(line) - len(line.lstrip(" "))
        pieces = line.strip("\n").lstrip(" ").split(" ")
        pieces[0] = " " * indent + pieces[0]
        words += [piece + " " for piece in pieces[:-1]] + [pieces[-1] + "\n"]
    return words


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
