"""Huge answers are parsed and drawn in small steps. The tests count the work of each step instead of timing it."""

import gc
from collections.abc import Iterator

import msgspec
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from PySide6.QtCore import QEvent
from PySide6.QtGui import QTextTable
from PySide6.QtWidgets import QApplication

from qwendesk.chat.view.answer.answer_view import AnswerView
from qwendesk.chat.view.answer.block_splitter import LONG_CODE, MAX_BLOCK_LENGTH, PANEL_COLUMNS, TABLE_CELLS
from qwendesk.chat.view.answer.clipboard_text import copy_in_steps
from qwendesk.chat.view.answer.section_pane import SectionPane
from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache
from qwendesk.chat.view.thread.thread_view import ThreadView
from qwendesk.core.conversation import Answer, Conversation, Turn
from qwendesk.core.messages import text_message
from qwendesk.widgets.step_budget import StepBudget
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.chat.view.answer.markdown_corpus import corpus

MOST_PARSED = 6 * MAX_BLOCK_LENGTH
"""Characters that Markdown's parser is given in one step, all calls together."""
MOST_BLOCKS = LONG_CODE + 100
"""Paragraphs, items, cells and lines of code in one text document, with the lines that arrive before a split."""
MOST_WIDGETS = 60
SHAPES = (
    "task-items",
    "bullets-nested",
    "quotes-of-lists",
    "table-rows",
    "table-columns",
    "tables",
    "fences",
    "fence-never-closed",
    "paragraphs",
    "paragraph-long",
    "bold-runs",
    "links",
    "footnotes",
    "formulas",
    "emoji",
    "combining",
)
ONLY_IN_SOAK = tuple(name for name in corpus(0.001) if name not in SHAPES)


class Turns:
    """A clock that moves by one whenever it is read: with `limit_s` 1.5 one piece of work is done in each turn."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        self._now += 1.0
        return self._now


class Work(msgspec.Struct):
    """What was done in this turn of the event loop, and the most that was done in one."""

    parsed: int = 0
    drawn: int = 0
    most_parsed: int = 0
    most_drawn: int = 0

    def reset(self) -> None:
        self.most_parsed, self.most_drawn = max(self.most_parsed, self.parsed), max(self.most_drawn, self.drawn)
        self.parsed = self.drawn = 0


@pytest.fixture
def work(app: QApplication, monkeypatch: pytest.MonkeyPatch) -> Work:
    # The views of earlier tests would go on with their work, which is counted here.
    app.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    work = Work()
    parse, restore = MarkdownIt.parse, SectionPane.restore

    def count_parsed(parser: MarkdownIt, source: str, env: dict[str, object] | None = None) -> object:
        work.parsed += len(source)
        return parse(parser, source, env)

    def count_drawn(pane: SectionPane, blocks: object) -> None:
        work.drawn += 1
        restore(pane, blocks)  # type: ignore[arg-type]

    renew = StepBudget._on_next_turn

    def on_next_turn(budget: StepBudget) -> None:
        work.reset()
        renew(budget)

    monkeypatch.setattr(StepBudget, "_on_next_turn", on_next_turn)
    monkeypatch.setattr(MarkdownIt, "parse", count_parsed)
    monkeypatch.setattr(SectionPane, "restore", count_drawn)
    return work


@pytest.fixture
def view(keeper: ThemeKeeper, app: QApplication, monkeypatch: pytest.MonkeyPatch, work: Work) -> Iterator[ThreadView]:
    monkeypatch.setattr("qwendesk.chat.view.answer.formulas.draw", lambda _source, displayed: None)
    view = ThreadView(PreviewCache())
    view.budget.limit_s, view.budget.clock = 1.5, Turns()
    view.resize(900, 600)
    view.show()
    yield view
    view.highlighter.close()
    view.close()
    view.deleteLater()


def settle(view: ThreadView, app: QApplication) -> None:
    """Let the event loop turn until nothing is left to do."""
    for _ in range(3):
        app.processEvents()
        while view.is_busy or view.find_bar.is_searching:
            app.processEvents()
        view.create_nearby_rows()


def open_answer(view: ThreadView, text: str) -> None:
    turn = Turn(id=1, question=text_message("user", "?"), answer=Answer(text=text, stop_reason="eos"))
    view.show_conversation(Conversation(turns=(turn,)))


def answer_of(view: ThreadView, turn_id: int = 1) -> AnswerView:
    answer = view.answer(turn_id)
    assert answer is not None
    return answer.answer_view


def check(view: ThreadView, work: Work) -> None:
    work.reset()
    assert work.most_parsed <= MOST_PARSED
    assert work.most_drawn <= 1
    panes = [each.pane for each in answer_of(view).live if each.pane is not None]
    assert len(panes) <= MOST_WIDGETS
    assert panes or not answer_of(view).markdown.strip()
    assert all(pane.document().blockCount() <= MOST_BLOCKS for pane in panes)
    assert all(pane.document().characterCount() <= 2 * MAX_BLOCK_LENGTH for pane in panes)


def open_and_scroll(view: ThreadView, text: str, app: QApplication, work: Work) -> None:
    open_answer(view, text)
    settle(view, app)
    check(view, work)
    bar = view.verticalScrollBar()
    assert bar.value() == bar.maximum()
    for share in (0.0, 0.5, 0.25):
        bar.setValue(round(bar.maximum() * share))
        settle(view, app)
        check(view, work)


@pytest.mark.parametrize("name", SHAPES)
def test_a_huge_answer_opens_in_small_steps(name: str, view: ThreadView, app: QApplication, work: Work) -> None:
    open_and_scroll(view, corpus(0.03)[name], app, work)


@pytest.mark.soak
@pytest.mark.parametrize("name", [*SHAPES, *ONLY_IN_SOAK])
def test_all_shapes_open_and_stream_in_small_steps(name: str, view: ThreadView, app: QApplication, work: Work) -> None:
    text = corpus(0.5)[name]
    open_and_scroll(view, text, app, work)
    stream(view, text, app, work)


def stream(view: ThreadView, text: str, app: QApplication, work: Work) -> None:
    question = text_message("user", "?")
    view.show_conversation(Conversation())
    view.add_turn(Turn(id=1, question=question))
    answer = view.answer(1)
    assert answer is not None
    work.most_parsed = work.most_drawn = 0
    for start in range(0, min(3_000, len(text)), 100):
        answer.write("answer", text[start : min(3_000, start + 100)])
        app.processEvents()
    answer.write("answer", text[3_000:])
    settle(view, app)
    check(view, work)
    view.end_turn(Turn(id=1, question=question, answer=Answer(text=text, stop_reason="eos")))
    settle(view, app)
    check(view, work)


@pytest.mark.parametrize("name", ["task-items", "table-rows", "table-columns", "fences"])
def test_a_huge_answer_streams_in_small_steps(name: str, view: ThreadView, app: QApplication, work: Work) -> None:
    stream(view, corpus(0.03)[name], app, work)


def test_end_of_an_answer_is_shown_before_the_rest_is_drawn(view: ThreadView, app: QApplication) -> None:
    open_answer(view, corpus(0.1)["task-items"])
    settle(view, app)
    answer = answer_of(view)
    assert len(answer.sections) > 30
    assert len(answer.live) < 10
    last = answer.sections[-1].pane
    assert last is not None
    assert last.toPlainText().endswith("task 1999")


def test_only_few_parsed_blocks_of_a_huge_answer_stay_in_memory(view: ThreadView, app: QApplication) -> None:
    """Python's garbage collector looks at each of them again and again, in the middle of a step."""
    gc.collect()
    before = sum(isinstance(each, Token) for each in gc.get_objects())
    open_answer(view, corpus(0.2)["table-rows"])
    settle(view, app)
    gc.collect()
    assert sum(isinstance(each, Token) for each in gc.get_objects()) - before < 10_000


def test_huge_answer_is_copied_completely_with_few_widgets(view: ThreadView, app: QApplication) -> None:
    open_answer(view, corpus(0.05)["bullets"])
    settle(view, app)
    answer = answer_of(view)
    widgets = len(answer.live)
    answer.selectAll()
    answer.copy()
    settle(view, app)
    assert QApplication.clipboard().text() == "\n".join(f"item {number}" for number in range(1000))
    assert len(answer.live) <= widgets + 2
    answer.selection.copy("markdown")
    assert QApplication.clipboard().text() == answer.markdown


def test_number_of_highlighted_matches_is_bounded(view: ThreadView, app: QApplication) -> None:
    open_answer(view, "e " * 3_000)
    view.find_bar.open()
    view.find_bar.text.setText("e")
    settle(view, app)
    view.find_bar.step(-1)
    settle(view, app)
    assert view.find_bar.count.text() == "3000 of 3,000"
    marked = [len(each.pane.extraSelections()) for each in answer_of(view).live if each.pane is not None]
    assert max(marked) <= 51
    assert sum(marked) > 50  # the last place, too


def test_table_of_300_columns_is_drawn_completely_in_smaller_tables(view: ThreadView, app: QApplication) -> None:
    rows = "".join("|" + "".join(f" r{y}c{x} |" for x in range(300)) + "\n" for y in range(7))
    head = "|" + "".join(f" head {x} |" for x in range(300)) + "\n|" + "---|" * 300 + "\n"
    open_answer(view, head + rows + "\nAfter it.")
    settle(view, app)
    answer = answer_of(view)
    words = answer.toPlainText().split("\n")
    assert {f"r{y}c{x}" for y in range(7) for x in range(300)} <= set(words)
    assert words[-1] == "After it."
    tables = [
        frame
        for each in answer.live
        if each.pane is not None
        for frame in each.pane.document().rootFrame().childFrames()
        if isinstance(frame, QTextTable)
    ]
    assert tables
    assert all(table.columns() <= PANEL_COLUMNS for table in tables)
    assert all(table.columns() * table.rows() <= TABLE_CELLS for table in tables)


def test_the_pieces_of_a_long_table_have_columns_of_the_same_width(view: ThreadView, app: QApplication) -> None:
    rows = "".join(f"| {number} | {'word ' * (number % 7)} | end |\n" for number in range(120))
    open_answer(view, f"| number | words | last |\n|---|---|---|\n{rows}")
    settle(view, app)
    answer = answer_of(view)
    widths = set()
    for index in range(len(answer.sections)):
        (table,) = answer.pane_at(index).document().rootFrame().childFrames()
        assert isinstance(table, QTextTable)
        widths.add(tuple(each.rawValue() for each in table.format().toTableFormat().columnWidthConstraints()))
    assert len(answer.sections) > 2
    assert len(widths) == 1


def test_work_budget_is_shared_and_renewed_in_the_next_turn_of_the_loop(app: QApplication, view: ThreadView) -> None:
    budget = StepBudget(view, limit_s=1.5, clock=Turns())
    assert not budget.is_spent
    assert budget.is_spent
    app.processEvents()
    assert not budget.is_spent


def test_long_message_is_copied_block_by_block(app: QApplication) -> None:
    text = "Before **it**.\n\n" + corpus(0.03)["table-rows"] + "\nAfter."
    steps = list(copy_in_steps(text, "rich"))
    assert len(steps) > 20
    copied = QApplication.clipboard().text()
    assert copied.count("column 0") == 1
    assert all(f"cell {number}\n" in copied for number in range(600))
    assert copied.startswith("Before it.")
    assert copied.rstrip().endswith("After.")
    html = QApplication.clipboard().mimeData().html()
    assert html.count("cell 599") == 3


def test_table_rows_copied_without_the_header_stay_rows(app: QApplication) -> None:
    rows = "".join(f"| {number} | b |\n" for number in range(1_200))
    list(copy_in_steps("| a | b |\n|---|---|\n" + rows, "plain"))
    numbers = [int(line) for line in QApplication.clipboard().text().split("\n") if line.isdigit()]
    assert numbers == list(range(1_200))
