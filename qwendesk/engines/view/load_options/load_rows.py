"""The rows of the Load tab: basic options, and every llama.cpp flag under Advanced."""

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import BadOption
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import Entry, table
from qwendesk.core.translation import tr
from qwendesk.core.units import show_tokens
from qwendesk.engines.pending_load import PendingLoad, PendingLoadService
from qwendesk.engines.view.load_options import load_text
from qwendesk.settings.service import SettingsService
from qwendesk.widgets.rows.choice_row import ChoiceRow
from qwendesk.widgets.rows.row_factory import make_row
from qwendesk.widgets.rows.setting_row import SettingRow
from qwendesk.widgets.rows.sliding_row import SlidingRow

_PREFIX = "inspector.load"
_BASIC = tuple(key for key, entry in table(LoadOptions).items() if entry.setting.basic)
_CONTEXTS = (4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576)
_RESERVES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
# Maximum of the slider while the model's context length is not known.
_MOST_CONTEXT = 262_144


class LoadRows(QWidget):
    """Shows a PendingLoad with a row for each option, and passes changes to the service."""

    refusal_changed = Signal()
    """`to_correct` has changed."""

    def __init__(self, service: PendingLoadService, settings: SettingsService) -> None:
        super().__init__()
        self._service, self._settings = service, settings
        self._rows: dict[str, SettingRow] = {}
        self._headings: dict[str, QLabel] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._query, self._shows_advanced = "", False
        entries = table(LoadOptions)
        self._context = SlidingRow(entries["n_ctx"], _PREFIX, *_stops(_MOST_CONTEXT, _MOST_CONTEXT), auto=0)
        self._context.moved.connect(lambda value: self._change("n_ctx", value, keep=False))
        for key in _BASIC:
            if key == "n_ctx":
                self._add(self._context, stacked=True)
            elif key == "vision":
                self._vision = ChoiceRow(entries[key], _PREFIX)
                self._add(self._vision)
            else:
                self._add(make_row(entries[key], _PREFIX))
        self._reserve = self._reserve_row()
        self._column.addWidget(self._reserve)
        self.destroyed.connect(settings.subscribe(lambda _options: self._show_reserve()))
        self._show_reserve()

    @property
    def n_advanced(self) -> int:
        return len(table(LoadOptions)) - len(_BASIC) - 1

    @property
    def shows_any(self) -> bool:
        """Whether an option matches what was searched for."""
        return any(not row.isHidden() for row in (*self._rows.values(), self._reserve))

    @property
    def to_correct(self) -> str:
        """The label of the first option whose value was refused; "" if there is none."""
        rows = (*self._rows.values(), self._reserve)
        return next((tr(row.entry.setting.label) for row in rows if row.is_refused), "")

    def row(self, key: str) -> SettingRow:
        """Return the row of a basic option, or of an advanced one that was shown."""
        return self._rows[key]

    def show_pending(self, pending: PendingLoad) -> None:
        if pending.requested is None:
            return
        if not pending.changed <= set(self._rows):
            self._make_advanced()
        if pending.limits is not None and pending.limits.n_ctx:
            self._context.set_stops(*_stops(pending.limits.n_ctx, pending.limits.longest_ctx))
        self._context.show_remark(load_text.context_remark(pending))
        blamed = {key: conflict.sentence for conflict in pending.conflicts for key in conflict.keys[:1]}
        for key, row in self._rows.items():
            value = getattr(pending.requested, key)
            row.show_value(value)
            auto = load_text.auto_text(row.entry, pending) if load_text.is_auto(row.entry, value) else ""
            row.show_auto(auto)
            if key in blamed and not row.is_typed:
                row.refuse(blamed[key])
        if pending.requested.n_ctx == 0 and pending.decided is not None:
            self._context.show_place(pending.decided.n_ctx)
        without_gpu = "" if pending.has_gpu else tr("No usable GPU found.")
        self._vision.show_unavailable_choice("gpu", without_gpu)
        self._reserve.show_unavailable(without_gpu)
        self._filter()

    def reset_all(self) -> None:
        """Set every option to its default, and discard what was typed but not applied."""
        for row in self._rows.values():
            row.discard_typed()
        self._service.reset_all()
        self.show_pending(self._service.pending)

    def filter(self, query: str, *, shows_advanced: bool) -> None:
        """Show the rows that match `query`.

        If it is "", show the basic and the changed options, or all with `shows_advanced`.
        """
        self._query, self._shows_advanced = query, shows_advanced
        if (query or shows_advanced) and not self._headings:
            self._make_advanced()
            self.show_pending(self._service.pending)
        self._filter()

    def _filter(self) -> None:
        changed, query = self._service.pending.changed, self._query
        shown_sections = set()
        for key, row in self._rows.items():
            wanted = row.matches(query) if query else key in _BASIC or self._shows_advanced or key in changed
            wanted = wanted or row.is_refused
            row.setVisible(wanted)
            if wanted and key not in _BASIC:
                shown_sections.add(row.entry.setting.section)
        self._reserve.setVisible(not query or self._reserve.matches(query))
        for section, heading in self._headings.items():
            heading.setVisible(section in shown_sections)

    def _make_advanced(self) -> None:
        if self._headings:
            return
        entries = [entry for key, entry in table(LoadOptions).items() if key not in (*_BASIC, "model")]
        for section in dict.fromkeys(entry.setting.section for entry in entries):
            heading = QLabel(tr(section))
            heading.setProperty("kind", "strong")
            heading.setContentsMargins(0, 12, 0, 0)
            self._headings[section] = heading
            self._column.addWidget(heading)
            for entry in entries:
                if entry.setting.section == section:
                    self._add(make_row(entry, _PREFIX))

    def _add(self, row: SettingRow, *, stacked: bool = False) -> None:
        key = row.entry.key
        if not stacked:
            row.stack()
        row.chosen.connect(self._changer(key))
        row.reset_requested.connect(lambda: self._service.reset(key))
        row.refusal_changed.connect(self.refusal_changed)
        self._rows[key] = row
        self._column.addWidget(row)

    def _changer(self, key: str) -> Callable[[object], None]:
        def change(value: object) -> None:
            self._change(key, value)
            # Even if nothing has changed, the editor may show another value than the one in effect.
            if self._service.pending.requested is not None and getattr(self._service.pending.requested, key) == value:
                self.show_pending(self._service.pending)

        return change

    def _change(self, key: str, value: object, *, keep: bool = True) -> None:
        """Change a pending option, or show in its row why it's not valid. `keep` is False while a slider moves."""
        try:
            self._service.change({key: value}, keep=keep)
        except BadOption as error:
            self._rows[key].refuse(error.sentence)

    def _change_reserve(self, value: float) -> None:
        try:
            self._settings.change({"reserve_gb": value})
        except BadOption as error:
            self._reserve.refuse(error.sentence)

    def _show_reserve(self) -> None:
        self._reserve.show_value(self._settings.options.reserve_gb)

    def _reserve_row(self) -> SlidingRow:
        entry: Entry = table(AppOptions)["reserve_gb"]
        row = SlidingRow(entry, _PREFIX, _RESERVES)
        row.chosen.connect(lambda value: self._change_reserve(float(value)))
        row.reset_requested.connect(lambda: self._change_reserve(AppOptions().reserve_gb))
        row.refusal_changed.connect(self.refusal_changed)
        return row


def _stops(trained: int, longest: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the values of the slider and their labels: powers of two, and the trained and the longest context."""
    stops = tuple(sorted({*(each for each in _CONTEXTS if each < longest), trained, longest}))
    return stops, tuple(show_tokens(each) for each in stops)
