"""What an answer shows, with tags for its formats: "<b>", "<i>", "<s>", "<sub>", "<sup>", "<kbd>" and "<a>".

A "<" of the text itself is "&lt;".
"""

from PySide6.QtGui import QFont, QTextCharFormat, QTextDocument

from qwendesk.chat.view.answer.answer_view import AnswerView

_ALIGNMENTS = {
    QTextCharFormat.VerticalAlignment.AlignSubScript: "sub",
    QTextCharFormat.VerticalAlignment.AlignSuperScript: "sup",
}


def drawn_text(view: AnswerView) -> str:
    """Return the text of all sections of an answer that is shown whole."""
    return "\n".join(_of_document(section.pane.document()) for section in view.sections if section.pane is not None)


def _of_document(document: QTextDocument) -> str:
    lines = []
    block = document.begin()
    while block.isValid():
        line = ""
        parts = block.begin()
        while not parts.atEnd():
            fragment = parts.fragment()
            line += _tagged(fragment.text(), fragment.charFormat())
            parts += 1
        if line:
            lines.append(line)
        block = block.next()
    return "\n".join(lines)


def _tagged(text: str, form: QTextCharFormat) -> str:
    text = text.replace("\u2028", "\n").replace("<", "&lt;")
    tags = {
        "b": form.fontWeight() >= QFont.Weight.Bold,
        "i": form.fontItalic(),
        "s": form.fontStrikeOut(),
        "kbd": form.hasProperty(QTextCharFormat.Property.BackgroundBrush.value),
        "a": form.isAnchor(),
    }
    names = [name for name, is_set in tags.items() if is_set]
    names += [_ALIGNMENTS[form.verticalAlignment()]] if form.verticalAlignment() in _ALIGNMENTS else []
    for name in reversed(names):
        text = f"<{name}>{text}</{name}>"
    return text
