"""The rows of the Load tab: the first level for everyone, and every llama.cpp flag under Advanced."""

from collections.abc import Callable

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.app_options import AppOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import Entry, table
from qwendesk.core.units import show_tokens
from qwendesk.services.engine.draft import Draft
from qwendesk.ui.bridges.draft import DraftBridge
from qwendesk.ui.bridges.settings import SettingsBridge
from qwendesk.ui.inspector import load_text
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.make import make_row
from qwendesk.ui.settings.rows.row import SettingRow
from qwendesk.ui.settings.rows.sliding_row import SlidingRow

_PREFIX = "inspector.load"
_BASIC = ("aim", "n_ctx", "vision")
_CONTEXTS = (4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576)
_RESERVES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
_MOST_CONTEXT = 262_144
"""Where the slider ends while the model's own length is not known."""


class LoadRows(QWidget):
    """Shows a Draft row by row and hands on what is chosen."""

    def __init__(self, keeper: ThemeKeeper, bridge: DraftBridge, settings: SettingsBridge) -> None:
        super().__init__()
        self._keeper, self._bridge, self._settings = keeper, bridge, settings
        self._rows: dict[str, SettingRow] = {}
        self._headings: dict[str, QLabel] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._query, self._shows_advanced = "", False
        entries = table(LoadOptions)
        self._add(make_row(keeper, entries["aim"], _PREFIX))
        self._context = SlidingRow(keeper, entries["n_ctx"], _PREFIX, *_stops(_MOST_CONTEXT), auto=0)
        self._context.moved.connect(lambda value: bridge.change("n_ctx", value, keep=False))
        self._add(self._context, stacked=True)
        self._add(make_row(keeper, entries["vision"], _PREFIX))
        self._reserve = _reserve_row(keeper, settings)
        self._column.addWidget(self._reserve)
        bridge.refused.connect(self._on_refused)
        settings.changed.connect(self._show_reserve)
        settings.refused.connect(
            lambda key, sentence: self._reserve.refuse(sentence) if key == "reserve_gb" else None
        )  # fmt: skip
        self._show_reserve()

    @property
    def n_advanced(self) -> int:
        return len(table(LoadOptions)) - len(_BASIC) - 1

    def show_draft(self, draft: Draft) -> None:
        if draft.asked is None:
            return
        if draft.limits is not None and draft.limits.n_ctx:
            self._context.set_stops(*_stops(draft.limits.n_ctx))
        blamed = {key: conflict.sentence for conflict in draft.conflicts for key in conflict.keys[:1]}
        for key, row in self._rows.items():
            value = getattr(draft.asked, key)
            row.show_value(value)
            auto = load_text.auto_text(row.entry, draft) if load_text.is_auto(row.entry, value) else ""
            row.show_auto(auto)
            row.refuse(blamed.get(key, ""))
        if draft.asked.n_ctx == 0 and draft.decided is not None:
            self._context.show_place(draft.decided.n_ctx)
        self._filter()

    def filter(self, query: str, *, shows_advanced: bool) -> None:
        """Show what a search is about; without one the first level, and the rest if that is wanted."""
        self._query, self._shows_advanced = query, shows_advanced
        if (query or shows_advanced) and not self._headings:
            self._make_advanced()
            self.show_draft(self._bridge.draft)
        self._filter()

    def _filter(self) -> None:
        changed, query = self._bridge.draft.changed, self._query
        shown_sections = set()
        for key, row in self._rows.items():
            wanted = row.matches(query) if query else key in _BASIC or self._shows_advanced or key in changed
            row.setVisible(wanted)
            if wanted and key not in _BASIC:
                shown_sections.add(row.entry.setting.section)
        self._reserve.setVisible(not query or self._reserve.matches(query))
        for section, heading in self._headings.items():
            heading.setVisible(section in shown_sections)

    def _make_advanced(self) -> None:
        entries = [entry for key, entry in table(LoadOptions).items() if key not in (*_BASIC, "model")]
        for section in dict.fromkeys(entry.setting.section for entry in entries):
            heading = QLabel(tr(section))
            heading.setProperty("kind", "strong")
            heading.setContentsMargins(0, 12, 0, 0)
            self._headings[section] = heading
            self._column.addWidget(heading)
            for entry in entries:
                if entry.setting.section == section:
                    self._add(make_row(self._keeper, entry, _PREFIX))

    def _add(self, row: SettingRow, *, stacked: bool = False) -> None:
        key = row.entry.key
        if not stacked:
            row.stack()
        row.chosen.connect(self._changer(key))
        row.reset_asked.connect(lambda: self._bridge.reset(key))
        self._rows[key] = row
        self._column.addWidget(row)

    def _changer(self, key: str) -> Callable[[object], None]:
        def change(value: object) -> None:
            self._bridge.change(key, value)
            # Also when nothing changed: an editor must not go on showing what does not hold.
            if self._bridge.draft.asked is not None and getattr(self._bridge.draft.asked, key) == value:
                self.show_draft(self._bridge.draft)

        return change

    def _on_refused(self, key: str, sentence: str) -> None:
        if key in self._rows:
            self._rows[key].refuse(sentence)

    def _show_reserve(self) -> None:
        self._reserve.show_value(self._settings.options.reserve_gb)


def _stops(n_ctx: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Powers of two up to the model's length."""
    stops = (*(each for each in _CONTEXTS if each < n_ctx), n_ctx)
    return stops, tuple(show_tokens(each) for each in stops)


def _reserve_row(keeper: ThemeKeeper, settings: SettingsBridge) -> SlidingRow:
    entry: Entry = table(AppOptions)["reserve_gb"]
    labels = tuple(f"{each:g}" if each in (0, 1, 2, 4, 8) else "" for each in _RESERVES)
    row = SlidingRow(keeper, entry, _PREFIX, _RESERVES, labels)
    row.chosen.connect(lambda value: settings.change("reserve_gb", float(value)))
    row.reset_asked.connect(lambda: settings.reset("reserve_gb"))
    return row
