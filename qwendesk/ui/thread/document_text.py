"""What is copied out of an answer's text: formulas as their source, in plain and in rich text."""

from collections.abc import Sequence

from PySide6.QtGui import QTextCursor

from qwendesk.ui.thread.formulas import SOURCE

_OBJECT = "\ufffc"


def plain_text(cursor: QTextCursor) -> str:
    """The selected text; a drawn formula is there as it was written."""
    text = cursor.selectedText()
    sources = iter(_formulas(cursor, text))
    parts = text.split(_OBJECT)
    joined = parts[0] + "".join(next(sources) + part for part in parts[1:])
    lines = joined.replace("\u2029", "\n").replace("\u2028", "\n").replace("\ufdd0", "\n").replace("\ufdd1", "\n")
    return lines.replace("\u00a0", " ")


def rich_text(cursor: QTextCursor) -> str:
    """The selected text as HTML; a drawn formula is there as it was written."""
    sources = iter(_formulas(cursor, cursor.selectedText()))
    parts = cursor.selection().toHtml().split(_OBJECT)
    return parts[0] + "".join(_escaped(next(sources, "")) + part for part in parts[1:])


def markdown_of(sources: Sequence[str]) -> str:
    """Blocks' sources as one text."""
    return "\n\n".join(source.strip("\n") for source in sources if source.strip())


def _formulas(cursor: QTextCursor, text: str) -> list[str]:
    place = QTextCursor(cursor.document())
    found = []
    for index, letter in enumerate(text):
        if letter == _OBJECT:
            units = len(text[:index].encode("utf-16-le")) // 2  # a document counts as UTF-16 does
            place.setPosition(cursor.selectionStart() + units + 1)
            found.append(str(place.charFormat().property(SOURCE) or ""))
    return found


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
