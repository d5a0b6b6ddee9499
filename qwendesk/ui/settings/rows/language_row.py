"""The choice of the window's language, from the language files that are there."""

from typing import Any

import msgspec

from qwendesk.core.settings import Entry
from qwendesk.ui.kit.language import languages
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.choice_row import ChoiceRow


class LanguageRow(ChoiceRow):
    """Each language is called as it calls itself; "" is the system's."""

    def __init__(self, keeper: ThemeKeeper, entry: Entry, prefix: str) -> None:
        self._names = languages()
        super().__init__(keeper, msgspec.structs.replace(entry, choices=("", *self._names)), prefix)

    def text_of(self, choice: Any) -> str:
        return self._names.get(choice) or (tr("As the system") if not choice else str(choice))

    def _reset_tip(self) -> str:
        return tr("Back to the default: {0}", tr("As the system"))
