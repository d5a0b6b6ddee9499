"""Newer versions of QwenDesk in the window: a card of the settings, and a notice once for each version."""

from collections.abc import Callable

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from qwendesk import __version__
from qwendesk.core.number_format import show_date
from qwendesk.core.translation import tr
from qwendesk.help.app_updates import AppUpdates, Release, UpdateState, latest_page
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.notice import Notice, NoticeAction
from qwendesk.widgets.rows.titled_card import TitledCard

# The settings show more of what is new, and the page all of it.
_LINES_IN_NOTICE = 4
_WORDS = "update updates version newer release new qwendesk"


class UpdatesSection(TitledCard):
    """Says which version this is and which is newer, and checks when asked."""

    def __init__(self, updates: AppUpdates) -> None:
        super().__init__("settings.version", tr("Version"), _WORDS)
        self._status, self._notes = QLabel(), QLabel()
        self._status.setObjectName("settings.version.status")
        self._notes.setObjectName("settings.version.notes")
        self._notes.setProperty("kind", "small")
        # A long word, such as an address, is cut off and doesn't widen the page.
        self._notes.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._check, self._page = TextButton(tr("Check for updates")), TextButton(tr("Open download page"))
        tip = tr("Ask whether there is a newer version of QwenDesk. Nothing is installed.")
        describe(self._check, "settings.version.check", self._check.text(), tip)
        describe(self._page, "settings.version.page", self._page.text(), tr("Open the page in your browser"))
        self._check.clicked.connect(updates.check)
        self._page.clicked.connect(lambda: _open_page(updates))
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._check)
        buttons.addWidget(self._page)
        buttons.addStretch(1)
        box = QWidget()
        column = QVBoxLayout(box)
        column.setContentsMargins(16, 8, 16, 8)
        column.setSpacing(8)
        for label in (self._status, self._notes):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            column.addWidget(label)
        column.addLayout(buttons)
        weekly = tr("QwenDesk also checks once a week if “{0}” is on.", tr("Check for updates to model files weekly"))
        permission = QLabel(weekly)
        permission.setProperty("kind", "small")
        permission.setWordWrap(True)
        column.addWidget(permission)
        self.add(box)
        bind(self, updates.state, self._show)

    def _show(self, state: UpdateState) -> None:
        self._status.setText(_status_text(state))
        self._notes.setText(state.newer.notes if state.newer is not None else "")
        self._notes.setVisible(bool(self._notes.text()))
        self._page.setVisible(state.newer is not None)
        self._check.setEnabled(not state.is_checking and not state.is_offline)


def announce_updates(window: QWidget, updates: AppUpdates, show: Callable[[Notice], None]) -> None:
    """Call `show` with a notice once for each newer version that was found without the user's asking."""

    def on_state(state: UpdateState) -> None:
        if state.newer is not None and state.newer.version != state.announced:
            show(_notice(state.newer, updates))
            updates.mark_announced()

    bind(window, updates.state, on_state)


def _notice(release: Release, updates: AppUpdates) -> Notice:
    page = NoticeAction(
        "page", tr("Open download page"), tr("Open the page in your browser"), lambda: _open_page(updates)
    )
    first = "\n".join(release.notes.splitlines()[:_LINES_IN_NOTICE])
    return Notice("update", _available(release), first, (page,))


def _available(release: Release) -> str:
    return tr("QwenDesk {0} is available ({1})", release.version, show_date(release.date))


def _status_text(state: UpdateState) -> str:
    if state.is_checking:
        return tr("Checking for updates…")
    if state.newer is not None:
        return tr("{0}. You have {1}.", _available(state.newer), __version__)
    if state.problem and state.tried is not None:
        return tr("The check of {0} failed. {1}", show_date(state.tried.astimezone().date()), state.problem)
    if state.done is not None:
        day = show_date(state.done.astimezone().date())
        return tr("You have QwenDesk {0}, the newest version. Checked on {1}.", __version__, day)
    return tr("You have QwenDesk {0}.", __version__)


def _open_page(updates: AppUpdates) -> None:
    QDesktopServices.openUrl(QUrl(latest_page(updates.releases)))
