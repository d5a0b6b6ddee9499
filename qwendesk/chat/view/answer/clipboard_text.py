"""Text for the clipboard: a selection in an answer, or a whole message. Formulas are copied as source."""

from collections.abc import Iterator, Sequence
from typing import Literal

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication, QTextCharFormat, QTextCursor, QTextDocument, QTextFormat, QTextTable

from qwendesk.chat.view.answer.formulas import SOURCE
from qwendesk.chat.view.answer.markdown_stream import MarkdownStream, slices

_OBJECT = "\ufffc"


def plain_text(cursor: QTextCursor) -> str:
    """Return the selected text, with formulas as source."""
    text = cursor.selectedText()
    sources = iter(_formulas(cursor, text))
    parts = text.split(_OBJECT)
    joined = parts[0] + "".join(next(sources) + part for part in parts[1:])
    lines = joined.replace("\u2029", "\n").replace("\u2028", "\n").replace("\ufdd0", "\n").replace("\ufdd1", "\n")
    return lines.replace("\u00a0", " ")


def rich_text(cursor: QTextCursor) -> str:
    """Return the selected text as HTML, with formulas as source."""
    sources = iter(_formulas(cursor, cursor.selectedText()))
    parts = cursor.selection().toHtml().split(_OBJECT)
    return parts[0] + "".join(_escaped(next(sources, "")) + part for part in parts[1:])


def markdown_of(sources: Sequence[str]) -> str:
    """Return the sources of blocks as one text."""
    return "\n\n".join(source.strip("\n") for source in sources if source.strip())


def _formulas(cursor: QTextCursor, text: str) -> list[str]:
    """Return the source of each formula in the selected `text`.

    Doesn't ask a cursor for the formats, because that would search a whole line for each formula.
    """
    found: list[str] = []
    start, end = cursor.selectionStart(), cursor.selectionEnd()
    block = cursor.document().findBlock(start)
    while _OBJECT in text and block.isValid() and block.position() < end:
        parts = block.begin()
        while not parts.atEnd():
            fragment = parts.fragment()
            if _OBJECT in fragment.text():
                # Positions in a document count UTF-16 code units.
                units = fragment.text().encode("utf-16-le", "surrogatepass")
                first, last = max(0, start - fragment.position()), max(0, end - fragment.position())
                selected = units[2 * first : 2 * last].decode("utf-16-le", "surrogatepass")
                found += selected.count(_OBJECT) * [str(fragment.charFormat().property(SOURCE) or "")]
            parts += 1
        block = block.next()
    return found


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


Form = Literal["markdown", "plain", "rich"]
_RULES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
# A message with up to this many characters is converted at once, a longer one block by block.
_AT_ONCE = 8_000


def copy_markdown(markdown: str) -> None:
    """Copy the Markdown source of a message."""
    QGuiApplication.clipboard().setText(markdown)


def copy_in_steps(markdown: str, form: Form) -> Iterator[None]:
    """Copy a message; a long one in steps. It is on the clipboard after the last step.

    Every form has formulas as source. Rich text includes plain text.
    """
    content = QMimeData()
    if form == "markdown":
        content.setText(markdown)
    else:
        plain, rich = [], []
        for document in _documents(markdown):
            plain.append(document.toPlainText().replace("\ufffc", ""))
            if form == "rich":
                rich.append(document.toHtml())
            yield
        content.setText("\n".join(plain))
        if form == "rich":
            content.setHtml("\n".join(rich))
    QGuiApplication.clipboard().setMimeData(content)


def _documents(markdown: str) -> Iterator[QTextDocument]:
    """Yield the whole message, or each block of a long one. Qt needs half a minute for a table of 20,000 rows."""
    if len(markdown) <= _AT_ONCE:
        yield _document(markdown)
        return
    stream = MarkdownStream()
    for part in slices(markdown):
        for block in stream.iter_finished(part):
            yield _document(block.source, is_continuation=block.is_continuation)
    for block in stream.iter_remaining():
        yield _document(block.source, is_continuation=block.is_continuation)


def _replace_pictures(document: QTextDocument) -> None:
    """Put the words for each picture in its place: the program that it is pasted into would load it from anywhere."""
    cursor = document.find(_OBJECT)
    while not cursor.isNull():
        picture = cursor.charFormat().toImageFormat()
        words = picture.property(QTextFormat.Property.ImageAltText) or picture.name()
        cursor.insertText(words, QTextCharFormat())
        cursor = document.find(_OBJECT, cursor)


def _document(markdown: str, *, is_continuation: bool = False) -> QTextDocument:
    """Return a block as a document. If `is_continuation`, leave out the head of a table: an earlier piece has it."""
    document = QTextDocument()
    document.setMarkdown(markdown, _RULES)
    _replace_pictures(document)
    for frame in document.rootFrame().childFrames() if is_continuation else ():
        if isinstance(frame, QTextTable):
            frame.removeRows(0, 1)
    return document
