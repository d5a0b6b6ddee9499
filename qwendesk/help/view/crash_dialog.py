"""The dialog with all crash reports, as the text that a user would send."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.help.crash_reports import CrashReport
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.question_dialog import Dialog


class CrashDialog(Dialog):
    """Shows the reports, and emits a signal for each action that the user chooses."""

    save_asked = Signal()
    copy_asked = Signal()
    delete_asked = Signal()

    def __init__(self, reports: Sequence[CrashReport], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("crash.dialog")
        self.setWindowTitle(tr("Crash report"))
        self.setModal(True)
        self.resize(min(760, parent.width() - 40), min(520, parent.height() - 40))
        words = QLabel(
            tr("This is the complete report. It stays on this PC unless you send it to someone.")
            if reports
            else tr("There are no crash reports.")
        )
        words.setObjectName("crash.words")
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
        column.addLayout(self._buttons(has_reports=bool(reports)))
        self.finished.connect(self.deleteLater)

    def _buttons(self, *, has_reports: bool) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        for name, label, tip, run in (
            ("copy", tr("Copy"), tr("Copy the report"), self.copy_asked.emit),
            ("save_as", tr("Save…"), tr("Save the report as a text file"), self.save_asked.emit),
            ("delete", tr("Delete"), tr("Delete the report"), self._delete),
        ):
            button = QPushButton(label)
            describe(button, f"crash.{name}", label, tip)
            button.clicked.connect(lambda _checked=False, run=run: run())
            button.setAutoDefault(False)
            button.setEnabled(has_reports)
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
    """Return all reports as one text, the newest first."""
    return "\n\n".join(report.text() for report in reversed(reports))
