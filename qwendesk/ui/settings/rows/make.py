"""The right kind of row for an Entry."""

from qwendesk.core.settings import Entry
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.block_row import BlockRow
from qwendesk.ui.settings.rows.bool_row import BoolRow
from qwendesk.ui.settings.rows.choice_row import ChoiceRow
from qwendesk.ui.settings.rows.language_row import LanguageRow
from qwendesk.ui.settings.rows.link_row import LinkRow
from qwendesk.ui.settings.rows.row import SettingRow
from qwendesk.ui.settings.rows.text_row import ListRow, NumberRow, TextRow
from qwendesk.ui.settings.rows.words import is_list, is_number


def make_row(keeper: ThemeKeeper, entry: Entry, prefix: str) -> SettingRow:
    """A row that shows and changes a value of `entry`; it shows nothing until `show_value`."""
    if entry.key == "language":
        return LanguageRow(keeper, entry, prefix)
    if entry.setting.page:
        return LinkRow(keeper, entry, prefix)
    if entry.type is bool:
        return BoolRow(keeper, entry, prefix)
    if is_list(entry):
        return ListRow(keeper, entry, prefix)
    if is_number(entry):
        return NumberRow(keeper, entry, prefix)
    if entry.setting.is_block:
        return BlockRow(keeper, entry, prefix)
    return (ChoiceRow if entry.choices else TextRow)(keeper, entry, prefix)
