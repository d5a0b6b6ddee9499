"""The reports that earlier runs left, as the text they would be sent as."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from qwendesk.services.crash_reports import CrashReport
from qwendesk.ui.kit.buttons import describe
from qwendesk.ui.kit.text import tr


class CrashDialog(QDialog):
    """Shows them and asks what to do; does nothing itself."""

    save_asked = Signal()
    copy_asked = Signal()
    delete_asked = Signal()

    def __init__(self, reports: Sequence[CrashReport], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("crash.dialog")
        self.setWindowTitle(tr("Crash report"))
        self.setModal(True)
        self.resize(min(760, parent.width() - 40), min(520, parent.height() - 40))
        words = QLabel(tr("This is all there is. Nothing of it leaves this PC unless you send it to somebody."))
        words.setWordWrap(True)
        text = QPlainTextEdit(joined(reports))
        text.setReadOnly(True)
        text.setTabChangesFocus(True)
        text.setProperty("kind", "details")
        text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        describe(text, "crash.text", tr("Crash report"))
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        column.addWidget(words)
        column.addWidget(text, 1)
        column.addLayout(self._buttons())
        self.finished.connect(self.deleteLater)

    def _buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        for name, label, tip, run in (
            ("copy", tr("Copy"), tr("Copy the report"), self.copy_asked.emit),
            ("save_as", tr("Save…"), tr("Write the report to a text file"), self.save_asked.emit),
            ("delete", tr("Delete"), tr("Delete the report"), self._delete),
        ):
            button = QPushButton(label)
            describe(button, f"crash.{name}", label, tip)
            button.clicked.connect(lambda _checked=False, run=run: run())
            button.setAutoDefault(False)
            row.addWidget(button)
        row.addStretch(1)
        close = QPushButton(tr("Close"))
        close.setProperty("kind", "primary")
        describe(close, "crash.close", tr("Close"), tr("Keep the report and close"), "Esc")
        close.clicked.connect(self.reject)
        close.setDefault(True)
        row.addWidget(close)
        return row

    def _delete(self) -> None:
        self.delete_asked.emit()
        self.accept()


def joined(reports: Sequence[CrashReport]) -> str:
    """All reports as one text, the newest first."""
    return "\n\n".join(report.text() for report in reversed(reports))
