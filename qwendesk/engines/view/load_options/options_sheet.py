"""The sheet with all load options as a table: groups at the left, a search above, and below what they would do."""

from collections.abc import Callable, Iterator

import msgspec
from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QLabel, QLineEdit, QListWidget, QListWidgetItem, QStackedWidget, QWidget

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import BadOption
from qwendesk.core.flags import flag_note
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import Entry, table
from qwendesk.core.translation import tr, tr_n
from qwendesk.engines.pending_load import PendingLoad
from qwendesk.engines.pending_load_service import PendingLoadService
from qwendesk.engines.view.load_options import load_text
from qwendesk.engines.view.load_options.command_card import CommandCard
from qwendesk.engines.view.load_options.panel_control import ReloadButton, VerdictLine
from qwendesk.settings.service import SettingsService
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.controls import Switch, add_clear_button
from qwendesk.widgets.kit import MARGIN, STRETCH, button, column, label, paragraph, row, rule
from qwendesk.widgets.layouts import FlowLayout, ResponsivePairLayout, steady_scroll_area, widget_with
from qwendesk.widgets.lazy_page import LazyPage
from qwendesk.widgets.popups import set_spoken
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.rows.choice_row import ChoiceRow
from qwendesk.widgets.rows.row_factory import make_row
from qwendesk.widgets.rows.setting_row import AUTO_WIDTH, VALUE_WIDTH, SettingRow
from qwendesk.widgets.rows.text_row import NumberRow
from qwendesk.widgets.step_budget import StepBudget, StepwiseWork
from qwendesk.widgets.theme_keeper import current_theme

_PREFIX = "options"
# The sections of LoadOptions, in the order of the table.
_SECTIONS = ("Memory", "GPU", "Context", "Chat memory (KV cache)", "Speed", "Drafts", "Pictures", "Model")
_RESERVE = table(AppOptions)["reserve_gb"]
_ENTRIES: tuple[Entry, ...] = (
    msgspec.structs.replace(_RESERVE, setting=msgspec.structs.replace(_RESERVE.setting, section="Memory")),
    *(entry for key, entry in table(LoadOptions).items() if key != "model")
)  # fmt: skip
N_OPTIONS = len(_ENTRIES)
# Groups that aren't sections.
_ALL, _CHANGED = "", "changed"
_WIDTH, _HEIGHT, _GROUPS_WIDTH, _IN_GROUP = 960, 672, 184, 10
# Least width of the window in pixels that stays visible around the sheet.
_EDGE = 60
# Least width in pixels, at the normal text size, of a table beside the groups, and of one whose editors are beside
# their names.
_LEAST_TABLE, _LEAST_COLUMNS = 480, 470


class OptionsSheet(Dialog):
    """Built each time it is opened. Changes show in the Load tab behind it, too."""

    def __init__(
        self,
        service: PendingLoadService,
        settings: SettingsService,
        answer_options: Observed[GenerationOptions],
        parent: QWidget,
        key: str = "",
    ) -> None:
        """`key` is an option whose group is shown first, with the focus in it; without it, all are, to search."""
        super().__init__(parent)
        self._service, self._settings, self._answer_options = service, settings, answer_options
        self.setObjectName(_PREFIX)
        title = tr("All options")
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._group, self._shows_unusable = _ALL, False
        self._rows: dict[str, SettingRow] = {}
        self._headings: dict[str, QLabel] = {}
        self._build = StepwiseWork(self, StepBudget(self))
        self._table = steady_scroll_area(self._make_table())
        self._pages = QStackedWidget()
        self._pages.addWidget(self._table)
        command = LazyPage(self._build_command)
        self._pages.addWidget(widget_with(column(command, STRETCH, margins=(MARGIN, 8, MARGIN, 8))))
        self._groups = self._make_groups()
        # The names of the groups begin below the title.
        self._groups_box = widget_with(column(self._groups, margins=(MARGIN - _IN_GROUP, 8, 0, 8)))
        body = row(self._groups_box, self._pages, spacing=0)
        body.setStretch(1, 1)
        content = column(self._make_head(title), rule(), body, rule(), self._make_foot(), spacing=0)
        content.setStretch(2, 1)
        self.setLayout(content)
        find = QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self)
        find.activated.connect(self._search.setFocus)
        self.resize(min(_WIDTH, parent.width() - _EDGE), min(_HEIGHT, parent.height() - _EDGE))
        bind(self, settings.state, lambda _options: self._show_reserve())
        bind(self, service.state, self._show_pending)
        self._sought = key
        if key:
            self._groups.setCurrentRow(list(self._counts).index(table(LoadOptions)[key].setting.section))
        else:
            self._search.setFocus()
        QTimer.singleShot(0, self, lambda: self._build.start(self._add_rows))

    @property
    def is_complete(self) -> bool:
        """Whether every option has its row: they are made in short steps, so that the window stays responsive."""
        return len(self._rows) == N_OPTIONS

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        theme = current_theme()
        groups_width = theme.px(_GROUPS_WIDTH) + MARGIN - _IN_GROUP
        has_groups = self.width() - groups_width >= theme.px(_LEAST_TABLE) + 2 * MARGIN
        if not has_groups:
            self._groups.setCurrentRow(0)
        self._groups_box.setVisible(has_groups)
        table_width = self.width() - (groups_width if has_groups else 0) - 2 * MARGIN
        self._titles.setVisible(table_width >= theme.px(_LEAST_COLUMNS))

    def _make_head(self, title: str) -> QWidget:
        self._search = QLineEdit()
        self._search.setPlaceholderText(tr("Search options"))
        add_clear_button(self._search)
        describe(
            self._search, "options.search", tr("Search options"),
            tr("By name, help, or flag of llama.cpp, Ollama or vLLM"),
        )  # fmt: skip
        self._search.textChanged.connect(self._on_search)
        self._found = label(kind="dim", name="options.found")
        self._flags = Switch()
        describe(self._flags, "options.flags", tr("Show flags"), tr("Show the flags of llama.cpp"))
        self._flags.toggled.connect(self._show_flags)
        search = row(label(title, "result"), self._search, self._found, spacing=12)
        search.setStretch(1, 1)
        flags = row(label(tr("Show flags")), self._flags)
        head = ResponsivePairLayout(widget_with(search), widget_with(flags), least=current_theme().px(360), spacing=16)
        return widget_with(column(head, margins=(MARGIN, 16, MARGIN, 16)))

    def _make_groups(self) -> QListWidget:
        made = QListWidget()
        made.setProperty("kind", "palette")
        made.setFixedWidth(current_theme().px(_GROUPS_WIDTH))
        made.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        describe(made, "options.groups", tr("Groups"), tr("Which options to show"))
        self._counts: dict[str, QLabel] = {}
        names = {_ALL: tr("All"), _CHANGED: tr("Changed"), **{each: tr(each) for each in _SECTIONS}}
        for group, name in names.items():
            item = QListWidgetItem()
            item.setData(Qt.ItemDataRole.UserRole, group)
            made.addItem(item)
            count = self._counts[group] = label(
                kind="small", name=f"options.count.{group.lower().split(' ')[0] or 'all'}"
            )
            words = label(name, wraps=True)
            line = row(words, count, margins=(_IN_GROUP, 6, _IN_GROUP, 6))
            line.setStretch(0, 1)
            holder = widget_with(line)
            width = current_theme().px(_GROUPS_WIDTH) - 24
            item.setSizeHint(QSize(width, max(line.heightForWidth(width), current_theme().px(13) + 20)))
            made.setItemWidget(item, holder)
        made.setCurrentRow(0)
        made.currentItemChanged.connect(self._on_group)
        return made

    def _make_table(self) -> QWidget:
        theme = current_theme()
        value, auto = label(tr("Value"), "small"), label(tr("Auto takes"), "small")
        value.setFixedWidth(theme.px(VALUE_WIDTH))
        auto.setFixedWidth(theme.px(AUTO_WIDTH))
        self._titles = widget_with(row(label(tr("Option"), "small"), STRETCH, value, auto, spacing=12))
        self._note = paragraph(kind="dim", name="options.note")
        self._unusable = label(kind="dim", name="options.unusable", wraps=True)
        self._unusable_button = button(
            tr("Show"), "options.unusable.show", kind="link", tip=tr("Show options that have no effect here")
        )
        self._unusable_button.clicked.connect(self._on_show_unusable)
        rest = FlowLayout(spacing=4)
        rest.addWidget(self._unusable)
        rest.addWidget(self._unusable_button)
        self._table_column = column(spacing=0)
        margins = (MARGIN, 12, MARGIN - 12, 16)
        content = widget_with(
            column(self._titles, self._note, self._table_column, rest, STRETCH, spacing=0, margins=margins)
        )
        content.setProperty("kind", "column")
        return content

    def _add_rows(self) -> Iterator[None]:
        for section in _SECTIONS:
            heading = self._headings[section] = label(tr(section), "strong")
            heading.setContentsMargins(0, 16, 0, 4)
            self._table_column.addWidget(heading)
            for entry in (each for each in _ENTRIES if each.setting.section == section):
                if self._service.pending.requested is None:
                    return  # the model is gone, and the sheet closes
                made = self._make_row(entry)
                made.hide()
                self._table_column.addWidget(made)
                self._show_value(entry.key, self._service.pending)
                self._filter()
                if entry.key == self._sought:
                    made.focus_editor()
                yield
        if self._sought:
            self._table.ensureWidgetVisible(self._rows[self._sought])

    def _make_row(self, entry: Entry) -> SettingRow:
        made, key = make_row(entry, _PREFIX, in_table=True), entry.key
        if isinstance(made, NumberRow):
            made.auto = load_text.AUTO_VALUES.get(key)
        made.chosen.connect(self._changer(key))
        made.reset_requested.connect(lambda: self._reset(key))
        made.refusal_changed.connect(lambda: self._show_verdict(self._service.pending))
        self._rows[key] = made
        return made

    def _make_foot(self) -> QWidget:
        self._verdict = VerdictLine("options.sentence")
        self._as_command = button(
            tr("Command line"), "options.command_line", kind="pill",
            tip=tr("Show these options as a command for llama.cpp, Ollama and others"),
        )  # fmt: skip
        self._as_command.setCheckable(True)
        self._as_command.toggled.connect(lambda is_on: self._pages.setCurrentIndex(int(is_on)))
        self._reset_all = button(
            tr("Reset all"), "options.reset", kind="quiet", tip=tr("Set every option to its default")
        )
        self._reset_all.clicked.connect(self._on_reset_all)
        done = button(tr("Done"), "options.done", tip=tr("Close; your changes are kept for this model"))
        done.clicked.connect(self.accept)
        self._reload = ReloadButton("options.reload", self._service)
        self._reload.clicked.connect(self.accept)
        buttons = FlowLayout()
        for each in (self._as_command, self._reset_all, done, self._reload):
            buttons.addWidget(each)
        foot = ResponsivePairLayout(self._verdict, widget_with(buttons), least=current_theme().px(240), spacing=16)
        return widget_with(column(foot, margins=(MARGIN, 12, MARGIN, 12)))

    def _build_command(self) -> Iterator[CommandCard]:
        card = CommandCard("options.command", height=240)

        def show(_change: object) -> None:
            card.show_pending(self._service.pending, self._answer_options.value)

        bind(card, self._service.state, show)
        bind(card, self._answer_options, show)
        yield card

    def _show_pending(self, pending: PendingLoad) -> None:
        if pending.requested is None:
            self.reject()  # the model is gone
            return
        for key in self._rows:
            self._show_value(key, pending)
        self._reset_all.setEnabled(bool(pending.changed))
        self._show_verdict(pending)
        self._filter()

    def _show_value(self, key: str, pending: PendingLoad) -> None:
        shown = self._rows[key]
        options = self._settings.options if key == "reserve_gb" else pending.requested
        shown.show_value(getattr(options, key))
        shown.show_auto(load_text.auto_text(shown.entry, pending))
        shown.show_flag(self._flags.isChecked())
        if key == "vision" and isinstance(shown, ChoiceRow):
            shown.hide_choice("gpu", is_hidden=not pending.has_gpu)

    def _show_reserve(self) -> None:
        if "reserve_gb" in self._rows:
            self._show_value("reserve_gb", self._service.pending)
        self._filter()

    def _show_verdict(self, pending: PendingLoad) -> None:
        refused = (tr(each.entry.setting.label) for each in self._rows.values() if each.is_refused)
        verdict = load_text.verdict(pending, next(refused, ""))
        self._verdict.show_verdict(verdict)
        self._reload.show_pending(pending, is_bad=verdict.is_bad)

    def _show_flags(self, is_on: bool) -> None:
        for each in self._rows.values():
            each.show_flag(is_on)

    def _on_group(self, item: QListWidgetItem) -> None:
        self._group = item.data(Qt.ItemDataRole.UserRole)
        self._as_command.setChecked(False)
        self._filter()
        self._table.verticalScrollBar().setValue(0)

    def _on_search(self) -> None:
        """Search all groups."""
        self._groups.setCurrentRow(0)
        self._as_command.setChecked(False)
        self._filter()

    def _on_show_unusable(self) -> None:
        self._shows_unusable = True
        self._search.setFocus()
        self._filter()

    def _filter(self) -> None:
        """Show the rows of the group that match the search, and how many there are in each group."""
        query, pending = self._search.text().strip(), self._service.pending
        matching = {key for key, each in self._rows.items() if not query or each.matches(query)}
        unusable = frozenset() if self._shows_unusable else load_text.unusable_options(pending) & matching
        found = matching - unusable
        for group in self._counts:
            self._show_count(group, sum(self._is_in(key, group) for key in found))
        shown = {key for key in found if self._is_in(key, self._group)}
        for key, each in self._rows.items():
            each.setVisible(key in shown or each.is_refused)
        for section, heading in self._headings.items():
            heading.setVisible(any(self._is_in(key, section) for key in shown))
        self._found.setText(tr_n("{0} found", "{0} found", len(found)) if query else "")
        note = flag_note(query)
        if query and not note and not matching and self.is_complete:
            note = tr("No option found for “{0}”.", query)
        self._note.setText(note)
        self._note.setVisible(bool(note))
        sentence = tr_n(
            "{0} more can't be used by this model or this PC.", "{0} more can't be used by this model or this PC.",
            len(unusable),
        )  # fmt: skip
        self._unusable.setText(sentence)
        self._unusable.setVisible(bool(unusable))
        self._unusable_button.setVisible(bool(unusable))

    def _is_in(self, key: str, group: str) -> bool:
        if group == _CHANGED:
            is_reserve = key == "reserve_gb" and self._settings.options.reserve_gb != AppOptions().reserve_gb
            return is_reserve or key in self._service.pending.changed
        return group in (_ALL, self._rows[key].entry.setting.section)

    def _show_count(self, group: str, n_found: int) -> None:
        self._counts[group].setText(str(n_found))
        for number in range(self._groups.count()):
            item = self._groups.item(number)
            if item.data(Qt.ItemDataRole.UserRole) == group:
                name = {_ALL: tr("All"), _CHANGED: tr("Changed")}.get(group) or tr(group)
                set_spoken(item, tr("{0}: {1}", name, n_found))

    def _changer(self, key: str) -> Callable[[object], None]:
        def change(value: object) -> None:
            try:
                if key == "reserve_gb":
                    self._settings.change({key: value})
                else:
                    self._service.change({key: value})
            except BadOption as error:
                self._rows[key].refuse(error.sentence)
            else:
                # Even if nothing has changed, the editor may show another value than the one in effect.
                self._show_pending(self._service.pending)

        return change

    def _reset(self, key: str) -> None:
        if key == "reserve_gb":
            self._settings.reset(key)
        else:
            self._service.reset(key)

    def _on_reset_all(self) -> None:
        """Set every option to its default, and discard what was typed but not applied."""
        for each in self._rows.values():
            each.discard_typed()
        self._service.reset_all()
        self._show_pending(self._service.pending)
