"""Writes the inline content of Markdown: emphasis, code, links, formulas, and the names of images."""

from collections.abc import Sequence
from typing import Final

import msgspec
from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QTextBlockFormat, QTextCharFormat, QTextCursor, QTextDocument

from qwendesk.chat.view.answer.formulas import SOURCE, FormulaCache, formula_format
from qwendesk.chat.view.answer.markdown_blocks import formula_source
from qwendesk.chat.view.answer.source_links import SourceLinks
from qwendesk.core.translation import tr
from qwendesk.widgets.text_pane import is_web_address
from qwendesk.widgets.theme import Theme

# Prefix of links to the text of a footnote.
FOOTNOTE = "#footnote-"
# Prefix of links back to the reference of a footnote.
FOOTNOTE_REF = "#footnote-ref-"
_BODY = 14
_LINE_BREAK = "\u2028"
# Property of a formula shown as source: the _Undrawn with which it can be replaced by its drawing.
_UNDRAWN: Final = SOURCE + 4
_RAISED: Final = {
    "sub_open": QTextCharFormat.VerticalAlignment.AlignSubScript,
    "sup_open": QTextCharFormat.VerticalAlignment.AlignSuperScript,
}


class _Undrawn(msgspec.Struct, frozen=True, eq=False):
    """A formula that is shown as source."""

    token: Token
    form: QTextCharFormat
    displayed: bool


def write_inline(
    cursor: QTextCursor,
    children: Sequence[Token],
    base: QTextCharFormat,
    theme: Theme,
    formulas: FormulaCache | None,
    sources: SourceLinks | None,
) -> None:
    """Insert inline tokens at `cursor`. No image is ever fetched.

    Anchors are only http and https links, footnotes, and citations that `sources` knows.
    """
    stack = [base]
    for token in children:
        form = stack[-1]
        match token.type:
            case "text" if sources is not None and "[" in token.content and not form.isAnchor():
                sources.write(cursor, token.content, form, theme)
            case "text" | "text_special":
                cursor.insertText(token.content, form)
            case "softbreak" | "hardbreak":
                cursor.insertText(_LINE_BREAK, form)
            case "code_inline":
                cursor.insertText(token.content, _code(form, theme))
            case "strong_open" | "em_open" | "s_open" | "sub_open" | "sup_open":
                stack.append(_emphasis(form, token.type))
            case "kbd_open":
                stack.append(_code(form, theme))
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
    formulas: FormulaCache | None,
    *,
    displayed: bool,
) -> None:
    """Insert a formula as a drawing, or as source in a monospaced font until it is available."""
    drawing = formulas.get(token.content, displayed=displayed) if formulas is not None else None
    if drawing is None:
        source = _mono(form, theme)
        source.setProperty(_UNDRAWN, _Undrawn(token, form, displayed))
        cursor.insertText(_LINE_BREAK.join(token.content.strip().splitlines()), source)
        return
    size = int(form.font().pixelSize())
    size = size if size > 0 else theme.px(_BODY)
    color = form.foreground().color().name()
    cursor.insertText("\ufffc", formula_format(drawing, formula_source(token), form, round(size * 1.15), color))


def draw_formulas(document: QTextDocument, theme: Theme, formulas: FormulaCache) -> list[tuple[int, int]]:
    """Replace formulas shown as source by their drawings, as far as available.

    Return the position of each change and the change in length, last position first.
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
    """Centre a displayed formula that is a block of its own, except in lists.

    Its line gets no extra spacing, because that is proportional to the line's height and would be large here.
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
    elif kind in _RAISED:
        changed.setVerticalAlignment(_RAISED[kind])
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
