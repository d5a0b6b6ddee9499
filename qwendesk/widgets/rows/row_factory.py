"""Makes the row that fits an option."""

from typing import Any

from PySide6.QtCore import Signal

from qwendesk.core.settings import Entry
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton
from qwendesk.widgets.rows.choice_row import BoolRow, ChoiceRow, LanguageRow
from qwendesk.widgets.rows.option_texts import is_list, is_number, value_text
from qwendesk.widgets.rows.setting_row import SettingRow
from qwendesk.widgets.rows.text_row import BlockRow, ListRow, NumberRow, TextRow


class LinkRow(SettingRow):
    """A row for an option that is set on another page. Its button shows the value and opens that page."""

    followed = Signal(str)
    """Asks to open the page with this name."""

    def __init__(self, entry: Entry, prefix: str) -> None:
        super().__init__(entry, prefix)
        self._open = TextButton()
        self._open.clicked.connect(lambda: self.followed.emit(entry.setting.page))
        self.put_editor(self._open)

    def _show(self, value: Any) -> None:
        text = tr("Automatic (recommended)") if value == "" else value_text(self.entry, value)
        self._open.setText(tr("{0}…", text))
        self._open.setAccessibleName(tr("{0}: {1}", tr(self.entry.setting.label), text))


def make_row(entry: Entry, prefix: str, *, in_table: bool = False) -> SettingRow:
    """Return a row for `entry`, of a table or of a card. It is empty until `show_value` is called."""
    if not in_table:
        return _row_of(entry, prefix)
    row = ChoiceRow(entry, prefix, in_table=True) if _is_choice(entry) else _row_of(entry, prefix)
    row.tabulate()
    return row


def _is_choice(entry: Entry) -> bool:
    return bool(entry.choices) and not is_number(entry)


def _row_of(entry: Entry, prefix: str) -> SettingRow:
    if entry.key == "language":
        return LanguageRow(entry, prefix)
    if entry.setting.page:
        return LinkRow(entry, prefix)
    if entry.type is bool:
        return BoolRow(entry, prefix)
    if is_list(entry):
        return ListRow(entry, prefix)
    if is_number(entry):
        return NumberRow(entry, prefix)
    if entry.setting.is_block:
        return BlockRow(entry, prefix)
    return (ChoiceRow if _is_choice(entry) else TextRow)(entry, prefix)
