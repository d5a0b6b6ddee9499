"""How long huge and hostile answers ever keep the window's thread busy at a stretch.

    python -m bench.ui_markdown [--size 1.0] [--only NAME ...]

Opens a chat with one answer of each shape in `tests/chat/view/answer/markdown_corpus.py`, scrolls through it, makes it
narrower, finds words in it, copies all of it, and streams it into another chat. A step is one turn of the event loop,
painting included. Prints the worst step of each part for each shape in milliseconds of processor time of the window's
thread, the clock's worst step beside it, and how many shapes stay within the target. Takes about ten minutes.
"""

import argparse
import functools
import gc
import os
import sys
import time
from collections.abc import Callable

import msgspec
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from qwendesk.app.event_loop import keep_collector_quick
from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache
from qwendesk.chat.view.thread.thread_view import ThreadView
from qwendesk.core.conversation import Answer, Conversation, Turn
from qwendesk.core.messages import text_message
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.chat.view.answer.markdown_corpus import corpus

TARGET_MS = 50.0
_QUIET_STEPS = 30
_QUIET_MS = 0.3
_STREAMED = 40_000
"""Characters that arrive in small pieces; the rest of the answer comes at once, as from a model that was waited for."""
_PIECE = 200


class Steps(msgspec.Struct):
    """The worst step so far, in milliseconds of processor time and by the clock."""

    cpu: float = 0.0
    clock: float = 0.0

    def run(self, step: Callable[[], object]) -> float:
        started, cpu = time.perf_counter(), time.thread_time()
        step()
        took = (time.thread_time() - cpu) * 1000
        self.cpu = max(self.cpu, took)
        self.clock = max(self.clock, (time.perf_counter() - started) * 1000)
        return took


class FullCollections:
    """The longest garbage collection of all generations so far, in milliseconds of processor time."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._started = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._started = time.thread_time()
        elif info["generation"] == 2:
            self.longest = max(self.longest, (time.thread_time() - self._started) * 1000)


class Bench:
    """One window, all shapes after one another."""

    def __init__(self, app: QApplication) -> None:
        self._app = app
        ThemeKeeper(app, "dark")

    def _turn(self) -> None:
        """One turn of the event loop. What `deleteLater` was called for outside of it would otherwise stay for ever."""
        self._app.processEvents()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    def settle(self, view: ThreadView, steps: Steps) -> None:
        """Let the event loop turn until there is nothing more to do."""
        quiet = 0
        while quiet < _QUIET_STEPS:
            took = steps.run(self._turn)
            quiet = quiet + 1 if took < _QUIET_MS and not view.is_busy and not view.find_bar.is_searching else 0
            if quiet:
                time.sleep(0.002)

    def measure(self, text: str) -> dict[str, Steps]:
        view = ThreadView(PreviewCache())
        view.resize(900, 800)
        view.show()
        view.show_conversation(_conversation(1, "Short."))
        self.settle(view, Steps())
        parts = {name: Steps() for name in ("open", "scroll", "narrow", "find", "copy", "stream")}
        steps = parts["open"]
        steps.run(lambda: view.show_conversation(_conversation(2, text)))
        self.settle(view, steps)
        self._scroll(view, parts["scroll"])
        parts["narrow"].run(lambda: view.resize(700, 800))
        self.settle(view, parts["narrow"])
        self._find(view, parts["find"])
        self._copy(view, parts["copy"])
        self._stream(view, text, parts["stream"])
        view.highlighter.close()
        view.close()
        self.settle(view, Steps())
        view.deleteLater()
        self._turn()
        return parts

    def _scroll(self, view: ThreadView, steps: Steps) -> None:
        bar = view.verticalScrollBar()
        for share in (0.0, 0.5, 0.25, 0.9):
            steps.run(functools.partial(bar.setValue, round(bar.maximum() * share)))
            self.settle(view, steps)
        for _ in range(10):
            steps.run(lambda: bar.setValue(bar.value() + 120))
            steps.run(self._turn)
        for _ in range(10):
            steps.run(lambda: bar.setValue(bar.value() - 700))
            steps.run(self._turn)
        self.settle(view, steps)

    def _find(self, view: ThreadView, steps: Steps) -> None:
        steps.run(view.find_bar.open)
        for words in ("e", "99"):
            steps.run(functools.partial(view.find_bar.text.setText, words))
            self.settle(view, steps)
            for _ in range(3):
                steps.run(lambda: view.find_bar.step(-1))
                self.settle(view, steps)
        steps.run(view.find_bar.close_bar)
        self.settle(view, steps)

    def _copy(self, view: ThreadView, steps: Steps) -> None:
        steps.run(view.follow)
        self.settle(view, steps)
        answer = view.answer(2)
        if answer is not None:
            steps.run(answer.answer_view.selectAll)
            self.settle(view, steps)
            steps.run(answer.answer_view.copy)
            self.settle(view, steps)
        QGuiApplication.clipboard().clear()

    def _stream(self, view: ThreadView, text: str, steps: Steps) -> None:
        view.show_conversation(_conversation(1, "Short."))
        self.settle(view, Steps())
        turn = Turn(id=3, question=text_message("user", "More?"))
        steps.run(lambda: view.add_turn(turn))
        self.settle(view, steps)
        answer = view.answer(3)
        if answer is None:
            raise RuntimeError("an answer that is being made has no widget")
        for start in range(0, min(_STREAMED, len(text)), _PIECE):
            piece = text[start : min(_STREAMED, start + _PIECE)]
            steps.run(functools.partial(answer.write, "answer", piece))
            steps.run(self._turn)
        if text[_STREAMED:]:
            steps.run(lambda: answer.write("answer", text[_STREAMED:]))
        self.settle(view, steps)
        ended = Turn(id=3, question=turn.question, answer=Answer(text=text, stop_reason="eos"))
        steps.run(lambda: view.end_turn(ended))
        self.settle(view, steps)


def _conversation(turn_id: int, text: str) -> Conversation:
    answer = Answer(text=text, stop_reason="eos")
    return Conversation(turns=(Turn(id=turn_id, question=text_message("user", "A question?"), answer=answer),))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.ui_markdown")
    parser.add_argument("--size", type=float, default=1.0, help="share of the corpus's largest size")
    parser.add_argument("--only", nargs="*", default=[], help="names of shapes")
    chosen = parser.parse_args()
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QApplication(["bench"])
    app.setQuitOnLastWindowClosed(False)
    bench = Bench(app)
    bench.measure("Some **words** first.")
    keep_collector_quick()
    texts = {name: text for name, text in corpus(chosen.size).items() if not chosen.only or name in chosen.only}
    within, worst = 0, ("", 0.0)
    collections = FullCollections()
    for name, text in texts.items():
        gc.collect()  # as the app does when nothing is being written
        collections.longest = 0.0
        parts = bench.measure(text)
        most = max(steps.cpu for steps in parts.values())
        clock = max(steps.clock for steps in parts.values())
        within += most <= TARGET_MS
        worst = max(worst, (name, most), key=lambda each: each[1])
        line = "  ".join(f"{part} {steps.cpu:5.1f}" for part, steps in parts.items())
        verdict = "ok" if most <= TARGET_MS else "too long"
        print(
            f"{name:<28} {len(text):>9,}  {line}  collection {collections.longest:5.1f}  clock {clock:6.1f}  {verdict}",
            flush=True,
        )
    print(
        f"{within} of {len(texts)} shapes within {TARGET_MS:.0f} ms of processor time a step; "
        f"worst {worst[1]:.1f} ms ({worst[0]})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
