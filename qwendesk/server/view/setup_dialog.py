"""SetupDialog: shows what goes into which file before it is written."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.server.setups.service import Preview
from qwendesk.server.view.setup_texts import next_step
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.question_dialog import Dialog

_SIZE = (620, 560)


class SetupDialog(Dialog):
    """Deletes itself when it is closed."""

    write_asked = Signal()

    def __init__(self, parent: QWidget, preview: Preview, key: str) -> None:
        super().__init__(parent)
        self._text = preview.text
        self.setObjectName("serve.setup")
        title = tr("Set up {0}", preview.program.name)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(10)
        column.addWidget(self._label("title", title, "heading"))
        column.addWidget(self._label("file", _what_happens(preview), "dim"))
        shown = QPlainTextEdit(preview.text.replace(key, f"{key[:3]}••••••••{key[-4:]}"))
        shown.setReadOnly(True)
        shown.setProperty("kind", "details")
        shown.setTabChangesFocus(True)
        describe(shown, "serve.setup.text", tr("The entries"), tr("The key is hidden here only"))
        column.addWidget(shown, 1)
        if key in preview.text:
            warning = tr("The file holds the key in plain text: whoever reads it can use your server.")
            column.addWidget(self._label("warning", warning, "notice"))
        column.addWidget(self._label("next", next_step(preview.program, preview.file), "small"))
        column.addLayout(self._buttons(can_write=not preview.obstacle))
        self._first.setFocus()
        self.resize(min(_SIZE[0], parent.width() - 40), min(_SIZE[1], parent.height() - 40))

    def _buttons(self, *, can_write: bool) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addStretch(1)
        write = TextButton(tr("Write"), kind="primary")
        describe(write, "serve.setup.write", tr("Write"), tr("Put the entries into the file"))
        write.clicked.connect(self.write_asked)
        write.clicked.connect(self.accept)
        write.setVisible(can_write)
        copy = TextButton(tr("Copy"), kind="" if can_write else "primary")
        describe(copy, "serve.setup.copy", tr("Copy"), tr("Copy the entries, with the whole key"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._text))
        close = TextButton(tr("Cancel") if can_write else tr("Close"))
        describe(close, "serve.setup.close", close.text(), shortcut="Esc")
        close.clicked.connect(self.reject)
        for button in (copy, write, close):
            row.addWidget(button)
        self._first = write if can_write else copy
        return row

    def _label(self, name: str, text: str, kind: str) -> QLabel:
        label = QLabel(text)
        label.setObjectName(f"serve.setup.{name}")
        label.setProperty("kind", kind)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        label.setWordWrap(True)
        return label


def _what_happens(preview: Preview) -> str:
    if preview.program.only_shown:
        return preview.obstacle
    if preview.obstacle:
        return tr("{0} Merge this into {1} yourself.", preview.obstacle, preview.file)
    if preview.exists:
        return tr(
            "These entries go into {0}. All else in it stays, and a copy of it as it is now is kept.", preview.file
        )
    return tr("These entries go into a new file, {0}.", preview.file)
