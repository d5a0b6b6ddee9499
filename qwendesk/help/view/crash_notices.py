"""Offers the crash reports of earlier runs in a notice and a dialog, and saves a report when the engine crashes."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from qwendesk.core.failures import EngineExit
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.help.crash_reports import CrashReport, CrashReports
from qwendesk.widgets.actions import install
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.file_dialogs import ask_where_to_save
from qwendesk.widgets.notice import Notice, NoticeAction
from qwendesk.widgets.question_dialog import Dialog


class CrashNotices(QObject):
    """Announces each report of an earlier run once. All of them stay in the menu until they are deleted.

    Create this after `reports.begin()`, because it reads the reports of earlier runs at once.
    """

    notice_asked = Signal(object)
    """A Notice to show above every page."""
    error_found = Signal(str, str)
    """Title and sentence."""

    def __init__(self, window: QWidget, engine: Observed[EngineState], reports: CrashReports) -> None:
        super().__init__(window)
        self._window, self._reports = window, reports
        self._engine_exit: EngineExit | None = engine.value.engine_exit
        self._new = reports.unannounced()
        self._notice: Notice | None = None
        install(window, {"crash_reports": self.show_reports})
        bind(self, engine, self._on_engine)

    def offer(self) -> None:
        """Announce the new reports of earlier runs, if there are any."""
        if not self._new:
            return
        self._notice = Notice(
            "crash",
            _title(self._new),
            tr(
                "A report was saved on this PC only. Your saved chats are unaffected. The report holds versions, "
                "options and the last lines of the log, but no message text. You can open it later from the menu."
            ),
            (
                NoticeAction("show", tr("Show report"), tr("Read the report"), self.show_reports, stays=True),
                NoticeAction("save", tr("Save report…"), tr("Save it as a text file"), self.ask_save, stays=True),
                NoticeAction("forget", tr("Delete report"), tr("Delete it unread"), self._reports.dismiss),
            ),
        )
        self._notice.destroyed.connect(self._forget_notice)
        self.notice_asked.emit(self._notice)
        self._reports.mark_announced()

    def show_reports(self) -> None:
        """Show all reports, also those that were announced long ago."""
        reports = self._all()
        dialog = CrashDialog(reports, self._window)
        dialog.save_asked.connect(self.ask_save)
        dialog.delete_asked.connect(self._delete)
        dialog.copy_asked.connect(lambda: QGuiApplication.clipboard().setText(joined(reports)))
        dialog.open()

    def ask_save(self) -> None:
        title = tr("Save report")
        ask_where_to_save(self._window, "crash.save_dialog", title, "qwendesk-report.txt", self.save)

    def save(self, path: str) -> None:
        """Write the reports as text; emit `error_found` if that fails."""
        try:
            self._reports.save_all(self._all(), path)
        except OSError as error:
            sentence = tr("{0} couldn't be saved: {1}. Choose another folder.", path, error.strerror or error)
            self.error_found.emit(tr("Report not saved"), sentence)

    def _all(self) -> tuple[CrashReport, ...]:
        return tuple(report for _, report in self._reports.pending())

    def _delete(self) -> None:
        self._reports.dismiss()
        if self._notice is not None:
            self._notice.end()

    def _forget_notice(self) -> None:
        self._notice = None

    def _on_engine(self, state: EngineState) -> None:
        before, self._engine_exit = self._engine_exit, state.engine_exit
        if state.engine_exit is not None and state.engine_exit is not before:
            self._reports.save_engine_crash(state.engine_exit, state.requested)


def _title(reports: tuple[CrashReport, ...]) -> str:
    kinds = {report.of for report in reports}
    if kinds == {"engine"}:
        return tr("The engine stopped unexpectedly last time")
    return tr("QwenDesk didn't close properly last time")


def safe_notice() -> Notice:
    """Return the notice to show after a start with --safe."""
    sentence = tr(
        "QwenDesk started with default settings and an empty chat, on the CPU only and without a model. Settings you "
        "change now apply until you close it, and your settings file isn't changed. To leave safe mode, start QwenDesk "
        "as usual."
    )
    return Notice("safe", tr("Safe mode"), sentence)


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
