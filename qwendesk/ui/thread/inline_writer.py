"""Writes the inside of a Markdown paragraph: emphasis, code, links, formulas' source, pictures by name."""

from collections.abc import Sequence
from typing import Final

import msgspec
from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QTextBlockFormat, QTextCharFormat, QTextCursor, QTextDocument

from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.text_pane import is_web_address
from qwendesk.ui.kit.theme import Theme
from qwendesk.ui.thread.formulas import SOURCE, FormulaShelf, formula_format
from qwendesk.ui.thread.markdown_math import written

FOOTNOTE = "#footnote-"
"""Begins the address of a link to a footnote's text."""
FOOTNOTE_REF = "#footnote-ref-"
"""Begins the address of a link back to the place that names it."""
_BODY = 14
_LINE_BREAK = "\u2028"
_UNDRAWN: Final = SOURCE + 4
"""Property of a formula's source: what is needed to put its drawing there."""


class _Undrawn(msgspec.Struct, frozen=True, eq=False):
    """A formula whose source is shown."""

    token: Token
    form: QTextCharFormat
    displayed: bool


def write_inline(
    cursor: QTextCursor,
    children: Sequence[Token],
    base: QTextCharFormat,
    theme: Theme,
    formulas: FormulaShelf | None = None,
) -> None:
    """Insert the tokens at `cursor`. A link becomes an anchor only for http and https; no picture is ever fetched."""
    stack = [base]
    for token in children:
        form = stack[-1]
        match token.type:
            case "text" | "text_special":
                cursor.insertText(token.content, form)
            case "softbreak" | "hardbreak":
                cursor.insertText(_LINE_BREAK, form)
            case "code_inline":
                cursor.insertText(token.content, _code(form, theme))
            case "strong_open" | "em_open" | "s_open":
                stack.append(_emphasis(form, token.type))
            case "link_open":
                stack.append(_link(form, str(token.attrGet("href") or ""), theme))
            case "image":
                address = str(token.attrGet("src") or "")
                cursor.insertText(tr("[picture: {0}]", token.content or address), _link(form, address, theme))
            case "footnote_ref":
                name = str(token.meta.get("name", ""))
                cursor.insertText(name, _footnote(form, name, theme))
            case _ if token.nesting == -1 and len(stack) > 1:
                stack.pop()
            case _ if token.type.startswith("math"):
                write_formula(cursor, token, form, theme, formulas, displayed=token.type == "math_inline_double")
            case _:
                continue


def write_formula(
    cursor: QTextCursor,
    token: Token,
    form: QTextCharFormat,
    theme: Theme,
    formulas: FormulaShelf | None,
    *,
    displayed: bool,
) -> None:
    """The formula drawn; its source in mono while it is not drawn yet or cannot be."""
    drawing = formulas.get(token.content, displayed=displayed) if formulas is not None else None
    if drawing is None:
        source = _mono(form, theme)
        source.setProperty(_UNDRAWN, _Undrawn(token, form, displayed))
        cursor.insertText(_LINE_BREAK.join(token.content.strip().splitlines()), source)
        return
    size = int(form.font().pixelSize())
    size = size if size > 0 else theme.px(_BODY)
    color = form.foreground().color().name()
    cursor.insertText("\ufffc", formula_format(drawing, written(token), form, round(size * 1.15), color))


def draw_formulas(document: QTextDocument, theme: Theme, formulas: FormulaShelf) -> list[tuple[int, int]]:
    """Put drawings where sources stand, as far as they are there by now. The rest of the document stays as it is.

    Returns each place that changed and by how many characters, the last place first.
    """
    places: list[tuple[int, int, _Undrawn]] = []
    block = document.begin()
    while block.isValid():
        parts = block.begin()
        while not parts.atEnd():
            fragment = parts.fragment()
            undrawn = fragment.charFormat().property(_UNDRAWN)
            if isinstance(undrawn, _Undrawn):
                places.append((fragment.position(), fragment.length(), undrawn))
            parts += 1
        block = block.next()
    changed = []
    cursor = QTextCursor(document)
    cursor.beginEditBlock()
    for position, length, undrawn in reversed(places):
        if formulas.get(undrawn.token.content, displayed=undrawn.displayed) is None:
            continue
        cursor.setPosition(position)
        cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        write_formula(cursor, undrawn.token, undrawn.form, theme, formulas, displayed=undrawn.displayed)
        if undrawn.token.type != "math_inline_double" and undrawn.displayed:
            centre_formula(cursor)
        changed.append((position, cursor.position() - position - length))
    cursor.endEditBlock()
    return changed


def centre_formula(cursor: QTextCursor) -> None:
    """A displayed formula that is a block of its own stands in the middle of the column, but not inside a list.

    Its line is as tall as it is: the air between lines of text is a share of their height, and would be a lot here.
    """
    form = cursor.blockFormat()
    form.setLineHeight(100, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    if not form.indent() and cursor.currentList() is None:
        form.setAlignment(Qt.AlignmentFlag.AlignHCenter)
    cursor.setBlockFormat(form)


def _emphasis(form: QTextCharFormat, kind: str) -> QTextCharFormat:
    changed = QTextCharFormat(form)
    if kind == "strong_open":
        changed.setFontWeight(QFont.Weight.Bold)
    elif kind == "em_open":
        changed.setFontItalic(True)
    else:
        changed.setFontStrikeOut(True)
    return changed


def _link(form: QTextCharFormat, address: str, theme: Theme) -> QTextCharFormat:
    changed = QTextCharFormat(form)
    if is_web_address(address):
        changed.setAnchor(True)
        changed.setAnchorHref(address)
        changed.setToolTip(address)
        changed.setForeground(theme.color("text_link"))
        changed.setFontUnderline(True)
    return changed


def _footnote(form: QTextCharFormat, name: str, theme: Theme) -> QTextCharFormat:
    changed = QTextCharFormat(form)
    changed.setAnchor(True)
    changed.setAnchorHref(FOOTNOTE + name)
    changed.setAnchorNames([FOOTNOTE_REF[1:] + name])
    changed.setToolTip(tr("Footnote {0}", name))
    changed.setForeground(theme.color("text_link"))
    changed.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignSuperScript)
    return changed


def _mono(form: QTextCharFormat, theme: Theme) -> QTextCharFormat:
    changed = QTextCharFormat(form)
    mono = theme.mono_font(13)
    changed.setFontFamilies(mono.families())
    changed.setProperty(QTextCharFormat.Property.FontPixelSize.value, mono.pixelSize())
    return changed


def _code(form: QTextCharFormat, theme: Theme) -> QTextCharFormat:
    changed = _mono(form, theme)
    changed.setBackground(theme.color("code_inline"))
    return changed
