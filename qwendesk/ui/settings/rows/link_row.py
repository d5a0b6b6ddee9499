"""A setting that is chosen on another page: its value in words, and the way there."""

from typing import Any

from PySide6.QtCore import Signal

from qwendesk.core.settings import Entry
from qwendesk.ui.kit.buttons import TextButton
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.row import SettingRow


class LinkRow(SettingRow):
    """Its button says what holds, and opens the page."""

    followed = Signal(str)
    """The page's name in the rail."""

    def __init__(self, keeper: ThemeKeeper, entry: Entry, prefix: str) -> None:
        super().__init__(keeper, entry, prefix)
        self._open = TextButton(keeper)
        self._open.clicked.connect(lambda: self.followed.emit(entry.setting.page))
        self.put_editor(self._open)

    def _show(self, value: Any) -> None:
        text = str(value) or tr("Best one that runs")
        self._open.setText(tr("{0}…", text))
        self._open.setAccessibleName(tr("{0}: {1}", tr(self.entry.setting.label), text))
