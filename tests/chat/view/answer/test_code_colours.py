"""Code cards are shown plain at once and coloured later without moving."""

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.chat.view.answer.answer_view import AnswerView
from qwendesk.chat.view.answer.block_splitter import LONG_BLOCK, split_long_block
from qwendesk.chat.view.answer.highlight import highlight
from qwendesk.chat.view.answer.highlighter import Highlighter
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.chat.view.answer.colours import drawn_colours, roles, wait_for_colours

CODE = "def add(a, b):\n    return a + b  # sum\n"
TEXT_BLOCK = 'x = """\n' + "text\n" * 300 + '"""\n'
LINES = "".join(f"value_{number} = {number}  # a comment\n" for number in range(90))


@pytest.fixture
def highlighter(app: QApplication) -> Iterator[Highlighter]:
    highlighter = Highlighter()
    yield highlighter
    highlighter.close()


@pytest.fixture
def view(keeper: ThemeKeeper, highlighter: Highlighter) -> Iterator[AnswerView]:
    page = QWidget()
    page.resize(800, 600)
    view = AnswerView(page, highlighter=highlighter)
    view.resize(700, 100)
    page.show()
    yield view
    page.deleteLater()


def drawn(view: AnswerView) -> QTextDocument:
    """The first section's text."""
    pane = view.sections[0].pane
    assert pane is not None
    return pane.document()


def colours(view: AnswerView) -> list[tuple[str, str]]:
    return [each for section in view.sections if section.pane for each in drawn_colours(section.pane.document())]


def coloured_whole(view: AnswerView, app: QApplication, markdown: str) -> list[tuple[str, str]]:
    """What the same answer looks like when it is opened later."""
    highlighter = Highlighter()
    later = AnswerView(view.parentWidget(), highlighter=highlighter)
    later.resize(view.size())
    later.show_whole(markdown)
    wait_for_colours(highlighter, app)
    highlighter.close()
    found = colours(later)
    later.deleteLater()
    return found


def test_code_is_shown_at_once_and_colouring_does_not_change_the_layout(
    view: AnswerView, keeper: ThemeKeeper, app: QApplication, highlighter: Highlighter
) -> None:
    view.add(f"```python\n{CODE}```\n\nreturn")
    view.finish()
    plain = keeper.theme["code_text"].lower()
    letters, height = "".join(letter for letter, _ in colours(view)), view.height()
    assert letters == "".join((CODE + "return").split())
    assert {colour for _, colour in colours(view)} == {plain, keeper.theme["text"].lower()}
    ends = [round(drawn(view).documentLayout().blockBoundingRect(drawn(view).findBlock(at)).bottom()) for at in (3, 20)]
    wait_for_colours(highlighter, app)
    keyword = drawn(view).find("return")
    assert keyword.charFormat().foreground().color().name().upper() == keeper.theme["code_keyword"]
    assert drawn(view).find("sum").charFormat().foreground().color().name().upper() == keeper.theme["code_comment"]
    later = drawn(view).find("return", keyword)
    assert later.charFormat().foreground().color().name().upper() == keeper.theme["text"]
    assert "".join(letter for letter, _ in colours(view)) == letters
    assert view.height() == height
    assert ends == [
        round(drawn(view).documentLayout().blockBoundingRect(drawn(view).findBlock(at)).bottom()) for at in (3, 20)
    ]


def test_colours_are_correct_after_characters_outside_the_bmp(
    view: AnswerView, keeper: ThemeKeeper, app: QApplication, highlighter: Highlighter
) -> None:
    view.show_whole("😀 before\n\n```python\nx = '🐍🐍'  # 🐍\nreturn 1\n```")
    wait_for_colours(highlighter, app)
    theme = keeper.theme
    found = {word: drawn(view).find(word).charFormat().foreground().color().name().upper() for word in ("return", "#")}
    assert found == {"return": theme["code_keyword"], "#": theme["code_comment"]}


def test_colouring_keeps_the_selection(view: AnswerView, app: QApplication, highlighter: Highlighter) -> None:
    view.show_whole(f"```python\n{CODE}```")
    view.selectAll()
    view.copy()
    before = QApplication.clipboard().text()
    wait_for_colours(highlighter, app)
    view.copy()
    assert QApplication.clipboard().text() == before
    assert CODE.strip() in before


@pytest.mark.parametrize("frame", ["{}", "- item\n\n{}", "> {}"], ids=["card", "list", "quote"])
def test_streaming_code_is_highlighted_once_per_line(
    view: AnswerView, keeper: ThemeKeeper, app: QApplication, highlighter: Highlighter, frame: str
) -> None:
    prefix = {"- item\n\n{}": "  ", "> {}": "> "}.get(frame, "")
    code = LINES[:2000]
    card = f"```python\n{code}\n```\n".replace("\n", "\n" + prefix)
    markdown = frame.format(card)
    redraws = 0
    for start in range(0, len(markdown), 7):
        view.add(markdown[start : start + 7])
        view.draw_now()
        wait_for_colours(highlighter, app)
        redraws += 1
    view.finish()
    wait_for_colours(highlighter, app)
    lines = code.count("\n") + 1
    assert highlighter.requests_sent <= lines + 10 < redraws / 3
    assert colours(view) == coloured_whole(view, app, markdown)
    comment = keeper.theme["code_comment"].lower()
    assert sum(colour == comment for _, colour in colours(view)) > 400


def test_card_keeps_its_colours_while_it_grows(
    view: AnswerView, app: QApplication, highlighter: Highlighter, keeper: ThemeKeeper
) -> None:
    view.add("- item\n\n  ```python\n  return 1\n  return 2\n")
    view.draw_now()
    wait_for_colours(highlighter, app)
    view.add("  return 3\n")
    view.draw_now()
    first = drawn(view).find("return")
    assert first.charFormat().foreground().color().name().upper() == keeper.theme["code_keyword"]
    view.finish()
    wait_for_colours(highlighter, app)


def test_card_with_a_too_long_line_becomes_plain(
    view: AnswerView, keeper: ThemeKeeper, app: QApplication, highlighter: Highlighter
) -> None:
    view.add(f"```python\n{CODE}")
    view.draw_now()
    wait_for_colours(highlighter, app)
    assert drawn(view).find("return").charFormat().foreground().color().name().upper() == keeper.theme["code_keyword"]
    view.add(f"x = {'1' * 600}\n```\n")
    view.finish()
    wait_for_colours(highlighter, app)
    assert {colour for _, colour in colours(view)} == {keeper.theme["code_text"].lower()}


def test_partial_closing_fence_is_removed_from_the_card(
    view: AnswerView, keeper: ThemeKeeper, app: QApplication, highlighter: Highlighter
) -> None:
    markdown = f"```python\n{CODE}{CODE}```\n\nreturn"
    for letter in markdown:
        view.add(letter)
        view.draw_now()
        wait_for_colours(highlighter, app)
    view.finish()
    wait_for_colours(highlighter, app)
    assert "`" not in view.toPlainText()
    assert colours(view) == coloured_whole(view, app, markdown)


def test_another_theme_or_scrolling_back_needs_no_new_highlighting(
    view: AnswerView, keeper: ThemeKeeper, app: QApplication, highlighter: Highlighter
) -> None:
    view.show_whole(f"```python\n{CODE}```")
    wait_for_colours(highlighter, app)
    sent = highlighter.requests_sent
    keeper.choose("light")
    assert drawn(view).find("return").charFormat().foreground().color().name().upper() == keeper.theme["code_keyword"]
    view.show_range(5_000, 6_000)
    view.show_range(0, 600)
    assert drawn(view).find("return").charFormat().foreground().color().name().upper() == keeper.theme["code_keyword"]
    assert highlighter.requests_sent == sent


def test_colours_for_a_removed_card_are_ignored(view: AnswerView, app: QApplication, highlighter: Highlighter) -> None:
    view.add("- item\n\n  ```python\n  return 1\n")
    view.draw_now()
    view.add("  return 2\n  return 3\n")
    view.draw_now()
    assert highlighter.is_busy
    view.show_range(50_000, 60_000)
    view.finish()
    view.show_range(50_000, 60_000)
    wait_for_colours(highlighter, app)
    assert view.toPlainText().split() == ["item", "return", "1", "return", "2", "return", "3"]


@pytest.mark.parametrize("code", [TEXT_BLOCK, "a = 1\n" * 300, "def f():\n    return 1\n\n" * 90])
def test_finished_part_has_the_colours_of_the_whole_code(code: str) -> None:
    whole = highlight(code, "python")
    cut = whole.settled_length
    assert cut == 0 or code[cut - 1] == "\n"
    assert roles(code, whole)[-50:] == roles(code[cut:], highlight(code[cut:], "python"))[-50:]
    parts = roles(code[:cut], highlight(code[:cut], "python")) + roles(code[cut:], highlight(code[cut:], "python"))
    assert parts == roles(code, whole)
    assert sum(run.length for run in whole.runs) == len(code)


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", (TEXT_BLOCK + LINES) * 3),
        ("python", "def f():\n    return 1\n\n" * 300),
        ("javascript", ("const a = `one\ntwo\nthree`;\nfunction f() {\n  return 1;\n}\n" + "let b = 2;\n" * 9) * 60),
        ("c", ("/* a comment\nint not_code;\n" + "more\n" * 30 + "*/\nint main() {\n  return 1;\n}\n") * 40),
    ],
)
def test_long_code_is_split_where_both_parts_keep_their_colours(language: str, code: str) -> None:
    fence = f"```{language}\n"
    rest, pieces = fence + code, list[str]()
    while (cut := split_long_block(rest, is_open=False)) is not None:
        pieces.append(cut[0].removeprefix(fence))
        rest = cut[1]
    pieces.append(rest.removeprefix(fence))
    assert "".join(pieces) == code
    assert len(pieces) > 1
    assert all(len(piece) <= LONG_BLOCK + 400 for piece in pieces)
    parts = [each for piece in pieces for each in roles(piece, highlight(piece, language))]
    assert parts == roles(code[:24_000], highlight(code[:24_000], language))[: len(parts)]
