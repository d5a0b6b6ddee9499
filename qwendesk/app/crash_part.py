"""Joins crash reports to the window: the engine's deaths are kept, and the next start offers what is there."""

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from qwendesk.core.failures import EngineDeath
from qwendesk.services.crash_reports import CrashReport, CrashReports
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.frame.crash_dialog import CrashDialog, joined
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.kit.notice import Notice, NoticeAction
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class CrashPart(QObject):
    """Made at the start of a window, after `reports.begin()`."""

    def __init__(self, keeper: ThemeKeeper, window: MainWindow, engine: EngineBridge, reports: CrashReports) -> None:
        super().__init__(window)
        self._keeper, self._window, self._engine, self._reports = keeper, window, engine, reports
        self._death: EngineDeath | None = engine.state.death
        self._earlier = tuple(report for _, report in reports.pending())
        self._notice: Notice | None = None
        engine.changed.connect(self._on_engine)

    def offer(self) -> None:
        """Says what earlier runs left, if they did."""
        if not self._earlier:
            return
        self._notice = Notice(
            self._keeper,
            "crash",
            _title(self._earlier),
            tr(
                "A report is on this PC alone: versions, options and the last lines of the log, no message text. "
                "Nothing was sent. Your chats are as they were saved."
            ),
            (
                NoticeAction("show", tr("Show report"), tr("Read what was noted"), self.show_reports, stays=True),
                NoticeAction("save", tr("Save report…"), tr("Write it to a text file"), self.ask_save, stays=True),
                NoticeAction("forget", tr("Delete report"), tr("Delete it without looking"), self._reports.dismiss),
            ),
        )
        self._window.add_notice(self._notice)

    def show_reports(self) -> None:
        dialog = CrashDialog(self._earlier, self._window)
        dialog.save_asked.connect(self.ask_save)
        dialog.delete_asked.connect(self._delete)
        dialog.copy_asked.connect(lambda: QGuiApplication.clipboard().setText(joined(self._earlier)))
        dialog.open()

    def ask_save(self) -> None:
        dialog = QFileDialog(self._window, tr("Save report"))
        dialog.setObjectName("crash.save_dialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("txt")
        dialog.selectFile("qwendesk-report.txt")
        dialog.fileSelected.connect(self.save)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def save(self, path: str) -> None:
        """Write the reports as text, or say why that is not possible."""
        try:
            self._reports.save_all(self._earlier, path)
        except OSError as error:
            sentence = tr("{0} could not be written: {1}. Choose another folder.", path, error.strerror or error)
            self._window.report(tr("Report not saved"), sentence)

    def _delete(self) -> None:
        self._reports.dismiss()
        if self._notice is not None:
            self._notice.end()
            self._notice = None

    def _on_engine(self) -> None:
        state = self._engine.state
        before, self._death = self._death, state.death
        if state.death is not None and state.death is not before:
            self._reports.engine_died(state.death, state.wanted)


def _title(reports: tuple[CrashReport, ...]) -> str:
    kinds = {report.of for report in reports}
    if kinds == {"engine"}:
        return tr("The engine stopped unexpectedly the last time")
    return tr("QwenDesk did not end in order the last time")


def safe_notice(keeper: ThemeKeeper) -> Notice:
    """What a start with --safe says."""
    sentence = tr(
        "Defaults instead of your settings, the processor alone, no model loaded. What you change in the settings "
        "holds until the app ends; your settings file stays as it is. Start QwenDesk as usual to leave safe mode."
    )
    return Notice(keeper, "safe", tr("Safe mode"), sentence)
