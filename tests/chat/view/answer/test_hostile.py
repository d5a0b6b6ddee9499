"""Hostile answers have no side effects. The tests count the work that they cause instead of timing it."""

import socket
from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QTextDocument
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.chat.view.answer.answer_view import AnswerView
from qwendesk.chat.view.answer.block_splitter import MAX_BLOCK_LENGTH
from qwendesk.chat.view.answer.formulas import (
    MAX_FORMULA_DEPTH,
    MAX_FORMULA_LENGTH,
    MAX_SVG_LENGTH,
    FormulaCache,
    draw,
    is_drawable,
    nesting,
)
from qwendesk.chat.view.answer.section_pane import SectionPane
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.chat.view.answer.hostile import hostile_inputs
from tests.chat.view.answer.markdown import blocks_of_text

INPUTS = dict(hostile_inputs())
GROUPS = 10
MOST_PARSED = 8
"""How often each character of an answer may be parsed, at most, while it is cut into blocks."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Everything that would leave this process."""
    asked: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda *address: asked.append(address))
    monkeypatch.setattr(QDesktopServices, "openUrl", asked.append)
    return asked


@pytest.fixture
def page(app: QApplication) -> Iterator[QWidget]:
    page = QWidget()
    page.resize(700, 500)
    page.show()
    yield page
    page.close()
    page.deleteLater()


def hrefs(document: QTextDocument) -> set[str]:
    found = set()
    block = document.begin()
    while block.isValid():
        parts = block.begin()
        while not parts.atEnd():
            found.add(parts.fragment().charFormat().anchorHref())
            parts += 1
        block = block.next()
    return found - {""}


def test_corpus_has_at_least_300_hostile_answers() -> None:
    assert len(INPUTS) >= 300


@pytest.mark.parametrize("group", range(GROUPS))
def test_hostile_answers_are_drawn_without_side_effects(
    group: int,
    page: QWidget,
    keeper: ThemeKeeper,
    asked: list[object],
    app: QApplication,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[QUrl] = []
    plain = SectionPane.loadResource

    def load(pane: SectionPane, kind: int, name: QUrl) -> object:
        loaded.append(name)
        return plain(pane, kind, name)

    monkeypatch.setattr(SectionPane, "loadResource", load)
    undrawn = FormulaCache(page, run=lambda _source, _displayed: None)
    for name, text in list(INPUTS.items())[group::GROUPS]:
        view = AnswerView(page, undrawn)
        view.resize(600, 10)
        view.show_range(0, 400)
        view.show_whole(text)
        view.show()
        view.grab()
        assert view.height() < 4_000_000, name
        panes = view.findChildren(SectionPane)
        assert len(panes) < 60, name
        for pane in panes:
            assert all(href.startswith(("http://", "https://", "#footnote-")) for href in hrefs(pane.document())), name
            assert pane.document().characterCount() < 2 * MAX_BLOCK_LENGTH + 20_000, name
        view.setParent(None)
        view.deleteLater()
        app.processEvents()
    assert asked == []
    assert loaded == []


def test_html_is_shown_as_text(page: QWidget, keeper: ThemeKeeper) -> None:
    view = AnswerView(page)
    view.show_whole("<b>bold</b> <script>alert(1)</script>")
    assert view.toPlainText() == "<b>bold</b> <script>alert(1)</script>"


@pytest.mark.parametrize("name", [name for name in INPUTS if name.startswith("repeated-") and "words" not in name])
def test_parsing_work_is_proportional_to_the_length(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    plain = MarkdownIt.parse

    def parse(parser: MarkdownIt, source: str, env: dict[str, object] | None = None) -> object:
        parsed.append(len(source))
        return plain(parser, source, env)

    monkeypatch.setattr(MarkdownIt, "parse", parse)
    text = INPUTS[name]
    blocks_of_text(text)
    assert max(parsed, default=0) <= 6 * MAX_BLOCK_LENGTH  # a row of bars gets a line below it, four times as long
    assert sum(parsed) <= MOST_PARSED * len(text) + MAX_BLOCK_LENGTH


def test_expensive_formulas_are_shown_as_source() -> None:
    sources = [text.strip("$\n") for name, text in INPUTS.items() if name.startswith("formula-")]
    drawable = [source for source in sources if is_drawable(source)]
    assert all(len(source) <= MAX_FORMULA_LENGTH and nesting(source) <= MAX_FORMULA_DEPTH for source in drawable)
    for source in {*drawable}:
        drawing = draw(source, displayed=True)
        if drawing is not None:
            assert len(drawing.svg) <= MAX_SVG_LENGTH
            assert "image" not in drawing.svg
            assert "http://192" not in drawing.svg
