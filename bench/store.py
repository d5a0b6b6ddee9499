"""How fast the store answers: search in 100,000 messages, the list of 10,000 chats, a save, and the check at start.

    python -m bench.store [--messages N] [--chats N]

Prints each figure next to its target. Texts are made up from a fixed vocabulary whose words are as unevenly common as
those of a language (Zipf), 90 words a message and as many again of thought for every second one.
"""

import argparse
import bisect
import itertools
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

from qwendesk.chat.tree_edits import new_id
from qwendesk.core.chats import ChatSummary
from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import text_message
from qwendesk.store.opening import Store, open_store

SEARCH_TARGET_S = 0.05
LIST_TARGET_S = 0.1
SAVE_TARGET_S = 0.1
_WORDS_IN_MESSAGE = 90
_VOCABULARY = 30_000
_IN_CHAT = 20
_RUNS = 15


def main() -> int:
    """Measures and prints; exit status 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--chats", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qwendesk-bench-") as folder:
        _fill(Path(folder), options.messages, options.chats)
        size_mb = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
        print(f"{options.messages:,} messages in {options.chats:,} chats, {size_mb:.0f} MB")
        began = time.perf_counter()
        store, _report = open_store(Path(folder))
        print(f"  open, with integrity check: {time.perf_counter() - began:.2f} s (the window does not wait)")
        if store is None:
            raise RuntimeError("the store could not be opened")
        try:
            passed = [*_search(store), _list(store), _save(store)]
        finally:
            store.close()
    return 0 if all(passed) else 1


def _fill(folder: Path, messages: int, chats: int) -> None:
    store, _report = open_store(folder)
    if store is None:
        raise RuntimeError("the store could not be made")
    words = _words(random.Random(1))
    now = time.time()
    with_messages = max(1, messages // _IN_CHAT)
    for number in range(max(chats, with_messages)):
        chat_id, at = new_id(), now - number * 600
        if number >= with_messages:
            store.chats.save_summary(ChatSummary(id=chat_id, title=_text(words, 6), created_s=at, changed_s=at))
            continue
        nodes: list[ChatNode] = []
        for place in range(_IN_CHAT):
            is_answer = place % 2 == 1
            message = text_message(
                "assistant" if is_answer else "user",
                _text(words, _WORDS_IN_MESSAGE),
                reasoning=_text(words, _WORDS_IN_MESSAGE) if is_answer else "",
            )
            parent = nodes[-1].id if nodes else ""
            nodes.append(ChatNode(id=new_id(), parent_id=parent, message=message, created_s=at))
        for node in nodes:
            store.chats.save_node(chat_id, node)
    store.close()


def _words(chance: random.Random) -> Iterator[str]:
    """Word 1 is twice as common as word 2, three times as word 3, and so on."""
    sums = list(itertools.accumulate(1 / rank for rank in range(1, _VOCABULARY + 1)))
    names = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randrange(2, 10))) for _ in sums]
    names[:3] = ["the", "of", "and"]
    names[200], names[20_000] = "common", "seldom"
    while True:
        yield names[bisect.bisect(sums, chance.random() * sums[-1])]


def _text(words: Iterator[str], count: int) -> str:
    return " ".join(itertools.islice(words, count))


def _search(store: Store) -> list[bool]:
    queries = {
        "the commonest word": "the",
        "two letters, as they are typed": "th",
        "a common word": "common",
        "a seldom word": "seldom",
        "two words": "the common",
        "a phrase": '"of the"',
        "no hit": "zzzzzzzzzz",
    }
    passed = []
    for reasoning in (False, True):
        for name, query in queries.items():
            seconds = _median(partial(store.search.find, query, reasoning=reasoning))
            label = f"search, {name}{', thoughts too' if reasoning else ''}"
            passed.append(_print(label, seconds, SEARCH_TARGET_S))
    return passed


def _list(store: Store) -> bool:
    """From the file to rows on a (made-up) screen."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtWidgets import QApplication  # noqa: PLC0415 - only here is Qt needed

    from qwendesk.chat.view.sidebar.chat_list import ChatList  # noqa: PLC0415
    from qwendesk.chat.view.sidebar.chat_model import ChatModel, rows_of  # noqa: PLC0415
    from qwendesk.widgets.theme_keeper import ThemeKeeper  # noqa: PLC0415

    app = QApplication([])
    ThemeKeeper(app, "dark")
    view = ChatList(ChatModel(lambda *_: None, lambda *_: None))
    view.resize(260, 700)
    view.show()

    def show() -> None:
        view.show_rows((), "")
        view.show_rows(rows_of(store.chats.list(), (), datetime.now()), "")
        view.grab()

    opened = _print("list of all chats, read and drawn", _median(show), LIST_TARGET_S)
    bar = view.verticalScrollBar()
    places = itertools.cycle(range(0, max(1, bar.maximum()), max(1, bar.maximum() // 97)))

    def scroll() -> None:
        bar.setValue(next(places))
        view.grab()

    scrolled = _print("one step of scrolling, drawn", _median(scroll), 0.016)
    view.deleteLater()
    return opened and scrolled


def _save(store: Store) -> bool:
    """A growing answer of 32,000 tokens, as it is written twice a second."""
    text = _text(_words(random.Random(2)), 25_000)
    question = ChatNode(id=new_id(), message=text_message("user", "long"), created_s=time.time())
    store.chats.save_node("bench", question).result()
    answer = ChatNode(id=new_id(), parent_id=question.id, message=text_message("assistant", text))
    seconds = _median(lambda: store.chats.save_node("bench", answer, growing=True).result())
    return _print("saving a growing answer of 32,000 tokens", seconds, SAVE_TARGET_S)


def _median(work: Callable[[], object]) -> float:
    """Seconds, of several runs after one that warms up."""
    work()
    times = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]


def _print(name: str, seconds: float, target_s: float) -> bool:
    good = seconds <= target_s
    print(f"  {name}: {seconds * 1000:.1f} ms (target {target_s * 1000:.0f} ms){'' if good else '  MISSED'}")
    return good


if __name__ == "__main__":
    sys.exit(main())
