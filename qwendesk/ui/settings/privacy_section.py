"""Privacy on the settings page: what is kept where, what is never sent, and the way to delete all of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.units import show_bytes
from qwendesk.services.privacy import Holding
from qwendesk.ui.bridges.privacy import PrivacyBridge
from qwendesk.ui.frame.actions import COMMANDS, keys_text
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.choosing import CheckBox
from qwendesk.ui.kit.text import mark, tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.section import Section

WORDS = "privacy telemetry delete everything data stored incognito logs crash reports where chats files tracking"
KIND_TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "chats": mark("Chats and drafts"),
        "attachments": mark("Pictures and documents of chats"),
        "settings": mark("Settings, profiles and prompts"),
        "token": mark("Access token, where there is no keyring"),
        "measured": mark("Measured speeds and the last model"),
        "downloads": mark("Queue of downloads"),
        "catalog": mark("Updates of the catalog"),
        "templates": mark("Repaired chat templates"),
        "engines": mark("Engines that were fetched"),
        "models": mark("Models in the app's own folder"),
        "logs": mark("Logs, without message text"),
        "crashes": mark("Crash reports, without message text"),
        "cache": mark("Cache"),
        "other": mark("Everything else"),
    }
)


class PrivacySection(Section):
    """Looks again each time it is shown."""

    def __init__(self, keeper: ThemeKeeper, bridge: PrivacyBridge) -> None:
        super().__init__("settings.privacy", tr("Privacy"))
        self._keeper, self._bridge = keeper, bridge
        box = QWidget()
        column = QVBoxLayout(box)
        column.setContentsMargins(16, 8, 16, 12)
        column.setSpacing(10)
        column.addWidget(
            _text(
                "settings.privacy.promise",
                tr(
                    "Chats never leave this PC. There is no telemetry: nothing counts or reports what you do. The app "
                    "connects only for what you ask for on the Models page: searches, downloads, checks of model "
                    "files. Offline, above, stops that too."
                ),
            )
        )
        column.addWidget(
            _text(
                "settings.privacy.incognito",
                tr(
                    "An incognito chat ({0}) is never saved: no message, no draft, no picture or page that you put "
                    "into it. All of it is in memory only, and gone when you open another chat or close the app.",
                    keys_text(COMMANDS["new_incognito"].shortcut),
                ),
            )
        )
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnMinimumWidth(0, 240)
        self._grid.setColumnStretch(1, 1)
        column.addLayout(self._grid)
        delete = TextButton(keeper, tr("Delete everything…"))
        describe(
            delete, "settings.privacy.delete", tr("Delete everything…"), tr("Ask first, then delete and close the app")
        )
        delete.clicked.connect(self.ask)
        row = QHBoxLayout()
        row.addWidget(delete)
        row.addStretch(1)
        column.addLayout(row)
        self.add(box)
        bridge.changed.connect(self._show)

    def matches(self, query: str) -> bool:
        return all(word in WORDS for word in query.lower().split())

    def ask(self) -> None:
        """What would go, and whether models go too; nothing is deleted without a second yes."""
        dialog = DeleteQuestion(self._keeper, self._bridge.holdings, self.window())
        dialog.confirmed.connect(lambda models: self._bridge.delete_everything(models=models))
        dialog.open()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._bridge.look()

    def _show(self) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for line, holding in enumerate(each for each in self._bridge.holdings if each.places):
            for place, text in enumerate(_texts(holding)):
                label = _text(f"settings.privacy.{holding.kind}.{place}", text)
                label.setProperty("kind", "small" if place else "")
                self._grid.addWidget(label, line, place, Qt.AlignmentFlag.AlignTop)


class DeleteQuestion(QDialog):
    """`confirmed` carries whether the models of the app's own folder go too."""

    confirmed = Signal(bool)

    def __init__(self, keeper: ThemeKeeper, holdings: tuple[Holding, ...], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("privacy.dialog")
        self.setWindowTitle(tr("Delete everything"))
        self.setMaximumWidth(min(620, parent.width() - 40))
        there = [each for each in holdings if each.places and each.kind != "models"]
        lines = "\n".join(f"•  {tr(KIND_TEXTS[each.kind])} ({show_bytes(each.n_bytes)})" for each in there)
        models = next((each for each in holdings if each.kind == "models"), Holding("models"))
        self._models = CheckBox(keeper, tr("Also the models in {0} ({1})", *_where(models)))
        describe(self._models, "privacy.models", self._models.text(), tr("Downloads of many GB; off keeps them"))
        self._models.setVisible(bool(models.places))
        yes = TextButton(keeper, tr("Delete and close"))
        describe(yes, "privacy.yes", tr("Delete and close"), tr("This cannot be undone"))
        yes.clicked.connect(self._confirm)
        no = TextButton(keeper, tr("Cancel"), kind="primary")
        describe(no, "privacy.no", tr("Cancel"), tr("Keep everything"), "Esc")
        no.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(yes)
        buttons.addWidget(no)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 18)
        column.setSpacing(12)
        title = QLabel(tr("Delete everything that QwenDesk keeps?"))
        title.setProperty("kind", "heading")
        column.addWidget(title)
        column.addWidget(_text("privacy.list", lines or tr("Nothing is kept.")))
        column.addWidget(self._models)
        rest = tr(
            "The access token goes too, also from the system's keyring. This cannot be undone. Models in folders that "
            "you chose yourself, and files that you exported, stay where they are. The app closes."
        )
        column.addWidget(_text("privacy.rest", rest))
        column.addLayout(buttons)
        no.setFocus()
        self.finished.connect(self.deleteLater)

    def _confirm(self) -> None:
        self.accept()
        self.confirmed.emit(self._models.isChecked())


def _texts(holding: Holding) -> tuple[str, str, str]:
    places = sorted({str(path.parent) for path in holding.places})
    return tr(KIND_TEXTS[holding.kind]), "\n".join(places), show_bytes(holding.n_bytes)


def _where(models: Holding) -> tuple[str, str]:
    return (str(models.places[0]) if models.places else ""), show_bytes(models.n_bytes)


def _text(name: str, text: str) -> QLabel:
    label = QLabel(text)
    label.setObjectName(name)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
