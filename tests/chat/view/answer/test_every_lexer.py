"""Every lexer of Pygments returns a result for lines of the maximum length."""

import itertools
import time
from collections.abc import Iterator

import psutil
import pytest
from pygments.lexers import get_all_lexers
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from qwendesk.chat.view.answer.highlight_protocol import MAX_LINE_LENGTH
from qwendesk.chat.view.answer.highlighter import Highlighter
from tests.chat.view.answer.colours import Shown

_PATTERNS = ("a", " ", "\t", "(", "[{", '"', "'", "aé漢🐍 ")
_COUNTS = (1, 5, 40)
_WAIT = QEventLoop.ProcessEventsFlag.WaitForMoreEvents


def samples() -> Iterator[str]:
    """Lines of 500 characters, shortest code first; with and without a line end after the last one."""
    for count, pattern, end in itertools.product(_COUNTS, _PATTERNS, ("", "\n")):
        yield "\n".join([(pattern * MAX_LINE_LENGTH)[:MAX_LINE_LENGTH]] * count) + end


@pytest.mark.soak
def test_every_lexer_highlights_lines_of_maximum_length(app: QApplication, capsys: pytest.CaptureFixture[str]) -> None:
    highlighter = Highlighter()
    languages = sorted(aliases[0] for _, aliases, _, _ in get_all_lexers(plugins=False) if aliases)
    timed_out: dict[str, str] = {}
    asked, memory, slowest = 0, 0, 0.0
    try:
        for language in languages:
            for code in samples():
                asked += 1
                started = time.perf_counter()
                shown = Shown(highlighter, code, language)
                while highlighter.is_busy:
                    app.processEvents(_WAIT)
                slowest = max(slowest, time.perf_counter() - started)
                assert shown.result is not None
                assert shown.result.length == len(code)
                if not highlighter.process_id:
                    timed_out[language] = f"{code[:6]!r}, {code.count(chr(10)) + 1} lines"
                    break
            if highlighter.process_id:
                memory = max(memory, psutil.Process(highlighter.process_id).memory_info().rss)
    finally:
        highlighter.close()
    gap = _longest_gap(app)
    with capsys.disabled():
        print(f"\n{len(languages)} lexers, {asked:,} pieces of code, {len(timed_out)} lexers stopped:")
        print("\n".join(f"  {language}: {what}" for language, what in timed_out.items()))
        print(f"slowest result {slowest:.1f} s, memory {memory / 2**20:.0f} MiB, longest turn of the loop {gap:.1f} ms")


def _longest_gap(app: QApplication) -> float:
    """Return the milliseconds between two turns of the event loop while lexers are at work that need minutes."""
    highlighter, beat = Highlighter(), QTimer(interval=0)
    turns: list[float] = []
    beat.timeout.connect(lambda: turns.append(time.perf_counter()))
    beat.start()
    shown = [
        Shown(highlighter, "\n".join([letter * MAX_LINE_LENGTH] * 40), language)
        for language, letter in (("easytrieve", "\t"), ("systemd", "a"))
    ]
    while any(each.result is None for each in shown):
        app.processEvents()
    beat.stop()
    highlighter.close()
    return max(b - a for a, b in itertools.pairwise(turns)) * 1000
