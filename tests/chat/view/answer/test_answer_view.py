"""The Markdown of an answer: formatting, redrawing, selection and links."""

import re
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QTextDocument, QTextTable
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QToolButton, QWidget

from qwendesk.chat.view.answer.answer_view import AnswerView
from qwendesk.chat.view.answer.section_pane import SectionPane
from qwendesk.widgets.theme_keeper import ThemeKeeper

CODE = "def add(a, b):\n    return a + b  # sum\n"
MIXED = "\n\n".join(
    f"## Part {number}\n\nSome **words** and `code`.\n\n- a\n- b\n\n"
    f"```python\n{CODE}```\n\n| x | y |\n|---|---|\n| 1 | 2 |"
    for number in range(20)
)


@pytest.fixture
def view(keeper: ThemeKeeper) -> Iterator[AnswerView]:
    page = QWidget()
    page.resize(800, 600)
    view = AnswerView(page)
    view.resize(700, 100)
    page.show()
    yield view
    page.deleteLater()


def drawn(view: AnswerView) -> QTextDocument:
    """The first section's text."""
    pane = view.sections[0].pane
    assert pane is not None
    return pane.document()


def stream(view: AnswerView, text: str, app: QApplication, step: int = 40) -> None:
    """Feed `text` in pieces, each drawn before the next."""
    for start in range(0, len(text), step):
        view.add(text[start : start + step])
        view.draw_now()
    app.processEvents()


def test_markdown_is_shown_with_its_formatting(view: AnswerView) -> None:
    view.add("# Title\n\nSome **bold**, *it* and `code`.\n\n1. one\n2. two\n\n<i>html</i>")
    view.finish()
    assert view.toPlainText() == "Title\nSome bold, it and code.\none\ntwo\n<i>html</i>"


def test_streamed_and_complete_answers_look_the_same(view: AnswerView, keeper: ThemeKeeper, app: QApplication) -> None:
    whole = AnswerView(view.parentWidget())
    whole.resize(view.size())
    whole.show()
    whole.add(MIXED)
    whole.finish()
    stream(view, MIXED, app)
    view.finish()
    assert view.toPlainText() == whole.toPlainText()
    assert view.height() == whole.height()
    assert len(view.findChildren(QToolButton)) >= 20
    whole.deleteLater()


def test_finished_blocks_are_written_once(view: AnswerView, app: QApplication) -> None:
    stream(view, MIXED, app, step=30)
    blocks = view.blocks_written
    assert view.open_writes > 20
    view.add("\n\nThe end.")
    view.finish()
    assert view.blocks_written - blocks <= 3
    assert view.blocks_written == len(
        re.findall(r"^(##|Some|- a|```python|\| x|The end)", MIXED + "\n\nThe end.", re.M)
    )


def test_streaming_code_card_is_extended_instead_of_rewritten(view: AnswerView, app: QApplication) -> None:
    code = "".join(f"value_{number} = {number}  # a comment\n" for number in range(400))
    view.add("```python\n")
    view.draw_now()
    first = drawn(view).rootFrame().childFrames()[0]
    stream(view, code[:3000], app, step=200)
    assert drawn(view).rootFrame().childFrames()[0] is first
    assert view.blocks_written == 0
    stream(view, code[3000:], app, step=200)
    view.add("```\n")
    view.finish()
    assert view.toPlainText().split() == code.split()


def test_a_selection_spans_the_whole_answer(view: AnswerView) -> None:
    view.add(f"Before\n\n```python\n{CODE}```\n\nAfter")
    view.finish()
    view.selectAll()
    view.copy()
    text = QApplication.clipboard().text()
    assert text.index("Before") < text.index("def add") < text.index("After")


def test_code_is_copied_as_it_was_written(view: AnswerView, app: QApplication) -> None:
    view.add(f"```python\n{CODE}```\n\nText.")
    view.finish()
    app.processEvents()
    button = next(each for each in view.findChildren(QToolButton) if each.isVisible())
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text() == CODE.rstrip("\n")
    assert button.accessibleName()


def test_answer_is_recoloured_with_another_theme(view: AnswerView, keeper: ThemeKeeper) -> None:
    view.add("Some text")
    view.finish()
    keeper.choose("light")
    cursor = drawn(view).find("Some")
    assert cursor.charFormat().foreground().color().name().upper() == keeper.theme["text"]
    assert view.toPlainText() == "Some text"


def test_only_web_addresses_are_links_and_they_are_shown_before_they_open(
    view: AnswerView, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[QUrl] = []
    monkeypatch.setattr("qwendesk.widgets.text_pane.QDesktopServices.openUrl", opened.append)
    view.add("[a](https://example.org/x) [b](javascript:alert(1)) [c](file:///etc/passwd)")
    view.finish()
    hrefs = {}
    for word in "abc":
        hrefs[word] = drawn(view).find(word, 0).charFormat().anchorHref()
    assert hrefs == {"a": "https://example.org/x", "b": "", "c": ""}
    assert drawn(view).find("a", 0).charFormat().toolTip() == "https://example.org/x"
    pane = view.pane_at(0)
    pane.anchorClicked.emit(QUrl("https://example.org/x"))
    assert opened == []
    menu = view.findChild(QMenu, "link.menu")
    assert menu is not None
    assert "https://example.org/x" in menu.actions()[0].text()
    menu.actions()[0].trigger()
    assert [url.toString() for url in opened] == ["https://example.org/x"]
    menu.close()


def test_bare_web_address_is_a_link_without_trailing_punctuation(view: AnswerView) -> None:
    view.add(
        "See https://example.org/a_b_c?x=1, (http://example.org/b) and ftp://example.org/c or example.org.\n\n`https://d`"
    )
    view.finish()

    def href(word: str) -> str:
        return drawn(view).find(word).charFormat().anchorHref()

    assert href("a_b_c") == "https://example.org/a_b_c?x=1"
    assert href("/b") == "http://example.org/b"
    assert [href(word) for word in (", (", ") and", "example.org/c", "or example.org", "https://d")] == [""] * 5
    assert view.toPlainText().startswith("See https://example.org/a_b_c?x=1, (http://example.org/b) and ftp:")


def test_remote_pictures_are_not_loaded(view: AnswerView, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(SectionPane, "loadResource", lambda *request: asked.append(request), raising=False)
    view.add("![a cat](https://example.org/cat.png)")
    view.finish()
    view.grab()
    assert asked == []
    assert "a cat" in view.toPlainText()


def test_first_row_of_a_streaming_table_is_shown_as_a_table(view: AnswerView) -> None:
    view.add("| Name | Size |")
    view.draw_now()
    tables = [frame for frame in drawn(view).rootFrame().childFrames() if isinstance(frame, QTextTable)]
    assert len(tables) == 1
    assert (tables[0].rows(), tables[0].columns()) == (1, 2)


def test_height_depends_on_text_and_width(view: AnswerView, app: QApplication) -> None:
    view.add("word " * 300)
    view.finish()
    wide = view.height()
    view.setFixedWidth(300)
    app.processEvents()
    assert view.height() > wide
