"""A setting that is on or off."""

from typing import Any

from qwendesk.core.settings import Entry
from qwendesk.ui.kit.switch import Switch
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.row import SettingRow


class BoolRow(SettingRow):
    def __init__(self, keeper: ThemeKeeper, entry: Entry, prefix: str) -> None:
        super().__init__(keeper, entry, prefix)
        self._switch = Switch(keeper)
        self._switch.clicked.connect(lambda: self.chosen.emit(self._switch.isChecked()))
        self.put_editor(self._switch)

    def _show(self, value: Any) -> None:
        self._switch.setChecked(bool(value))
