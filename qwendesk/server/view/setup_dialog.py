"""SetupDialog: the settings with which a program uses the server whenever it is started, to be copied."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.server.setups.programs import Program, Target
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.question_dialog import Dialog

_SIZE = (620, 520)


class SetupDialog(Dialog):
    """Deletes itself when it is closed."""

    def __init__(self, parent: QWidget, program: Program, file: Path, target: Target) -> None:
        super().__init__(parent)
        text, key = program.settings_for(target), target.key
        self.setObjectName("serve.setup")
        title = tr("Settings for {0}", program.name)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(10)
        column.addWidget(self._label("title", title, "heading"))
        column.addWidget(self._label("file", _next_step(program, file), "dim"))
        shown = QPlainTextEdit(text.replace(key, f"{key[:3]}••••••••{key[-4:]}"))
        shown.setReadOnly(True)
        shown.setProperty("kind", "details")
        shown.setTabChangesFocus(True)
        describe(shown, "serve.setup.text", tr("The settings"), tr("The key is hidden here only"))
        column.addWidget(shown, 1)
        if key in text:
            warning = tr("The file then holds the key in plain text: whoever reads it can use your server.")
            column.addWidget(self._label("warning", warning, "notice"))
        copy = TextButton(tr("Copy"), kind="primary")
        describe(copy, "serve.setup.copy", tr("Copy"), tr("Copy the settings, with the whole key"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        close = TextButton(tr("Close"))
        describe(close, "serve.setup.close", close.text(), shortcut="Esc")
        close.clicked.connect(self.reject)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addStretch(1)
        row.addWidget(copy)
        row.addWidget(close)
        column.addLayout(row)
        copy.setFocus()
        self.resize(min(_SIZE[0], parent.width() - 40), min(_SIZE[1], parent.height() - 40))

    def _label(self, name: str, text: str, kind: str) -> QLabel:
        label = QLabel(text)
        label.setObjectName(f"serve.setup.{name}")
        label.setProperty("kind", kind)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        label.setWordWrap(True)
        return label


def _next_step(program: Program, file: Path) -> str:
    """Return what the user does with the settings."""
    if program.id == "zed":
        return tr(
            "Open the settings of Zed (zed: open settings) and merge this into them. Then paste the key at QwenDesk in "
            "Zed's list of LLM providers. We haven't tried Zed; tell us if it works."
        )
    return tr("To use QwenDesk whenever {0} runs, also in an editor, merge this into {1}.", program.name, file)
