"""The privacy section of the settings page: what is stored where, how to delete it, and what could not be deleted."""

import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QMessageBox, QVBoxLayout, QWidget

from qwendesk.core.translation import mark, tr
from qwendesk.core.units import show_bytes
from qwendesk.settings.deletion import DeletionLeftover, DeletionRequest, LinkedFolder, PrivacyService, StoredData
from qwendesk.widgets.actions import COMMANDS, keys_text
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.controls import CheckBox
from qwendesk.widgets.notice import Notice, NoticeAction
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.rows.titled_card import TitledCard
from qwendesk.widgets.tasks import window_tasks

# How many paths are listed.
_SHOWN = 8


def carry_out_deletion(privacy: PrivacyService, host: str) -> None:
    """Delete everything, as the user asked. Call this when no other part of the app is running."""
    logging.shutdown()
    logging.getLogger().handlers.clear()
    leftovers = privacy.carry_out(host)
    if leftovers:
        QMessageBox.warning(None, tr("Not everything could be deleted"), _lines(leftovers))


def leftover_notice(leftovers: Sequence[DeletionLeftover], open_privacy: Callable[[], None]) -> Notice:
    """Return the notice to show at the next start after an incomplete deletion."""
    again = NoticeAction("again", tr("Delete everything…"), tr("Open the privacy settings to try again"), open_privacy)
    sentence = tr("These were still there. Close other programs that use them, then try again.")
    return Notice("left_over", tr("Not everything could be deleted"), f"{sentence}\n{_lines(leftovers)}", (again,))


def _lines(leftovers: Sequence[DeletionLeftover]) -> str:
    lines = [f"{each.what}: {each.reason}" if each.reason else each.what for each in leftovers[:_SHOWN]]
    if len(leftovers) > _SHOWN:
        lines.append(tr("and {0} more", len(leftovers) - _SHOWN))
    return "\n".join(lines)


_WORDS = "privacy telemetry delete everything data stored incognito logs crash reports where chats files tracking"
KIND_TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "chats": mark("Chats and drafts"),
        "attachments": mark("Pictures and documents of chats"),
        "settings": mark("Settings, profiles and prompts"),
        "tools": mark("What tools changed in files, for Undo, and what you always allow"),
        "notes": mark("Notes about you"),
        "token": mark("Access token and keys, if there is no keyring"),
        "measured": mark("Measured speeds and the last model"),
        "downloads": mark("Download queue"),
        "catalog": mark("Catalog updates"),
        "templates": mark("Repaired chat templates"),
        "engines": mark("Installed engines"),
        "models": mark("Models in QwenDesk's own folder"),
        "logs": mark("Logs, without message text"),
        "crashes": mark("Crash reports, without message text"),
        "cache": mark("Cache"),
        "other": mark("Everything else"),
    }
)


class PrivacySection(TitledCard):
    """Updates the list of stored data each time it is shown."""

    def __init__(self, privacy: PrivacyService) -> None:
        super().__init__("settings.privacy", tr("Privacy"), _WORDS)
        self._privacy, self._tasks = privacy, window_tasks()
        box = QWidget()
        column = QVBoxLayout(box)
        column.setContentsMargins(16, 8, 16, 12)
        column.setSpacing(10)
        column.addWidget(
            _text(
                "settings.privacy.promise",
                tr(
                    "There is no telemetry: nothing counts or reports what you do. Your chats stay on this PC, unless "
                    "you choose a model on another server, which then gets what you write, or allow a tool to send "
                    "something, which you see first."
                ),
            )
        )
        column.addWidget(
            _text(
                "settings.privacy.connections",
                tr(
                    "QwenDesk connects only for what you ask for on the Models page: searches, downloads, checks of "
                    "model files; for models on servers that you add; and for the tools Web search and Read page and "
                    "MCP servers, which are off until you turn them on in a chat. If you turn on Check for updates to "
                    "model files weekly, above, it also asks Hugging Face once a week for the lists of files of the "
                    "models it recommends, and for new models of their uploaders, and GitHub for a newer engine. With "
                    "Offline, above, it connects to nothing on the Internet. Programs that you add as MCP servers "
                    "connect as they like."
                ),
            )
        )
        column.addWidget(
            _text(
                "settings.privacy.incognito",
                tr(
                    "An incognito chat ({0}) is never saved here, and neither are its drafts, pictures and documents. "
                    "It exists only in memory, and is gone when you open another chat or close QwenDesk. A model on "
                    "another server still gets what you write.",
                    keys_text(COMMANDS["new_incognito"].shortcut),
                ),
            )
        )
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(0, 1)
        column.addLayout(self._grid)
        delete = TextButton(tr("Delete everything…"))
        describe(
            delete,
            "settings.privacy.delete",
            tr("Delete everything…"),
            tr("Asks first, then deletes everything and closes QwenDesk"),
        )
        delete.clicked.connect(self.ask)
        row = QHBoxLayout()
        row.addWidget(delete)
        row.addStretch(1)
        column.addLayout(row)
        self.add(box)
        bind_field(self, privacy.state, lambda state: state.data, self._show)

    def ask(self) -> None:
        """Show what would be deleted and ask; nothing is deleted without confirmation."""
        state = self._privacy.state.value
        dialog = DeleteQuestion(state.data, state.links, self.window())
        dialog.confirmed.connect(self._privacy.request_deletion)
        dialog.open()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._tasks.can_start:
            self._tasks.start(self._privacy.refresh())

    def _show(self, data: tuple[StoredData, ...]) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for line, stored in enumerate(each for each in data if each.places):
            name, where, size = (
                _text(f"settings.privacy.{stored.kind}.{place}", text) for place, text in enumerate(_texts(stored))
            )
            for label in (where, size):
                label.setProperty("kind", "small")
            size.setWordWrap(False)
            where.setContentsMargins(0, 0, 0, 6)
            self._grid.addWidget(name, 2 * line, 0)
            self._grid.addWidget(size, 2 * line, 1)
            self._grid.addWidget(where, 2 * line + 1, 0, 1, 2)


class DeleteQuestion(Dialog):
    """Asks whether to delete everything. `confirmed` carries a DeletionRequest."""

    confirmed = Signal(object)

    def __init__(self, data: tuple[StoredData, ...], links: tuple[LinkedFolder, ...], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("privacy.dialog")
        self.setWindowTitle(tr("Delete everything"))
        self.setMaximumWidth(min(620, parent.width() - 40))
        there = [each for each in data if each.places and each.kind != "models"]
        lines = "\n".join(f"•  {tr(KIND_TEXTS[each.kind])} ({show_bytes(each.n_bytes)})" for each in there)
        models = next((each for each in data if each.kind == "models"), StoredData("models"))
        self._models = CheckBox(tr("Also the models in {0} ({1})", *_where(models)))
        describe(
            self._models, "privacy.models", self._models.text(), tr("Many GB of downloads. If off, they are kept.")
        )
        self._models.setVisible(bool(models.places))
        emptiable = [each for each in links if each.may_be_emptied]
        self._links = {each.link: _link_box(each, number) for number, each in enumerate(emptiable, 1)}
        yes = TextButton(tr("Delete and close"))
        describe(yes, "privacy.yes", tr("Delete and close"), tr("You can't undo this"))
        yes.clicked.connect(self._confirm)
        no = TextButton(tr("Cancel"), kind="primary")
        describe(no, "privacy.no", tr("Cancel"), tr("Keep everything"), "Esc")
        no.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(yes)
        buttons.addWidget(no)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 18)
        column.setSpacing(12)
        title = QLabel(tr("Delete everything QwenDesk has stored?"))
        title.setProperty("kind", "heading")
        column.addWidget(title)
        column.addWidget(_text("privacy.list", lines or tr("Nothing is stored.")))
        column.addWidget(self._models)
        for box in self._links.values():
            column.addWidget(box)
        for each in links:
            if not each.may_be_emptied:
                words = tr("{0} is a link. Only the link is deleted. {1} is kept.", each.link, each.target)
                column.addWidget(_text("privacy.kept_link", words))
        rest = tr(
            "Your access token is deleted too, even from your system's keyring. You can't undo this. Models in folders "
            "you chose and files you exported are kept. QwenDesk then closes."
        )
        column.addWidget(_text("privacy.rest", rest))
        column.addLayout(buttons)
        no.setFocus()
        self.finished.connect(self.deleteLater)

    def _confirm(self) -> None:
        self.accept()
        emptied = tuple(link for link, box in self._links.items() if box.isChecked())
        self.confirmed.emit(DeletionRequest(self._models.isChecked(), emptied))


def _link_box(linked: LinkedFolder, number: int) -> CheckBox:
    """Return a check box that asks whether to empty the target of a link."""
    box = CheckBox(tr("Also delete everything in {0}", linked.target))
    tooltip = tr("{0} is a link to this folder. If this is off, only the link is deleted.", linked.link)
    describe(box, f"privacy.link.{number}", box.text(), tooltip)
    return box


def _texts(stored: StoredData) -> tuple[str, str, str]:
    places = sorted({str(path.parent) for path in stored.places})
    return tr(KIND_TEXTS[stored.kind]), "\n".join(places), show_bytes(stored.n_bytes)


def _where(models: StoredData) -> tuple[str, str]:
    return (str(models.places[0]) if models.places else ""), show_bytes(models.n_bytes)


def _text(name: str, text: str) -> QLabel:
    label = QLabel(text)
    label.setObjectName(name)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
