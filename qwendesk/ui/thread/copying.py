"""A message on the clipboard: as the Markdown it is, as plain text, or as rich text for a word processor."""

from typing import Literal

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication, QTextDocument

Form = Literal["markdown", "plain", "rich"]
_RULES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML


def clipboard_content(markdown: str, form: Form) -> QMimeData:
    """Formulas stay their source in every form. Rich text carries the plain one beside it."""
    content = QMimeData()
    if form == "markdown":
        content.setText(markdown)
        return content
    document = QTextDocument()
    document.setMarkdown(markdown, _RULES)
    content.setText(document.toPlainText().replace("\ufffc", ""))
    if form == "rich":
        content.setHtml(document.toHtml())
    return content


def copy(markdown: str, form: Form = "markdown") -> None:
    QGuiApplication.clipboard().setMimeData(clipboard_content(markdown, form))
