"""Writes the inside of a Markdown paragraph: emphasis, code, links, formulas' source, pictures by name."""

from collections.abc import Sequence

from markdown_it.token import Token
from PySide6.QtGui import QFont, QTextCharFormat, QTextCursor

from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme import Theme

_LINE_BREAK = "\u2028"


def write_inline(cursor: QTextCursor, children: Sequence[Token], base: QTextCharFormat, theme: Theme) -> None:
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
            case _ if token.nesting == -1 and len(stack) > 1:
                stack.pop()
            case _ if token.type.startswith("math"):
                cursor.insertText(token.content, _mono(form, theme))
            case _:
                continue


def is_web_address(address: str) -> bool:
    """Only these are links; anything else stays text."""
    return address.lower().startswith(("http://", "https://"))


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
